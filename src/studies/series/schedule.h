#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * In which order the runs of a comparison's arms come.
 *
 * Arms take turns in random order, so that a machine that slows down or warms
 * up hits all alike. It follows from the seed alone: a resumed comparison goes on
 * with the same order. Arms that want different numbers of slots cannot run side
 * by side; they take turns in batches.
 */
struct schedule {
	unsigned int arms;
	uint64_t per_arm; /* runs of each arm */
	uint64_t batch;	  /* runs of one arm in a row; 1: all arms run side by side */
	uint64_t seed;
	bool mirrored; /* A B, then B A, and so on, instead of random turns */
};

struct schedule_place {
	unsigned int arm;
	uint64_t batch; /* number of the batch; runs of different batches never overlap */
	uint64_t index; /* which run of its arm this is, from 0 */
};

static inline uint64_t schedule_runs(const struct schedule *schedule)
{
	return schedule->per_arm * schedule->arms;
}

/* What the run at `position` (1 to schedule_runs()) is. */
struct schedule_place schedule_at(const struct schedule *schedule, uint64_t position);
