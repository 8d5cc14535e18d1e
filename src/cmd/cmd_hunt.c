#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "engine/hunt/hunt.h"
#include "engine/investigation/investigation.h"
#include "engine/stats/rng.h"
#include "report/report_investigation.h"

struct hunt_options {
	struct common_options common;
	struct trial_options trial;
	uint64_t budget_ns;
	uint64_t trials;
	const char *signature;
	unsigned int framework;
	const char *tests;
};

#define BUDGET_DEFAULT_NS (30ull * 60 * 1000000000)

/* As for minimize, and none. */
static const char *const framework_choices[] = { "auto",  "none",     "pytest", "gtest",
						 "ctest", "unittest", "list",	NULL };
#define FRAMEWORK_AUTO 0
#define FRAMEWORK_NONE 1

static const struct option hunt_option_table[] = {
	{ .name = "budget",
	  .kind = OPTION_DURATION,
	  .metavar = "TIME",
	  .offset = offsetof(struct hunt_options, budget_ns),
	  .help = "How long the hunt may take (10m, 2h; default 30m)" },
	{ .name = "trials",
	  .letter = 'n',
	  .kind = OPTION_COUNT,
	  .metavar = "N",
	  .min = 1,
	  .offset = offsetof(struct hunt_options, trials),
	  .help = "Run the program at most N times in all (default: no limit but the time)" },
	{ .name = "signature",
	  .kind = OPTION_TEXT,
	  .metavar = "ID",
	  .offset = offsetof(struct hunt_options, signature),
	  .help = "Hunt this failure (default: the crash that comes and goes most often)" },
	{ .name = "framework",
	  .kind = OPTION_CHOICE,
	  .metavar = "NAME",
	  .choices = framework_choices,
	  .offset = offsetof(struct hunt_options, framework),
	  .help = "The program's test framework, whose list of tests is made shorter first: none, or "
		  "as for minimize (default: found out)" },
	{ .name = "tests",
	  .kind = OPTION_TEXT,
	  .metavar = "FILE",
	  .offset = offsetof(struct hunt_options, tests),
	  .help = "Names of tests, one a line, for --framework list; {tests} in the program's "
		  "arguments is replaced by them" },
	OPTIONS_END,
};

static const struct option_group groups[] = {
	{ .title = "The hunt", .options = hunt_option_table },
	TRIAL_GROUP(struct hunt_options),
	COMMON_GROUP(struct hunt_options),
	OPTION_GROUPS_END,
};

static void defaults(void *ptr)
{
	struct hunt_options *options = ptr;

	options->common.case_dir = CASE_DIR_DEFAULT;
	options->budget_ns = BUDGET_DEFAULT_NS;
	trial_options_defaults(&options->trial);
}

/* Everything between the command line and the result. */
struct hunting {
	struct trial_setup plain, close, list; /* list: of the search for a shorter one */
	struct framework framework;
	struct test_names names;
	bool has_tests;
	struct strv whole; /* the command with its whole list of tests, if it has a place for it */
	char *const *program;
	struct case_store *cs;
	struct progress progress;
};

static void hunting_deinit(struct hunting *h)
{
	case_close(h->cs);
	test_names_deinit(&h->names);
	framework_deinit(&h->framework);
	trial_setup_deinit(&h->list);
	trial_setup_deinit(&h->close);
	trial_setup_deinit(&h->plain);
	strv_deinit(&h->whole);
}

static void say(void *ctx, const char *stage, const char *line)
{
	log_note("%s: %s", stage, line);
}

static void show_minimize(void *ctx, const struct minimize_view *view)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_addf(&sb, "%s: %zu of %zu left, %llu trials", view->phase, view->left, view->total,
		    (unsigned long long)view->trials);
	progress_say(ctx, view->seconds, strbuf_str(&sb),
		     &(struct progress_news){ view->news_trial, view->news_summary });
}

/* A list of tests is taken where there is one; the user's own choice must work. */
static int find_tests(const struct invocation *inv, struct hunting *h, struct err *err)
{
	const struct hunt_options *options = inv->options;
	bool asked = options->framework != FRAMEWORK_AUTO || options->tests;
	struct err ignored = { 0 };
	int r;

	if (options->framework == FRAMEWORK_NONE)
		return 0;
	r = framework_init(&h->framework,
			   &(struct framework_setup){ .name = framework_choices[options->framework],
						      .program = inv->program,
						      .cwd = options->trial.cwd,
						      .stdin_path = options->trial.stdin_path,
						      .env = &h->plain.slot_env,
						      .tests_path = options->tests,
						      .timeout_ns = options->trial.timeout_ns },
			   asked ? err : &ignored);
	/* Recognised, and yet it has no list: worth knowing. */
	if (r < 0 && !asked && h->framework.ops)
		log_note("the tests are left as they are: %s", ignored.message);
	if (r < 0)
		return asked ? r : 0;
	h->has_tests = h->framework.items.count > 1;
	if (!h->has_tests)
		return 0;
	test_names_init(&h->names, &h->framework.items);
	return 0;
}

