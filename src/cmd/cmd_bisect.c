/* `redhand bisect`: options, one call, the answer. */
#include "base/hash.h"
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/talk.h"
#include "base/value.h"
#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "model/known_secrets.h"
#include "report/report_bisect.h"
#include "studies/bisect/bisect.h"

struct bisect_options {
	struct common_options common;
	struct trial_options trial;
	const char *build;
	bool first_parent;
	const char *signature;
	double confidence;
	const char *rate; /* a share, or counts */
	bool careful;
	uint64_t clean_limit;
	uint64_t worktrees;
};

#define HASH_SHOWN 12

static const struct option bisect_option_table[] = {
	OPTION(TEXT, "build", "CMD", offsetof(struct bisect_options, build),
	       "Run CMD with sh at each commit before it is tested; a commit where it fails is "
	       "skipped, and its neighbours are tried"),
	OPTION(FLAG, "first-parent", NULL, offsetof(struct bisect_options, first_parent),
	       "Look at the line of first parents only: a merged branch counts as its merge"),
	OPTION(TEXT, "signature", "ID", offsetof(struct bisect_options, signature),
	       "Count only this failure, by the id that repro prints (default: any failure)"),
	OPTION(SHARE, "confidence", "P", offsetof(struct bisect_options, confidence),
	       "How sure to be of the commit (default 0.99)"),
	OPTION(TEXT, "rate", "R", offsetof(struct bisect_options, rate),
	       "How often BAD fails, where that is known: 20%, or as counted, 10/50. It saves "
	       "trials, and must be right: what is only guessed is better left out (default: what "
	       "the last repro of the same command in the case counted, else unknown)"),
	OPTION(FLAG, "careful", NULL, offsetof(struct bisect_options, careful),
	       "Be as sure even when it counts that the rate is known from these trials alone; "
	       "wanted for failures in fewer than one of ten runs"),
	OPTION(COUNT, "give-up", "N", offsetof(struct bisect_options, clean_limit),
	       "Say that BAD does not fail when N trials have all been clean (default 300)",
	       .min = 1, .max = 1000000),
	OPTION(COUNT, "worktrees", "N", offsetof(struct bisect_options, worktrees),
	       "Keep up to N commits checked out and built at a time (default 4; one more than "
	       "there are slots at least)",
	       .min = 1, .max = 1024),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct bisect_options *options = ptr;

	options->confidence = 0.99;
	options->clean_limit = 300;
	options->worktrees = 4;
	options->trial.jobs = 0; /* as many as pay */
}

/* "20%", "0.2" or "10/50". */
static int read_rate(const char *text, struct bisect_request *request, struct err *err)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	int r;

	if (!text)
		return 0;
	if (slash) {
		AUTO(mem_freep) char *failed = mem_strndup(text, (size_t)(slash - text));

		r = value_count(failed, 0, 0, &request->seen_failed, err);
		if (r == 0)
			r = value_count(slash + 1, 1, 1000000, &request->seen_trials, err);
		if (r == 0 && request->seen_failed > request->seen_trials)
			r = err_set(err, -EINVAL,
				    "wants FAILED/TRIALS, and '%s' has more failures "
				    "than trials",
				    text);
	} else {
		r = value_share(text, &request->rate, err);
	}
	return r < 0 ? err_set_prefix(err, "--rate") : 0;
}

/* Nobody said it, but the case may know. */
static int recall_rate(struct case_store *cs, struct bisect_request *request, struct err *err)
{
	struct bisect_seen seen;
	int r = bisect_seen(cs, request->program, request->signature, &seen, err);

	if (r < 0 || seen.series == 0)
		return r;
	request->seen_series = seen.series;
	request->seen_trials = seen.trials;
	request->seen_failed = seen.failed;
	log_note("series %lld of the case tells the rate: about %llu of %llu (--rate says another)",
		 (long long)seen.series, (unsigned long long)seen.failed,
		 (unsigned long long)seen.trials);
	return 0;
}

static void show(void *ctx, const struct bisect_view *view)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (view->activity)
		strbuf_addf(&sb, "%s %.*s, ", view->activity, HASH_SHOWN, view->commit);
	strbuf_addf(&sb, "%llu trials, %llu failed", (unsigned long long)view->trials,
		    (unsigned long long)view->failed);
	if (view->suspect[0] != '\0' && view->failed > 0)
		strbuf_addf(&sb, ", most likely %.*s (%.0f %%)", HASH_SHOWN, view->suspect,
			    view->probability * 100);
	if (view->to_go >= 1 && view->failed > 0) {
		strbuf_addf(&sb, ", about %.0f to go", view->to_go);
		if (view->ran > 0) {
			strbuf_adds(&sb, " (");
			progress_add_time(&sb, view->to_go * view->seconds / (double)view->ran);
			strbuf_addc(&sb, ')');
		}
	}
	progress_say(ctx, view->seconds, strbuf_str(&sb),
		     &(struct progress_news){ view->news_trial, view->news_summary });
}

/* What besides the trials' own settings makes it the same search. The commits themselves: the same
 * names may mean others tomorrow. */
