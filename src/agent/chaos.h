/*
 * Chaos: disturbances that the plan asks for, because a failure that hides may show itself when
 * memory lies elsewhere or a thread is late.
 *
 * Nothing of it is on any path when the plan does not ask: the allocation functions behind our
 * hooks are replaced in `real`, once, at start, and so the hooks need no further test.
 */
#ifndef REDHAND_AGENT_CHAOS_H
#define REDHAND_AGENT_CHAOS_H

#include <stdint.h>

#include "wire/plan.h"

enum chaos_switch {
	CHAOS_HOLD = 1 << 0, /* threads are held back at allocations */
	CHAOS_ARM = 1 << 1,  /* … and when they have armed a watch */
};

/* What to do; copied. */
void chaos_plan(const struct plan_chaos *plan);

/* Before anything is mapped: moves what comes, and puts itself before the allocator. */
void chaos_init(void);

/* The child has its own time to spend. */
void chaos_after_fork(void);

/* What agent_switch.chaos is to be; 0 without a plan. */
uint32_t chaos_wanted(void);

/* This thread has just armed a watch: a moment's delay, if the plan wants one, so that the others
 * get on with what they do to it. */
void chaos_after_arm_sigsafe(void);

#endif
