#pragma once

#include "model/evidence.h"
#include "model/heap.h"
#include "read/reading.h"

/*
 * Sweeps: who pointed into blocks when they were freed, and whether that was used later.
 */

/* Adds what the trial's logs tell to the report. `crash` is what it died of, or NULL. */
void sweeps_read(struct reading *reading, const struct crash *crash, struct heap_report *report);

/* Whoever still pointed to a freed block when the process died, of those that last: a block or a
 * global, no stack and no register. */
#define SWEPT_KNOWN 3u
struct swept_holders {
	size_t count; /* all of them */
	size_t known; /* of which so many can be found in another run: below */
	struct home homes[SWEPT_KNOWN];
	struct event_log *logs[SWEPT_KNOWN];
};

void sweeps_holders_of(struct reading *reading, uint64_t block, struct swept_holders *ret);
void swept_holders_deinit(struct swept_holders *holders);

/* The contexts of a trial with this function in their stack: at most `room` hashes into `ret`.
 * Returns how many. */
size_t sweeps_contexts_of(struct reading *reading, const char *function, uint64_t *ret,
			  size_t room);
