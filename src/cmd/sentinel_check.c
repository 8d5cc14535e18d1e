#include "cmd/sentinel_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/tree.h"
#include "cmd/progress.h"
#include "model/chaos.h"
#include "studies/sentinel/check.h"

void sentinel_check_deinit(struct sentinel_check *check)
{
	certificate_deinit(&check->certificate);
	trial_setup_deinit(&check->setup);
	case_close(check->cs);
	if (check->temporary)
		(void)tree_remove_at(AT_FDCWD, check->temporary, NULL);
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
	char dir[] = "/tmp/redhand-sentinel-XXXXXX";

	if (!case_dir) {
		if (!mkdtemp(dir))
			return err_errno(err, -errno, "cannot make a directory in /tmp");
		check->temporary = mem_strdup(dir);
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

static int settle(struct sentinel_check *check, const struct sentinel_check_options *options,
		  struct strv *notes, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf chaos = { 0 };
	struct trial_options trial;
	int r = sentinel_open(options->dir, &check->sentinel, err);

	if (r == 0)
		r = sentinel_settle(&check->sentinel, options->dir, options->root, notes, err);
	if (r < 0)
		return r;
	trial = recorded(&check->sentinel.trial, &chaos);
	r = trial_setup_init(&check->setup, &trial, "sentinel", check->sentinel.trial.program.items,
			     err);
	return r < 0 ? err_prefix(err, "sentinel '%s'", options->dir) : 0;
}

int sentinel_check_run(struct sentinel_check *check, const struct sentinel_check_options *options,
		       struct err *err)
{
	AUTO(strv_deinit) struct strv notes = { 0 };
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
	notes = (struct strv){ 0 };
	return 0;
}