static void identify(struct strbuf *identity, const struct bisect_options *options,
		     const struct commit_history *h)
{
	AUTO(mem_freep) char *build = options->build ? secret_word(options->build) : NULL;
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < h->commits.count; i++)
		hash = hash_bytes(hash, h->commits.items[i], strlen(h->commits.items[i]));
	strbuf_addf(identity, "good %s\nbad %s\ncommits %zu %016llx\n", h->commits.items[0],
		    h->commits.items[h->commits.count - 1], h->commits.count,
		    (unsigned long long)hash);
	strbuf_addf(identity, "first-parent %d\nprefix %s\n", options->first_parent, h->prefix);
	if (build)
		strbuf_addf(identity, "build %zu:%s\n", strlen(build), build);
	if (options->signature)
		strbuf_addf(identity, "signature %s\n", options->signature);
}

/* Everything between the command line and the result that must outlive the result. */
struct bisecting {
	struct trial_setup setup;
	struct commit_history history;
	struct case_store *cs;
};

static void bisecting_deinit(struct bisecting *b)
{
	case_close(b->cs);
	history_close(&b->history);
	trial_setup_deinit(&b->setup);
}

static int bisect(const struct invocation *inv, struct bisecting *b, struct bisect_result *result,
		  struct err *err)
{
	const struct bisect_options *options = inv->options;
	struct progress progress;
	struct bisect_request request = {
		.settings = &b->setup.settings,
		.history = &b->history,
		.first_parent = options->first_parent,
		.program = inv->program,
		.slot_env = &b->setup.slot_env,
		.build = options->build,
		.signature = options->signature,
		.jobs = (unsigned int)(options->trial.jobs > 0 ? options->trial.jobs
							       : trial_options_cores()),
		.spare = options->trial.jobs == 0,
		.trees = (unsigned int)options->worktrees,
		.confidence = options->confidence,
		.careful = options->careful,
		.clean_limit = options->clean_limit,
		.fresh = options->trial.fresh,
		.progress = show,
		.progress_ctx = &progress,
	};
	int r = read_rate(options->rate, &request, err);

	if (r == 0)
		r = trial_setup_init_later(&b->setup, &options->trial, "bisect", inv->program, err);
	if (r == 0)
		r = history_open(&(struct history_request){ .dir = options->trial.cwd,
							    .good = inv->args[0],
							    .bad = inv->args[1],
							    .first_parent = options->first_parent },
				 &b->history, err);
	if (r == 0)
		r = trial_setup_open(&b->setup, options->common.case_dir, &b->cs, err);
	if (r == 0 && !options->rate)
		r = recall_rate(b->cs, &request, err);
	if (r < 0)
		return r;
	request.observer = b->setup.observer;
	identify(&b->setup.identity, options, &b->history);
	request.identity = trial_setup_identity(&b->setup, "bisect");
	progress_init(&progress);
	r = bisect_run(b->cs, &request, result, err);
	progress_end(&progress);
	return r;
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct bisect_options *options = inv->options;
	AUTO(bisecting_deinit) struct bisecting b = { 0 };
	AUTO(bisect_result_deinit) struct bisect_result result = { 0 };
	int r = bisect(inv, &b, &result, err);

	if (r < 0)
		return r;
	if (options->common.json)
		report_bisect_json(&result, stdout);
	else
		report_bisect_text(&result, stdout);
	return common_exit(result.interrupted, result.verdict != BISECTED_NEVER);
}

const struct command cmd_bisect = {
	.name = "bisect",
	.summary = "Which commit brought it, when every 'good' may be luck",
	.usage = "[options] GOOD BAD [--build CMD] -- PROGRAM ARGS…",
	.description =
		"Looks for the commit between GOOD and BAD since which the program fails now and "
		"then. A failure points to that commit or an older one; a pass is evidence, no "
		"proof. Each trial is made at the commit that tells most, until one commit is as "
		"likely as --confidence asks for. That GOOD was luck, or that BAD never fails, are "
		"answers, too.\n\n"
		"Commits are checked out into git worktrees inside the case, and the program runs "
		"there: in the same subdirectory as the current one (or --cwd), with relative paths "
		"leading there. Your own checkout stays as it is. A worktree has only what git and "
		"--build put there, and no submodules unless --build fetches them (git submodule update "
		"--init); name other files by their full path. Slots share it, so a program "
		"that builds by itself belongs into --build, or wants -j 1. The worktrees are removed "
		"at the end.\n\n"
		"A commit that cannot be built, does not have the program, or where that ends with "
		"status 125 is skipped; when that leaves several, they are named. In a history with "
		"merges each commit stands for itself and what it descends from, as with git bisect; "
		"--first-parent looks at the main line only.\n\n"
		"Trials run one after another while they take less than half a second, and on all "
		"cores when they take longer. A trial that begins before others have ended is chosen "
		"without knowing what they tell, so some more are needed. -j sets how many run at once.\n\n"
		"Everything is kept in the case directory, and the same command goes on where it "
		"was. What counts as a failure is said as for repro.",
	.examples = "  redhand bisect v1.4 HEAD --build 'make -j8' -- ./mytests --filter Cache\n"
		    "      which commit since v1.4 made it flaky?\n\n"
		    "  redhand bisect --rate 9/50 v1.4 HEAD -- python3 tests/test_grad.py\n"
		    "      repro has seen 9 of 50 runs fail: fewer trials are needed\n",
	TRIAL_OPTIONS(struct bisect_options, "What to bisect", bisect_option_table),
	.args_min = 2,
	.args_max = 2,
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
