#include "cmd/sentinel_check.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/tmpdir.h"
#include "cmd/progress.h"
#include "model/chaos_knobs.h"
#include "report/text_parts.h"
#include "studies/sentinel/check.h"
#include "studies/sentinel/trust.h"

void sentinel_check_deinit(struct sentinel_check *check)
{
	certificate_deinit(&check->certificate);
	trial_setup_deinit(&check->setup);
	case_close(check->cs);
	tmpdir_remove(check->temporary);
	mem_free(check->temporary);
	sentinel_deinit(&check->sentinel);
}

static struct option_list as_list(const struct strv *strv)
{
	return (struct option_list){ .items = (const char **)strv->items, .count = strv->count };
}

/* The options by which the recorded trials would be asked for. Points into the sentinel and into
 * `chaos`. */
static struct trial_options recorded(const struct series_settings *trial, struct strbuf *chaos)
{
	struct trial_options options = { 0 };

	trial_options_defaults(&options);
	options.jobs = trial->jobs;
	options.slot_env = as_list(&trial->env);
	options.cwd = trial->cwd;
	options.stdin_path = trial->stdin_path;
	options.timeout_ns = trial->timeout_ns;
	options.linger_ns = trial->linger_ns;
	options.share_tmp = trial->share_tmp;
	options.pty = trial->pty;
	options.observe = trial->observer;
	options.ignore = as_list(&trial->ignore);
	options.fail_on = as_list(&trial->fail_on);
	options.breadcrumb = trial->breadcrumb;
	options.chaos_seed = trial->chaos_seed;
	if (trial->chaos != 0) {
		chaos_list((unsigned int)trial->chaos, chaos);
		options.chaos = strbuf_str(chaos);
	}
	return options;
}

static int open_case(struct sentinel_check *check, const char *case_dir, struct err *err)
{
	int r;

	if (!case_dir) {
		r = tmpdir_make("/tmp", "sentinel-", &check->temporary, err);
		if (r < 0)
			return r;
		case_dir = check->temporary;
	}
	return trial_setup_open(&check->setup, case_dir, &check->cs, err);
}

/* Trials of another day say nothing about today: each run is a series of its own. */
static void identify(struct sentinel_check *check)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	strbuf_addf(&check->setup.identity, "started %lld.%09ld %d\n", (long long)now.tv_sec,
		    now.tv_nsec, (int)getpid());
}

static void show(const struct sentinel_check *check, const char *dir)
{
	const struct series_settings *trial = &check->sentinel.trial;

	(void)fprintf(stderr, "The sentinel '%s' was not made here. It would run, in %s:\n  ", dir,
		      trial->cwd);
	/* Nothing is hidden here: what looks like a secret may be what is hostile. */
	text_words(trial->env.items, stderr);
	(void)fputs(trial->env.count > 0 ? " " : "", stderr);
	text_words(trial->program.items, stderr);
	if (trial->stdin_path)
		put(stderr, " < %s", trial->stdin_path);
	(void)fputc('\n', stderr);
	if (check->sentinel.own.count > 0) {
		(void)fprintf(stderr, "with its own files, in %s/" SENTINEL_FILES ": ", dir);
		text_words(check->sentinel.own.items, stderr);
		(void)fputc('\n', stderr);
	}
}

static bool agreed(void)
{
	char answer[16] = "";

	(void)fputs("Run it? [y/N] ", stderr);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* What came with a repository runs nothing before somebody has seen it. */
static int approve(const struct sentinel_check *check, const struct sentinel_check_options *options,
		   struct err *err)
{
	int r;

	if (sentinel_is_trusted(options->dir))
		return 0;
	r = sentinel_check_paths(&check->sentinel, options->dir, options->root, err);
	if (r < 0)
		return err_set_prefix(err, "sentinel '%s'", options->dir);
	show(check, options->dir);
	if (options->yes)
		return 0;
	if (!isatty(STDIN_FILENO)) {
		(void)err_set(err, -EPERM,
			      "the sentinel '%s' was not made here, and there is nobody "
			      "to ask",
			      options->dir);
		return err_set_remedy(err, "look at what it runs, then redhand sentinel run --yes");
	}
	if (!agreed())
		return err_set(err, -EPERM, "the sentinel '%s' was not run", options->dir);
	sentinel_trust(options->dir);
	return 0;
}

/* Nothing of it is worked with before somebody has agreed: a rule alone may eat all memory. */
static int settle(struct sentinel_check *check, const struct sentinel_check_options *options,
		  struct said_list *notes, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf chaos = { 0 };
	struct trial_options trial;
	int r = sentinel_open(options->dir, &check->sentinel, err);

	if (r == 0)
		r = sentinel_settle(&check->sentinel, options->dir, options->root, notes, err);
	if (r == 0)
		r = approve(check, options, err);
	if (r < 0)
		return r;
	trial = recorded(&check->sentinel.trial, &chaos);
	r = trial_setup_init(&check->setup, &trial, "sentinel", check->sentinel.trial.program.items,
			     err);
	return r < 0 ? err_set_prefix(err, "sentinel '%s'", options->dir) : 0;
}

int sentinel_check_run(struct sentinel_check *check, const struct sentinel_check_options *options,
		       struct err *err)
{
	AUTO(said_list_deinit) struct said_list notes = { 0 };
	struct progress progress;
	struct check_request request = { .sentinel = &check->sentinel,
					 .settings = &check->setup.settings,
					 .env = &check->setup.slot_env,
					 .expect = options->expect,
					 .confidence = options->confidence,
					 .careful = options->careful,
					 .allow_others = options->allow_others,
					 .progress = progress_show,
					 .progress_ctx = &progress };
	int r = settle(check, options, &notes, err);

	if (r == 0)
		r = open_case(check, options->case_dir, err);
	if (r < 0)
		return r;
	identify(check);
	request.identity = trial_setup_identity(&check->setup, "sentinel");
	request.observer = check->setup.observer;
	progress_init(&progress);
	r = check_run(check->cs, &request, &check->certificate, err);
	progress_end(&progress);
	if (r < 0)
		return r;
	check->certificate.dir = options->dir;
	check->certificate.notes = notes;
	notes = (struct said_list){ 0 };
	return 0;
}
