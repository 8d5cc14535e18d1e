/* `redhand hunt`: options, looks and budget, the hunt, the verdict and report.md. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/talk.h"
#include "base/value.h"
#include "cmd/hunt_board.h"
#include "cmd/sentinel_readme.h"
#include "cmd/trial_options.h"
#include "hunt/hunt.h"
#include "report/report_investigation.h"
#include "search/stats/rng.h"
#include "studies/overview/case_investigation.h"

struct hunt_options {
	struct common_options common;
	struct trial_options trial;
	const char *budget; /* text: a time, a number of trials or of failing ones */
	uint64_t trials;
	const char *signature;
	unsigned int framework;
	const char *tests;
	const char *sentinel;
};

#define BUDGET_DEFAULT "30m"
#define BUDGET_TRIALS "trials"
#define BUDGET_FAILURES "failures"

/* Of the budget: what runs longer than this hangs, unless --timeout says otherwise. With fewer
 * trials than that nothing could be learnt anyway. */
#define HANG_SHARE 6
#define HANG_LEAST_NS 10000000000u

/* As for minimize, and none. */
static const char *const framework_choices[] = { "auto",     "none", "pytest", "gtest", "ctest",
						 "unittest", "list", "usage",  NULL };
#define FRAMEWORK_AUTO 0
#define FRAMEWORK_NONE 1

static const struct option hunt_option_table[] = {
	OPTION(TEXT, "budget", "TIME", offsetof(struct hunt_options, budget),
	       "How long the hunt may take (10m, 2h; default " BUDGET_DEFAULT
	       "), or how many trials (500trials), or how many of them may fail (6failures), or "
	       "several of these with commas"),
	OPTION(COUNT, "trials", "N", offsetof(struct hunt_options, trials),
	       "Run the program at most N times in all (default: no limit but the time); the same "
	       "as --budget Ntrials",
	       .letter = 'n', .min = 1),
	OPTION(TEXT, "signature", "ID", offsetof(struct hunt_options, signature),
	       "Hunt this failure (default: the crash that comes and goes most often)"),
	OPTION(CHOICE, "framework", "NAME", offsetof(struct hunt_options, framework),
	       "The program's test framework, whose list of tests is made shorter: none, or "
	       "as for minimize (default: found out)",
	       .choices = framework_choices),
	OPTION(TEXT, "tests", "FILE", offsetof(struct hunt_options, tests),
	       "Names of tests, one a line, for --framework list; {tests} in the program's "
	       "arguments is replaced by them"),
	OPTION(TEXT, "sentinel", "DIR", offsetof(struct hunt_options, sentinel),
	       "Where to write the sentinel that can tell when it is fixed (default: sentinel in "
	       "the case directory)"),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct hunt_options *options = ptr;

	options->trial.jobs = 0; /* as many as the trials leave room for */
}

/* Everything between the command line and the result. */
struct hunting {
	struct trial_setup plain, close, list; /* list: of the search for a shorter one */
	struct framework framework;
	struct test_names names;
	bool has_tests;
	char *const *program; /* what is run: the user's words, or `filled` */
	struct strv filled;   /* with all tests in the place for them */
	struct case_store *cs;
	struct readings readings; /* trials that are asked for in more than one stage */
	struct hunt_board board;
	struct trial_options trial; /* as they were given, with a number of slots */
	bool jobs_free;		    /* nobody said how many slots */
	uint64_t budget_ns, budget_trials, budget_failures; /* trials 0: any number */
	struct err no_tests;				    /* why there are none to choose from */
};

static void hunting_deinit(struct hunting *h)
{
	readings_deinit(&h->readings);
	case_close(h->cs);
	test_names_deinit(&h->names);
	strv_deinit(&h->filled);
	framework_deinit(&h->framework);
	trial_setup_deinit(&h->list);
	trial_setup_deinit(&h->close);
	trial_setup_deinit(&h->plain);
}

/* "500trials": the number before the unit. */
static bool has_unit(char *word, const char *unit)
{
	size_t len = strlen(word), end = strlen(unit);

	if (len <= end || strcmp(word + len - end, unit) != 0)
		return false;
	word[len - end] = '\0';
	return true;
}

/* "10m", "500trials", "10m,500trials,6failures". */
static int take_budget(const struct hunt_options *options, struct hunting *h, struct err *err)
{
	const char *text = options->budget ? options->budget : BUDGET_DEFAULT;
	int r = value_duration(BUDGET_DEFAULT, &h->budget_ns, err);

	h->budget_trials = options->trials;
	while (r == 0 && *text != '\0') {
		size_t len = strcspn(text, ",");
		AUTO(mem_freep) char *word = mem_strndup(text, len);

		if (has_unit(word, BUDGET_TRIALS))
			r = value_count(word, 1, 0, &h->budget_trials, err);
		else if (has_unit(word, BUDGET_FAILURES))
			r = value_count(word, 1, 0, &h->budget_failures, err);
		else
			r = value_duration(word, &h->budget_ns, err);
		text += len + (text[len] == ',');
	}
	return r < 0 ? err_set_prefix(err, "--budget") : 0;
}

