/*
 * Which blocks have guards and go through quarantine, where the plan does not want that for all.
 *
 * What guards cost is paid by a few contexts that make millions of blocks; defects live as often in
 * the others. So the first blocks of every context are guarded without exception, up to a level.
 * From there on it is one group in 32 of the lane's blocks, whosever they are, and after a million
 * of them one in 128: what is wrong with a hot context's blocks is still met, and in every trial
 * with other blocks. Whole groups, because a guarded block among a thousand others costs seven
 * times as much as one among its like. The level falls where guarded blocks are more than their
 * part of the whole, as in programs with thousands of contexts, and rises again.
 *
 * Which groups is drawn from the trial's seed, and all of it hangs on nothing but the lane's own
 * blocks: a program that does the same again has the same blocks guarded again.
 *
 * A block that is passed over is as under `ids`: it lies in libc's memory as libc gave it, it is
 * followed from malloc to free, and libc has it back at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/core/real.h"
#include "agent/ids/blocks.h"
#include "agent/ids/context.h"

/* What has been decided in a lane; only its thread writes. */
struct sample_lane {
	uint64_t guarded; /* blocks */
	uint32_t groups;  /* of ids that it has been given */
};

extern HIDDEN struct sample_state {
	bool on;
	/* By context: it is hot up to this ordinal, then it is looked at again. 0: never met. Each
	 * is written by the context's own thread. */
	uint32_t *hot_until;
	/* Is each block of this context to be asked for? NULL: of none. */
	bool (*always)(uint32_t context);
	struct sample_lane lanes[PLAN_THREAD_SLOTS];
} sample;

/* After context_init(); false: no memory, and all blocks are guarded. */
bool sample_init(void);
/* In a forked child, whose contexts have new numbers. */
void sample_after_fork(void);

/* The lane has been given the next group of ids. */
void sample_group(struct thread *self);

/* Of the context's next block. */
static inline __attribute__((always_inline)) uint32_t sample_ordinal(uint64_t context)
{
	return context_ordinals[context];
}

/* Is the next block of this context to be passed over? For the hot path: decides nothing. */
static inline __attribute__((always_inline)) bool sample_passes(const struct thread *self,
								uint64_t context)
{
	return sample_ordinal(context) < sample.hot_until[context] && likely(!self->blocks.burst);
}

/* Is the next block from here to be guarded? To be asked once for each, outside of the guard. */
bool sample_takes_slow(struct caller caller);

static inline __attribute__((always_inline)) bool sample_takes(struct caller caller)
{
	uint64_t context;

	if (likely(!sample.on))
		return true;
	if (context_hit(thread_hot, caller, &context) && sample_passes(thread_hot, context))
		return false;
	return sample_takes_slow(caller);
}

/* A block that has guards was moved with them. */
static inline void sample_kept(const struct thread *self)
{
	sample.lanes[self->lane % PLAN_THREAD_SLOTS].guarded++;
}

/* Blocks so far that were guarded and that were passed over; both 0 where all are guarded. Of
 * threads that run, nearly so. _sigsafe */
void sample_count_sigsafe(uint64_t *ret_guarded, uint64_t *ret_passed);
