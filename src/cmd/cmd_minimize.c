/* `redhand minimize`: options, the list of tests, the search, the list that was found. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "report/report_minimize.h"
#include "studies/series/minimize.h"
#include "studies/series/target.h"

struct minimize_options {
	struct common_options common;
	struct trial_options trial;
	unsigned int framework;
	const char *tests;
	const char *shrink;
	const char *victim;
	const char *signature;
	double confidence;
	uint64_t baseline;
	const char *seed; /* text, because 0 is a seed, too */
};

static const char *const framework_names[] = { "auto",	   "pytest", "gtest", "ctest",
					       "unittest", "list",   "usage", NULL };

static const struct option minimize_option_table[] = {
	OPTION(CHOICE, "framework", "NAME", offsetof(struct minimize_options, framework),
	       "How the program takes a list of tests: auto (default: told from the command), "
	       "pytest, gtest, ctest, unittest; usage: the program's own --help says how it lists its "
	       "tests and takes their names, [--list] [NAME...]; or list, with --tests and {tests}, {tests:SEP} "
	       "or {tests_file} in the command where the tests go",
	       .choices = framework_names),
	OPTION(TEXT, "tests", "FILE", offsetof(struct minimize_options, tests),
	       "The full list for --framework list: one test a line, in the order in which they "
	       "run; empty lines and those that begin with # are skipped"),
	OPTION(TEXT, "shrink", "WHAT", offsetof(struct minimize_options, shrink),
	       "Minimise something else than tests: env (environment variables), args (the "
	       "program's arguments), or the lines of a file that the command names"),
	OPTION(TEXT, "victim", "NAME", offsetof(struct minimize_options, victim),
	       "The test that fails; it stays in every list, and nothing runs after it (default: "
	       "the one that was running when the full list failed)"),
	OPTION(TEXT, "signature", "ID", offsetof(struct minimize_options, signature),
	       "The failure to chase, by the id that repro prints (default: the crash that the "
	       "full list shows most often)"),
	OPTION(SHARE, "confidence", "P", offsetof(struct minimize_options, confidence),
	       "How sure to be that each test of the list is needed (default 0.99)"),
	OPTION(COUNT, "baseline", "N", offsetof(struct minimize_options, baseline),
	       "Give up when N runs of the full list have been clean (default 300)", .min = 1,
	       .max = 1000000),
	OPTION(TEXT, "seed", "N", offsetof(struct minimize_options, seed),
	       "Seed for what is tried in random order (default: a new one, printed at the end)"),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct minimize_options *options = ptr;

	options->confidence = 0.99;
	options->baseline = 300;
}

static int check(const struct minimize_options *options, struct err *err)
{
	const char *framework = framework_names[options->framework];
	bool list = strcmp(framework, "list") == 0 || strcmp(framework, "auto") == 0;

	if (options->shrink && (options->tests || options->victim || options->framework != 0))
		return err_set(err, -EINVAL,
			       "--shrink does not go together with --framework, "
			       "--tests or --victim, which are about tests");
	if (options->tests && !list)
		return err_set(err, -EINVAL,
			       "--tests is for --framework list; %s lists its tests "
			       "itself",
			       framework);
	return 0;
}

static void show(void *ctx, const struct minimize_view *view)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	progress_add_minimized(&sb, view);
	if (view->to_go >= 1 && view->ran > 0) {
		strbuf_adds(&sb, " (");
		progress_add_time(&sb, view->to_go * view->seconds / (double)view->ran);
		strbuf_addc(&sb, ')');
	}
	progress_say(ctx, view->seconds, strbuf_str(&sb),
		     &(struct progress_news){ view->news_trial, view->news_summary });
}

/* Everything between the command line and the result that must outlive the result. */
struct minimizing {
	struct trial_setup setup;
	struct framework framework;
	struct test_names names;
	struct case_store *cs;
};

static void minimizing_deinit(struct minimizing *m)
{
	case_close(m->cs);
	test_names_deinit(&m->names);
	framework_deinit(&m->framework);
	trial_setup_deinit(&m->setup);
}

static int list_items(const struct invocation *inv, struct minimizing *m, struct err *err)
{
	const struct minimize_options *options = inv->options;
	int r = check(options, err);

	if (r == 0)
		r = trial_setup_init(&m->setup, &options->trial, "minimize", inv->program, err);
	if (r == 0)
		r = framework_init(&m->framework,
				   &(struct framework_setup){
					   .name = framework_names[options->framework],
					   .program = inv->program,
					   .cwd = options->trial.cwd,
					   .stdin_path = options->trial.stdin_path,
					   .env = &m->setup.slot_env,
					   .tests_path = options->tests,
					   .shrink = options->shrink,
					   .timeout_ns = options->trial.timeout_ns,
				   },
				   err);
	if (r < 0)
		return r;
	test_names_init(&m->names, &m->framework.items);
	m->setup.settings.tests = &m->names;
	if (options->victim && test_names_find(&m->names, options->victim) == TEST_NAMES_NONE)
		return err_set(err, -ENOENT, "the list of %zu tests does not have the victim '%s'",
			       m->framework.items.count, options->victim);
	return 0;
}

