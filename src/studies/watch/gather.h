#pragma once

#include "model/watch_report.h"
#include "read/reading.h"

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

/* Takes what the trial showed. */
void watch_gather_trial(struct watch_gather *gather, struct reading *reading);

/* …and learns whether it failed. */
void watch_gather_settle(struct watch_gather *gather, bool failing);

/* Puts the odd ones first. */
void watch_gather_finish(struct watch_gather *gather);
void watch_gather_deinit(struct watch_gather *gather);