/* A trial that hangs would take the whole budget with it. No part of what the series is known by:
 * another budget goes on with the same trials. */
static void limit_time(struct trial_settings *settings, uint64_t budget_ns)
{
	uint64_t most = budget_ns / HANG_SHARE;

	if (settings->timeout_ns == 0 && budget_ns > 0)
		settings->timeout_ns = most > HANG_LEAST_NS ? most : HANG_LEAST_NS;
}

/* A list of tests is taken where there is one; the user's own choice must work. */
static int find_tests(const struct invocation *inv, struct hunting *h, struct err *err)
{
	const struct hunt_options *options = inv->options;
	bool asked = options->framework != FRAMEWORK_AUTO || options->tests;
	int r;

	if (options->framework == FRAMEWORK_NONE) {
		(void)err_set(&h->no_tests, -ENOENT, "no test framework was asked for");
		return 0;
	}
	r = framework_init(&h->framework,
			   &(struct framework_setup){ .name = framework_choices[options->framework],
						      .program = inv->program,
						      .cwd = options->trial.cwd,
						      .stdin_path = options->trial.stdin_path,
						      .env = &h->list.slot_env,
						      .tests_path = options->tests,
						      .timeout_ns = h->list.settings.timeout_ns },
			   asked ? err : &h->no_tests);
	if (r < 0)
		return asked ? r : 0;
	h->has_tests = h->framework.items.count > 1;
	if (!h->has_tests)
		return 0;
	if (h->framework.found_out)
		log_note(
			"%s --help says that %s lists its tests and that names choose them: it was run "
			"with both, and has %zu tests (--framework none leaves that out)",
			inv->program[0], h->framework.found_out, h->framework.items.count);
	test_names_init(&h->names, &h->framework.items);
	return 0;
}

/* A command with a place for tests runs them all until fewer are known to do. */
static void fill_in(const struct invocation *inv, struct hunting *h)
{
	h->program = inv->program;
	if (h->has_tests && framework_whole(&h->framework, &h->filled))
		h->program = h->filled.items;
}

static int set_up_looks(const struct invocation *inv, struct hunting *h, struct err *err)
{
	struct trial_options close = h->trial;
	AUTO(mem_freep) char *reason = NULL;
	struct err unwatched = { 0 };
	int r = trial_setup_init(&h->plain, &h->trial, "hunt", h->program, err);

	close.observe = OBSERVE_WATCH;
	if (r == 0)
		r = trial_setup_init(&h->close, &close, "chase", h->program, err);
	if (r < 0)
		return r;
	/* Where nothing can be watched, the other steps of a hunt are still worth their while. */
	if (h->close.observer != OBSERVE_NONE &&
	    trial_setup_watch(&h->close, WATCH_AUTO, &reason, &unwatched) < 0)
		log_note("%s", unwatched.message);
	if (reason)
		log_note("watching through ptrace: %s", reason);
	limit_time(&h->plain.settings, h->budget_ns);
	limit_time(&h->close.settings, h->budget_ns);
	return 0;
}

/* One that the case does not know may still come; what is no id never will. */
static int check_signature(const char *id, struct err *err)
{
	if (!id ||
	    (strlen(id) == SIGNATURE_ID_LEN && strspn(id, "0123456789abcdef") == SIGNATURE_ID_LEN))
		return 0;
	(void)err_set(err, -EINVAL, "--signature '%s' is no signature: %d digits as in 0c5e9a61b2",
		      id, SIGNATURE_ID_LEN);
	return err_set_remedy(err, "redhand case show lists those that were seen");
}

