/* `redhand repro`: options, trials, how often each failure came. */
#include "cmd/commands.h"

#include <stdio.h>

#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "report/report_series.h"
#include "studies/series/repro.h"

struct repro_options {
	struct common_options common;
	struct trial_options trial;
	uint64_t trials;
	uint64_t failures;
	double precision;
};

#define TRIALS_DEFAULT 100

static const struct option repro_option_table[] = {
	OPTION(COUNT, "trials", "N", offsetof(struct repro_options, trials),
	       "Run the program N times in all (default 100; with --failures or --precision and "
	       "no -n: at most 100000)",
	       .letter = 'n', .min = 1, .max = 1000000000),
	OPTION(COUNT, "failures", "K", offsetof(struct repro_options, failures),
	       "Stop when K trials have failed", .min = 1),
	OPTION(SHARE, "precision", "P", offsetof(struct repro_options, precision),
	       "Stop when the 95 % interval of the failure rate is narrower than P (0.1 or 10%)"),
	OPTIONS_END,
};

static int run(const struct invocation *inv, struct err *err)
{
	const struct repro_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(repro_result_deinit) struct repro_result result = { 0 };
	struct progress progress;
	bool open_end = options->failures > 0 || options->precision > 0;
	struct repro_request request = {
		.trials = options->trials > 0 || open_end ? options->trials : TRIALS_DEFAULT,
		.failures = options->failures,
		.precision = options->precision,
	};
	int r = trial_setup_init(&setup, &options->trial, "repro", inv->program, err);

	if (r == 0)
		r = trial_setup_open(&setup, options->common.case_dir, &cs, err);
	if (r < 0)
		return r;
	request.series = trial_setup_series(&setup, &options->trial, inv, &progress);
	r = repro_run(cs, &request, &result, err);
	trial_progress_end(&progress, result.program_changed);
	if (r < 0)
		return r;
	if (options->common.json)
		report_repro_json(&result, stdout);
	else
		report_repro_text(&result, stdout);
	return common_exit(result.interrupted, result.summary.failed_any > 0);
}

const struct command cmd_repro = {
	.name = "repro",
	.summary = "How often does it fail, in how many ways, on which slot, and where",
	.usage = "[options] -- PROGRAM ARGS…",
	.description =
		"Runs the program again and again and tells how often it fails, with a 95 % interval; "
		"groups the failures into signatures; keeps apart what fails in every run; says "
		"between which two log lines it dies, whether a slot differs from the others, and how "
		"many clean runs in a row would mean that it is fixed.\n\n"
		"A trial has failed when the program, or a process that it left behind, died from a "
		"signal, when it exited with a status other than 0, ran into the timeout, or printed a "
		"line that matches --fail-on.\n\n"
		"Everything is kept in the case directory. The same command goes on where it was, "
		"after Ctrl-C or even kill -9; a larger -n adds trials. Each failing trial has its "
		"output in CASE/trials/N.",
	.examples = "  redhand repro -n 50 -- ./mytests --gtest_filter='Cache*'\n"
		    "      how often does it fail?\n\n"
		    "  redhand repro --failures 10 --timeout 1m -- pytest -x tests/test_grad.py\n"
		    "      go on until it has failed ten times\n\n"
		    "  redhand repro -j 4 --slot-env CUDA_VISIBLE_DEVICES={slot} -- ./run_tests\n"
		    "      one device per slot, four at a time\n",
	TRIAL_OPTIONS(struct repro_options, "How long", repro_option_table),
	.program = PROGRAM_REQUIRED,
	.run = run,
};
