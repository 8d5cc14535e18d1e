#pragma once

#include "studies/series/arm.h"
#include "studies/series/repro.h"

/*
 * `compare`: does a setting change how often it fails, or is it chance?
 */
struct compare_request {
	struct series_request series; /* jobs: of arms that do not say */
	const struct arm *arms;	      /* the first is what the others are compared with */
	unsigned int arm_count;
	const struct strbuf *watch; /* items of the plan for arms that are watched; or NULL */
	uint64_t trials;	    /* per arm */
	uint64_t seed;		    /* used unless the series is there already */
	bool mirrored;		    /* A B, B A, … instead of random turns */
	bool stop_early;
	bool apart; /* trials of two arms never run side by side */
	/* What the caller wants to know is known: asked after each trial. The p-values are those of
	 * the trials so far. May be NULL; not together with stop_early. */
	bool (*enough)(void *ctx, const struct tally *tally);
	void *enough_ctx;
};

int compare_run(struct case_store *cs, const struct compare_request *request,
		struct compare_result *ret, struct err *err);
