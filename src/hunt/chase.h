#pragma once

#include "case/case.h"
#include "model/evidence.h"
#include "studies/series/arm.h"
#include "studies/series/bystanders.h"
#include "studies/series/repro.h"

/*
 * The chase: from a crash to the write that caused it, by running the program again.
 *
 * A first failing trial tells what was hit: the homes that the bad value came through. The next
 * ones watch these homes, by the key of their block, or, where keys do not hold, as what a function
 * of the crash's stack is given. What was written last there before a failure is evidence; if it
 * only copied the value, its source is watched, too.
 */

/* A failing trial of the case that was run under ids. */
struct stored_trial {
	uint64_t trial;
	int signal;
	char signature[SIGNATURE_ID_LEN + 1];
};

/* How much of it. */
struct chase_limits {
	uint64_t trials; /* at most, in all */
	uint64_t look;	 /* trials after which it is given up when it has not failed; 0: any */
	uint64_t wanted; /* failing trials with the victim watched, per hop */
	bool proofs;	 /* two do where each is proof: the very value, in the very block */
	unsigned int hops;
	double deadline_s; /* by clock_s(); 0: none */
};

/* What it begins with. */
struct chase_start {
	struct rate rate; /* as it is known already; trials 0: unknown */
	/* Failing trials under ids that the case has: read before more are run. */
	const struct stored_trial *stored;
	size_t stored_count;
	/* One that can be read back is chased instead of one that cannot: from then on its failure
	 * is the target. NULL: they are all the same failure. */
	void (*chosen)(void *ctx, const struct signature *signature);
	void *chosen_ctx;
	uint64_t from; /* a trial of the case with an `ids` log to begin with; 0: none */
	const struct evidence *lead; /* to begin with instead; NULL: none */
	/* It was seen once only: where others come in its place, it is counted first which of them
	 * comes most often. */
	bool seen_once;
	bool unfailed;	  /* where it does not crash, guards tell whether memory is damaged */
	bool without_ids; /* blocks are not followed, so only variables can be watched */
	/* It fails without a crash, with guards too, and they show no damage: does it go with what
	 * stands in freed blocks? */
	bool freed;
	double guarded_s; /* that such a trial takes, if it is known */
};

struct chase_request {
	struct series_identity identity;
	struct trial_settings *settings; /* plan items are added to its trials */
	char *const *program;
	const char *program_path; /* the file that is run */
	const struct strv *slot_env;
	unsigned int jobs;
	/* The failure to chase, a copy of which is made; NULL: the first that crashes. Trials that
	 * fail in another way are counted and nothing else. */
	const struct target *target;
	struct bystanders *others; /* other failures that are known; NULL: none is */
	struct chase_start start;
	struct chase_limits limits;
	bool fresh; /* forget earlier trials of the same chase */
	progress_fn progress;
	void *progress_ctx;
	/* What is being done and why. May be NULL. */
	void (*say)(void *ctx, const struct said *said);
	void *say_ctx;
};

struct chase_result {
	struct evidence_list evidence;		 /* trials and failed are set */
	uint64_t watched_trials, watched_failed; /* of those, with watches armed */
	uint64_t guarded_trials, guarded_failed; /* of those, with guards around blocks */
	uint64_t others; /* failing trials that did not show what is chased */
	unsigned int hops;
	bool found; /* it failed as it should, and was recorded */
	bool interrupted;
	struct said outcome; /* how it ended */
};

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err);
void chase_result_deinit(struct chase_result *result);