/* Before a series is made for it. */
static int check_signature(struct case_store *cs, const char *id, struct err *err)
{
	AUTO(target_deinit) struct target target = { 0 };

	return target_set(&target, cs, id, err);
}

static int minimize(const struct invocation *inv, struct minimizing *m,
		    struct minimize_result *result, struct err *err)
{
	const struct minimize_options *options = inv->options;
	struct progress progress;
	struct minimize_request request = {
		.settings = &m->setup.settings,
		.framework = &m->framework,
		.slot_env = &m->setup.slot_env,
		.jobs = (unsigned int)options->trial.jobs,
		.confidence = options->confidence,
		.victim = options->victim,
		.signature = options->signature,
		.baseline = options->baseline,
		.fresh = options->trial.fresh,
		.progress = show,
		.progress_ctx = &progress,
	};
	int r = trial_seed(options->seed, &request.seed, err);

	if (r == 0 && options->signature)
		r = common_need_case(&options->common, err);
	if (r == 0)
		r = list_items(inv, m, err);
	if (r == 0)
		r = trial_setup_open(&m->setup, options->common.case_dir, &m->cs, err);
	if (r == 0 && options->signature)
		r = check_signature(m->cs, options->signature, err);
	if (r < 0)
		return r;
	request.observer = m->setup.observer;
	minimize_identify(&m->framework,
			  &(struct minimize_question){ .confidence = options->confidence,
						       .victim = options->victim,
						       .signature = options->signature,
						       .seed = options->seed },
			  &m->setup.identity);
	request.identity = trial_setup_identity(&m->setup, "minimize");
	progress_init(&progress);
	r = minimize_run(m->cs, &request, result, err);
	trial_progress_end(&progress, result->program_changed);
	return r;
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct minimize_options *options = inv->options;
	AUTO(minimizing_deinit) struct minimizing m = { 0 };
	AUTO(minimize_result_deinit) struct minimize_result result = { 0 };
	int r = minimize(inv, &m, &result, err);

	if (r < 0)
		return r;
	if (options->common.json)
		report_minimize_json(&result, stdout);
	else
		report_minimize_text(&result, stdout);
	return result.interrupted ? EXIT_INTERRUPTED : EXIT_FOUND;
}

const struct command cmd_minimize = {
	.name = "minimize",
	.summary =
		"The smallest ordered list of tests that still brings the failure out, with proof",
	.usage = "[options] -- PROGRAM ARGS…",
	.description =
		"Runs the full list of tests until it is clear which failure to chase and how often it "
		"comes, then shorter lists, each chosen so that its outcome tells most, until every "
		"test that is left is needed with the confidence asked for. A pass is evidence, not "
		"proof; failures of other kinds are counted and listed, never taken for this one. A "
		"trial ends as soon as the victim, the test that fails, has passed.\n\n"
		"The result is the list in order, a table of proof (the full list, the minimal list, "
		"the minimal list without each single test), whether the order matters, the plain "
		"command that runs it, and the same list as a file.\n\n"
		"Everything is kept in the case directory: after Ctrl-C, which prints the best list so "
		"far, or even kill -9 the same command goes on where it was.\n\n"
		"A run of a list says nothing, and is not counted, when the command exits with status "
		"125, when other tests start than those that were asked for, or when the framework "
		"reports wrong usage. Programs without a known framework can print a line "
		"'REDHAND> NAME' when a test starts.\n\n"
		"Exit status 1: a list was found (there is a failure). 2: also when the full list never "
		"fails. 0 does not occur.",
	.examples = "  redhand minimize -- pytest tests\n"
		    "      which tests make a later one crash?\n\n"
		    "  redhand minimize -- ./mytests --gtest_filter='Cache*'\n"
		    "      the same for a googletest program\n\n"
		    "  redhand minimize --tests names.txt -- ./run_tests {tests}\n"
		    "      for any program that takes names of tests as arguments\n\n"
		    "  redhand minimize --shrink input.json -- ./parser input.json\n"
		    "      which lines of a file are needed to bring it down?\n",
	TRIAL_OPTIONS(struct minimize_options, "What to minimise", minimize_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
