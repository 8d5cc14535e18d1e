#pragma once

#include "engine/chase/chase.h"
#include "engine/framework/framework.h"
#include "engine/series/minimize.h"
#include "engine/series/repro.h"

/*
 * `hunt`: from a command that fails now and then to a verdict, stage by stage, the cheapest first.
 *
 * Every stage stores what it found and why the next one was chosen (case_add_decision()). A hunt
 * that was ended goes on with the stages that are left: trials of the first stages are in their
 * series, evidence in the case.
 */

/* How trials are run: looked at from outside and for crashes, or closely. */
struct hunt_look {
	struct trial_settings *settings;
	struct series_identity identity;
	enum observer observer;
};

struct hunt_request {
	struct hunt_look plain, close;
	char *const *program;
	const char *program_path;
	const struct strv *slot_env;
	unsigned int jobs;
	const char *signature;		   /* NULL: the failure that comes and goes most often */
	const struct framework *framework; /* NULL: no tests to choose from */
	struct series_identity minimize;   /* of that search */
	uint64_t seed;
	double budget_s;	/* 0: none */
	uint64_t budget_trials; /* 0: none */
	bool fresh;
	progress_fn progress;
	void *progress_ctx;
	minimize_progress_fn minimize_progress;
	/* A stage begins, or something was decided: a line. */
	void (*say)(void *ctx, const char *stage, const char *line);
	void *say_ctx;
};

struct hunt_result {
	bool interrupted;
	bool failed; /* it was seen to fail */
	double seconds;
};

/* What was found is in the case: evidence, decisions, a verdict. */
int hunt_run(struct case_store *cs, const struct hunt_request *request, struct hunt_result *ret,
	     struct err *err);
