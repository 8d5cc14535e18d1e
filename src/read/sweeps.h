#pragma once

#include "read/heap_findings.h"

/*
 * Sweeps: who pointed into blocks when they were freed, and whether that was used later.
 */

/* Adds what the trial's logs tell to the report. `crash` is what it died of, or NULL. */
void sweeps_read(const struct heap_trial *trial, const struct crash *crash,
		 struct heap_report *report);

/* Those that were used first. */
void sweeps_sort(struct heap_report *report);

/* The contexts of a trial with this function in their stack: at most `room` hashes into `ret`.
 * Returns how many. */
size_t sweeps_contexts_of(const struct heap_trial *trial, const char *function, uint64_t *ret,
			  size_t room);
