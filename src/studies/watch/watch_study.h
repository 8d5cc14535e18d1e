#pragma once

#include "case/case.h"
#include "model/watch_report.h"
#include "studies/series/repro.h"

/*
 * `watch`: run the program with watches on chosen memory, and tell who wrote there.
 */
struct watch_request {
	struct series_request series; /* the watches are in the plan items of its settings */
	uint64_t trials;	      /* at most */
	uint64_t failures;	      /* stop after so many; 0: never */
	bool stop; /* the watches stop the program: tell when that has happened, and no more trials
		    */
	void (*stopped)(void *ctx, const struct watch_stop *stop);
};

/* ret->targets, one per watch, are there before. What was seen before is not kept: earlier trials
 * of the same command are forgotten. */
int watch_run(struct case_store *cs, const struct watch_request *request, struct watch_report *ret,
	      struct err *err);
