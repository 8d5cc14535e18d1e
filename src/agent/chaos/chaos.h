/*
 * Chaos: disturbances that the plan asks for, because a failure that hides may show itself when
 * memory lies elsewhere or a thread is late.
 *
 * Nothing of it is on the shortest way of malloc and free, which is not taken when the plan asks
 * for it (AGENT_IDS_GLIBC); elsewhere it is a test of a switch that the hooks have at hand.
 */
#pragma once

#include <stdint.h>

#include "agent/core/agent.h"
#include "wire/plan.h"

enum chaos_switch {
	CHAOS_HOLD = 1 << 0, /* threads are held back at allocations */
	CHAOS_ARM = 1 << 1,  /* … and when they have armed a watch */
};

/* What to do; copied. */
void chaos_plan(const struct plan_chaos *plan);

/* Before anything is mapped: moves what comes, and takes the time. */
void chaos_init(void);

/* The child has its own time to spend. */
void chaos_after_fork(void);

/* What agent_switch.chaos is to be; 0 without a plan. */
void chaos_switch_on(void);

/* The thread passes an allocation function that was called from this place of the target. */
void chaos_pass(uint64_t return_address);

/* First in an allocation hook, outside of any guard. A forked child's switch is off until it has a
 * log of its own. */
static inline __attribute__((always_inline)) void chaos_at(uint64_t return_address)
{
	if (unlikely(agent_switch.chaos & CHAOS_HOLD))
		chaos_pass(return_address);
}

/* This thread has just armed a watch: a moment's delay, if the plan wants one, so that the others
 * get on with what they do to it. */
void chaos_watch_armed_sigsafe(void);