static int set_up(const struct invocation *inv, struct hunting *h, struct err *err)
{
	const struct hunt_options *options = inv->options;
	int r = take_budget(options, h, err);

	h->trial = options->trial;
	/* As many workers were asked for as there are slots. */
	h->jobs_free = h->trial.jobs == 0 && !h->trial.elsewhere.runner;
	if (h->trial.jobs == 0)
		h->trial.jobs = trial_options_cores();
	if (r == 0)
		r = check_signature(options->signature, err);
	if (r == 0)
		r = trial_setup_init(&h->list, &h->trial, "minimize", inv->program, err);
	limit_time(&h->list.settings, h->budget_ns);
	if (r == 0)
		r = find_tests(inv, h, err);
	fill_in(inv, h);
	if (r == 0)
		r = set_up_looks(inv, h, err);
	if (r == 0)
		r = trial_setup_open(&h->plain, options->common.case_dir, &h->cs, err);
	if (r < 0)
		return r;
	h->plain.settings.shared.readings = &h->readings;
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
	struct hunt_request request = { .signature = options->signature,
					.sentinel_dir = options->sentinel,
					.sentinel_words = &sentinel_words,
					.fresh = options->trial.fresh };
	int r = set_up(inv, h, err);

	if (r < 0)
		return r;
	h->plain.settings.flags |= TRIAL_PYTHON;
	h->close.settings.flags |= TRIAL_PYTHON;
	request.jobs = (unsigned int)h->trial.jobs;
	request.jobs_free = h->jobs_free;
	request.program = h->program;
	request.program_path = h->plain.program_path;
	request.slot_env = &h->plain.slot_env;
	request.plain = (struct hunt_look){ .settings = &h->plain.settings,
					    .identity = trial_setup_identity(&h->plain, "hunt"),
					    .observer = h->plain.observer };
	request.close = (struct hunt_look){ .settings = &h->close.settings,
					    .identity = trial_setup_identity(&h->close, "chase"),
					    .observer = h->close.observer };
	request.minimize = trial_setup_identity(&h->list, "minimize");
	request.framework = h->has_tests ? &h->framework : NULL;
	request.no_framework = h->no_tests.message[0] != '\0' ? h->no_tests.message : NULL;
	request.seed = rng_fresh_seed();
	request.budget_s = (double)h->budget_ns / 1e9;
	request.budget_trials = h->budget_trials;
	request.budget_failures = h->budget_failures;
	if (options->trial.timeout_ns == 0)
		request.hangs_s = (double)h->plain.settings.timeout_ns / 1e9;
	hunt_board_init(&h->board, request.budget_s);
	request.show = hunt_board_show(&h->board);
	r = hunt_run(h->cs, &request, result, err);
	hunt_board_end(&h->board);
	return r;
}

/* The case in words, beside it: what the screen has no room for. */
static void write_report(const struct hunting *h, struct investigation *investigation)
{
	char *path = mem_printf("%s/report.md", case_dir(h->cs));
	struct err err = { 0 };
	FILE *out = file_create_at(case_dir_fd(h->cs), "report.md", &err);

	if (!out) {
		log_warning("cannot write '%s': %s", path, err.message);
		mem_free(path);
		return;
	}
	report_investigation_md(investigation, out);
	(void)fclose(out);
	investigation->report = path;
}

static int work(const struct invocation *inv, struct err *err)
{
	const struct hunt_options *options = inv->options;
	AUTO(hunting_deinit) struct hunting h = { 0 };
	AUTO(investigation_deinit) struct investigation investigation = { 0 };
	struct hunt_result result = { 0 };
	int r = hunt(inv, &h, &result, err);

	if (r == 0)
		r = investigation_read(h.cs, &h.readings, &investigation, err);
	if (r < 0)
		return r;
	investigation.seconds = result.seconds;
	investigation.interrupted = result.interrupted;
	write_report(&h, &investigation);
	if (options->common.json)
		report_hunt_json(&investigation, stdout);
	else
		report_verdict_text(&investigation,
				    &(struct terminal){ common_colour(), common_columns() },
				    stdout);
	if (result.interrupted)
		return EXIT_INTERRUPTED;
	/* The question has no answer. */
	if (result.blind)
		return EXIT_TROUBLE;
	return result.failed ? EXIT_FOUND : EXIT_AS_EXPECTED;
}

const struct command cmd_hunt = {
	.name = "hunt",
	.summary = "From a command that fails now and then to the cause",
	.usage = "[options] -- PROGRAM ARGS…",
	.description =
		"Runs the program many times and answers one question after the other: Does it fail, and in "
		"which ways? What makes it fail more often (side by side or alone, disturbed or not)? Does it "
		"still fail while redhand looks more closely? What was damaged? Which code did it? How few of "
		"its tests does it take? Is the machine at fault?\n\n"
		"To find the code, redhand reads back from the crash which places in memory the bad value came "
		"through, and sets watchpoints there in further runs until a writer is caught. Two failing runs "
		"in which it is caught are enough. A program that has not failed in some 30 runs gets guards "
		"around its blocks, which show damage that does not crash. What redhand loads into the "
		"program so as to see more, an observer, may hide the failure: it is switched off then, and the "
		"hunt goes on without it. Failures other than the hunted one are only counted.\n\n"
		"It ends with a verdict: what was damaged, by which code, and in how many of the trials that "
		"could show it. A verdict never says more than was seen. When nobody was caught it says what "
		"remains open and which experiment to try next.\n\n"
		"The case keeps every decision with its figures, and the evidence; report.md in the case has "
		"it all. A sentinel, whose run proves a fix, is written too. "
		"After Ctrl-C, or even kill -9, the same command goes on where it was. A run that takes longer "
		"than a sixth of the budget counts as hanging, unless --timeout says otherwise.",
	.examples = "  redhand hunt -- ./mytests\n"
		    "      why does it crash one time in five?\n\n"
		    "  redhand hunt --budget 2h -- pytest tests\n"
		    "      and which of the tests it takes\n\n"
		    "  redhand hunt --sentinel tests/sentinels/crash -- ./mytests\n"
		    "      and leave something behind that tells when it is fixed\n",
	TRIAL_OPTIONS(struct hunt_options, "The hunt", hunt_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = work,
};
