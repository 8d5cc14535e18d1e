/* `redhand bisect-step`: one commit of a `git bisect run`. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>

#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "report/report_bisect.h"
#include "search/stats/rate.h"
#include "studies/series/repro.h"

/*
 * What git-bisect(1) wants of a script: 0 good, 1 to 124 bad, 125 cannot be tested, anything
 * from 128 ends the bisection. So trouble of redhand's own must not be 2 here: git would take it
 * for 'bad'.
 */
enum step_status {
	STEP_GOOD = 0,
	STEP_BAD = 1,
	STEP_CANNOT_TELL = 125,
	STEP_TROUBLE = 128,
};

struct step_options {
	struct common_options common;
	struct trial_options trial;
	uint64_t trials;
	double rate;
	double confidence;
};

#define RATE_DEFAULT 0.2
#define CONFIDENCE_DEFAULT 0.99

static const struct option step_option_table[] = {
	OPTION(COUNT, "trials", "N", offsetof(struct step_options, trials),
	       "Good is what passes N times", .letter = 'n', .min = 1, .max = 1000000),
	OPTION(SHARE, "rate", "R", offsetof(struct step_options, rate),
	       "Or as often as a failure with this rate (20% or 0.2; default 20%) …"),
	OPTION(SHARE, "confidence", "P", offsetof(struct step_options, confidence),
	       "… would take to show itself with this probability (default 0.99)"),
	OPTIONS_END,
};

static int plan(const struct step_options *options, struct bisect_step_report *report,
		struct err *err)
{
	if (options->trials > 0 && (options->rate > 0 || options->confidence > 0))
		return err_set(err, -EINVAL,
			       "-n says how often; --rate and --confidence say it "
			       "another way: one of the two, please");
	report->wanted = options->trials;
	if (options->trials > 0)
		return 0;
	report->rate = options->rate > 0 ? options->rate : RATE_DEFAULT;
	report->confidence = options->confidence > 0 ? options->confidence : CONFIDENCE_DEFAULT;
	report->wanted = rate_clean_runs(report->rate, report->confidence);
	return 0;
}

static bool skipped(const struct repro_result *result)
{
	return VEC_ANY(&result->summary.signatures.list, s,
		       s->signature.exit_status == STEP_CANNOT_TELL);
}

static int run_trials(const struct invocation *inv, struct trial_setup *setup,
		      struct case_store **cs, uint64_t wanted, struct repro_result *result,
		      struct err *err)
{
	const struct step_options *options = inv->options;
	struct progress progress;
	struct repro_request request = {
		.trials = wanted,
		.failures = 1,
	};
	int r = trial_setup_open(setup, options->common.case_dir, cs, err);

	if (r < 0)
		return r;
	request.series = trial_setup_series(setup, &options->trial, inv, &progress);
	/* Each commit is another program, even when its file is the same. */
	request.series.fresh = true;
	r = repro_run(*cs, &request, result, err);
	progress_end(&progress);
	return r;
}

static void tell(const struct step_options *options, const struct bisect_step_report *report)
{
	const struct repro_result *repro = report->repro;

	if (options->common.json)
		report_bisect_step_json(report, stdout);
	else if (repro)
		(void)printf("%s: %llu of %llu trials failed (%llu clean ones make it good)\n",
			     report->verdict, (unsigned long long)repro->summary.failed_any,
			     (unsigned long long)repro->summary.rate.trials,
			     (unsigned long long)report->wanted);
	else
		(void)printf("%s: %s\n", report->verdict, report->why);
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct step_options *options = inv->options;
	struct bisect_step_report report = { .verdict = "good" };
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(repro_result_deinit) struct repro_result result = { 0 };
	int status = STEP_GOOD, r = plan(options, &report, err);

	if (r < 0)
		return r;
	r = trial_setup_init(&setup, &options->trial, "bisect-step", inv->program, err);
	if (r == -ENOENT || r == -EACCES || r == -EISDIR) {
		report.verdict = "cannot-tell";
		report.why = err->message;
		tell(options, &report);
		return STEP_CANNOT_TELL;
	}
	if (r == 0)
		r = run_trials(inv, &setup, &cs, report.wanted, &result, err);
	if (r < 0)
		return r;
	report.repro = &result;
	if (result.interrupted) {
		status = EXIT_INTERRUPTED;
		report.verdict = "interrupted";
	} else if (skipped(&result)) {
		status = STEP_CANNOT_TELL;
		report.verdict = "cannot-tell";
		report.why = "the program ended with status 125";
	} else if (result.summary.failed_any > 0) {
		status = STEP_BAD;
		report.verdict = "bad";
	}
	tell(options, &report);
	return status;
}

const struct command cmd_bisect_step = {
	.name = "bisect-step",
	.summary = "Is this commit good or bad, for git bisect run",
	.usage = "[-n N | --rate R --confidence P] -- PROGRAM ARGS…",
	.description =
		"Runs the program as often as it takes to be sure, and ends as `git bisect run` wants "
		"it: with status 0 when every trial passed, 1 as soon as one failed, 125 when it cannot "
		"be told because the program is not there or itself ended with 125.\n\n"
		"redhand bisect needs fewer trials for the same certainty, and does not go wrong when "
		"a failure was missed once.",
	.examples =
		"  git bisect run redhand bisect-step --rate 20% -- ./mytests\n"
		"      21 clean runs make a commit good\n\n"
		"  git bisect run sh -c 'make || exit 125; redhand bisect-step -n 50 -- ./mytests'\n"
		"      skip what does not build\n",
	TRIAL_OPTIONS(struct step_options, "How often", step_option_table),
	.program = PROGRAM_REQUIRED,
	.exit_statuses = "  0    good: every trial passed\n"
			 "  1    bad: a trial failed\n"
			 "  125  it cannot be told; git bisect skips the commit\n"
			 "  128  wrong usage, or redhand itself could not work; git bisect stops\n"
			 "  130  interrupted (Ctrl-C)\n",
	.trouble = STEP_TROUBLE,
	.run = run,
};
