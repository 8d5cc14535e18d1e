#pragma once

#include "debuginfo/symbols.h"
#include "model/watch.h"

/*
 * Puts together what the trials of a watch saw: writers that are the same instruction become one.
 */
struct watch_gather {
	struct watch_report *report;
	struct symbols *symbols;
	/* Of the trial that is being read: whether it failed is known a little later. */
	uint64_t trial;
	struct {
		size_t writers, conflations, outside; /* how many there were before */
	} before;
	VEC(size_t) touched; /* writers */
};

/* Reads the trial in directory `name`. */
void watch_gather_trial(struct watch_gather *gather, int trials, const char *name, uint64_t trial);

/* …and learns whether it failed. */
void watch_gather_settle(struct watch_gather *gather, bool failing);

/* Puts the odd ones first. */
void watch_gather_finish(struct watch_gather *gather);
void watch_gather_deinit(struct watch_gather *gather);