static int set_up(const struct invocation *inv, struct hunting *h, struct err *err)
{
	const struct hunt_options *options = inv->options;
	struct trial_options close = options->trial;
	AUTO(mem_freep) char *reason = NULL;
	struct err unwatched = { 0 };
	int r = trial_setup_init(&h->plain, &options->trial, "hunt", inv->program, err);

	close.observe = OBSERVE_WATCH;
	h->program = inv->program;
	if (r == 0)
		r = find_tests(inv, h, err);
	if (r == 0 && h->has_tests && framework_whole(&h->framework, &h->whole)) {
		h->program = h->whole.items;
		trial_setup_deinit(&h->plain);
		h->plain = (struct trial_setup){ 0 };
		r = trial_setup_init(&h->plain, &options->trial, "hunt", h->program, err);
	}
	if (r == 0)
		r = trial_setup_init(&h->close, &close, "chase", h->program, err);
	/* Where nothing can be watched, the other steps of a hunt are still worth their while. */
	if (r == 0 && trial_setup_watch(&h->close, WATCH_AUTO, &reason, &unwatched) < 0)
		log_note("%s", unwatched.message);
	if (reason)
		log_note("watching through ptrace: %s", reason);
	if (r == 0)
		r = trial_setup_init(&h->list, &options->trial, "minimize", inv->program, err);
	if (r == 0)
		r = trial_setup_open(&h->plain, options->common.case_dir, &h->cs, err);
	if (r < 0)
		return r;
	trial_setup_join(&h->close, &h->plain);
	trial_setup_join(&h->list, &h->plain);
	if (h->has_tests)
		h->plain.settings.tests = &h->names;
	return 0;
}

static int hunt(const struct invocation *inv, struct hunting *h, struct hunt_result *result,
		struct err *err)
{
	const struct hunt_options *options = inv->options;
	struct hunt_request request = { .jobs = (unsigned int)options->trial.jobs,
					.signature = options->signature,
					.budget_s = (double)options->budget_ns / 1e9,
					.budget_trials = options->trials,
					.fresh = options->trial.fresh,
					.progress = progress_show,
					.progress_ctx = &h->progress,
					.minimize_progress = show_minimize,
					.say = say };
	int r = set_up(inv, h, err);

	if (r < 0)
		return r;
	request.program = h->program;
	request.program_path = h->plain.program_path;
	request.slot_env = &h->plain.slot_env;
	request.plain = (struct hunt_look){ .settings = &h->plain.settings,
					    .identity = trial_setup_identity(&h->plain, "hunt"),
					    .observer = h->plain.observer };
	request.close = (struct hunt_look){ .settings = &h->close.settings,
					    .identity = trial_setup_identity(&h->close, "chase"),
					    .observer = OBSERVE_WATCH };
	request.minimize = trial_setup_identity(&h->list, "minimize");
	request.framework = h->has_tests ? &h->framework : NULL;
	request.seed = rng_fresh_seed();
	progress_init(&h->progress);
	r = hunt_run(h->cs, &request, result, err);
	progress_end(&h->progress);
	return r;
}

static int work(const struct invocation *inv, struct err *err)
{
	const struct hunt_options *options = inv->options;
	AUTO(hunting_deinit) struct hunting h = { 0 };
	AUTO(investigation_deinit) struct investigation investigation = { 0 };
	struct hunt_result result = { 0 };
	int r = hunt(inv, &h, &result, err);

	if (r == 0)
		r = investigation_read(h.cs, &investigation, err);
	if (r < 0)
		return r;
	investigation.seconds = result.seconds;
	investigation.interrupted = result.interrupted;
	if (options->common.json)
		report_hunt_json(&investigation, stdout);
	else
		report_verdict_text(&investigation, common_colour(), stdout);
	if (result.interrupted)
		return EXIT_INTERRUPTED;
	return result.failed ? EXIT_FOUND : EXIT_AS_EXPECTED;
}

static int run(const struct invocation *inv)
{
	const struct hunt_options *options = inv->options;

	return common_run(&options->common, work, inv);
}

const struct command cmd_hunt = {
	.name = "hunt",
	.summary = "From a command that fails now and then to the cause, stage by stage",
	.usage = "[options] -- PROGRAM ARGS…",
	.description =
		"Runs the program until it is clear how often it fails and in which way; makes its list "
		"of tests shorter, if it has one; reads back from the crash where its bad value came "
		"from; watches these places in further runs until somebody is caught; and ends with a "
		"verdict: what was damaged, by whom, in how many of the trials that could show it. Where "
		"nothing crashes it asks whether something grows from test to test. What it decides and "
		"why is kept in the case, and so is the evidence: redhand report prints it all.\n\n"
		"A verdict never says more than was seen. When nobody was caught it says what remains "
		"open and which experiment to try next.",
	.examples = "  redhand hunt -- ./mytests\n"
		    "      why does it crash one time in five?\n\n"
		    "  redhand hunt --budget 2h -- pytest tests\n"
		    "      with a shorter list of tests first\n",
	.groups = groups,
	.options_size = sizeof(struct hunt_options),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
