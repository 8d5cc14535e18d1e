#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "engine/growth/growth.h"
#include "report/report_growth.h"

struct heap_options {
	struct common_options common;
	struct trial_options trial;
	bool growth;
	uint64_t trials;
};

#define TRIALS_DEFAULT 3

static const struct option heap_option_table[] = {
	{ .name = "growth",
	  .kind = OPTION_FLAG,
	  .offset = offsetof(struct heap_options, growth),
	  .help = "Which sites allocate blocks that stay, test after test" },
	{ .name = "trials",
	  .letter = 'n',
	  .kind = OPTION_COUNT,
	  .metavar = "N",
	  .min = 1,
	  .max = 1000,
	  .offset = offsetof(struct heap_options, trials),
	  .help = "Run the program N times (default 3); what does not grow in every run is not "
		  "named" },
	OPTIONS_END,
};

static const struct option_group groups[] = {
	{ .title = "What to look for", .options = heap_option_table },
	TRIAL_GROUP(struct heap_options),
	COMMON_GROUP(struct heap_options),
	OPTION_GROUPS_END,
};

static void defaults(void *ptr)
{
	struct heap_options *options = ptr;

	options->common.case_dir = CASE_DIR_DEFAULT;
	options->trials = TRIALS_DEFAULT;
	trial_options_defaults(&options->trial);
	options->trial.observe = OBSERVE_IDS;
}

static int check(const struct heap_options *options, struct err *err)
{
	if (!options->growth) {
		(void)err_set(err, -EINVAL, "heap does not know what to look for");
		return err_remedy(err,
				  "redhand heap --growth -- PROGRAM ARGS… finds what grows from "
				  "test to test; --growth is all it can do so far");
	}
	if (options->trial.observe != OBSERVE_IDS)
		return err_set(err, -EINVAL,
			       "--growth follows every allocation, so it needs --observe ids");
	return 0;
}

static int growth(const struct invocation *inv, struct growth_report *report,
		  struct case_store **cs, struct err *err)
{
	const struct heap_options *options = inv->options;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	struct progress progress;
	struct growth_request request = {
		.settings = &setup.settings,
		.program = inv->program,
		.slot_env = &setup.slot_env,
		.jobs = (unsigned int)options->trial.jobs,
		.trials = (unsigned int)options->trials,
		.progress = progress_show,
		.progress_ctx = &progress,
	};
	int r = check(options, err);

	if (r == 0)
		r = trial_setup_init(&setup, &options->trial, "heap", inv->program, err);
	if (r == 0 && setup.unobserved)
		r = err_set(err, -ENOTSUP, "%s: what it allocates cannot be seen",
			    setup.unobserved);
	if (r == 0)
		r = trial_setup_open(&setup, options->common.case_dir, cs, err);
	if (r < 0)
		return r;
	request.identity = trial_setup_identity(&setup, "heap");
	progress_init(&progress);
	r = growth_run(*cs, &request, report, err);
	progress_end(&progress);
	return r;
}

static int run(const struct invocation *inv)
{
	const struct heap_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(growth_report_deinit) struct growth_report report = { 0 };
	struct err err = { 0 };

	common_apply(&options->common);
	if (growth(inv, &report, &cs, &err) < 0) {
		log_err(&err);
		return EXIT_TROUBLE;
	}
	if (options->common.json)
		report_growth_json(&report, stdout);
	else
		report_growth_text(&report, options->common.verbose, stdout);
	if (report.interrupted)
		return EXIT_INTERRUPTED;
	return report.sites.count > 0 ? EXIT_FOUND : EXIT_AS_EXPECTED;
}

const struct command cmd_heap = {
	.name = "heap",
	.summary = "Which sites allocate blocks that stay, test after test",
	.usage = "--growth [options] -- PROGRAM ARGS…",
	.description =
		"Runs a program with many tests a few times, counts the live blocks of every "
		"allocation context after each test, and names the sites whose count keeps rising "
		"and never comes back: caches that nobody empties, objects that nobody removes. Leak "
		"checkers miss these, since all of it is still pointed to.\n\n"
		"Between which tests growth is told: lines that match --breadcrumb, if it is given; "
		"else lines that test frameworks print when a test starts or ends (googletest, pytest "
		"-v, unittest -v, Rust, Go, ctest, TAP); else every line.\n\n"
		"What fills up and then stays, is set up once at the start, or goes up and down is not "
		"named, and neither is what does not grow in every run. A cache that is larger than "
		"the run is long cannot be told from growth: repeat the tests to be sure. At "
		"least five tests in one process are needed. Growth is measured anew each time.",
	.examples = "  redhand heap --growth -- ./mytests --gtest_repeat=5\n"
		    "      what grows from test to test?\n\n"
		    "  redhand heap --growth --breadcrumb '^request' -- ./server --self-test\n"
		    "      from request to request\n",
	.groups = groups,
	.options_size = sizeof(struct heap_options),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
