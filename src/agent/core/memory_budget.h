/*
 * How much memory the target may have (its cgroup, RLIMIT_AS, RLIMIT_DATA), and what guards may
 * take of it.
 *
 * A program that gets by without us must get by with us. Freed blocks in quarantine and guards
 * around live ones take memory that it may need later. So the quarantine is a small part of the
 * limit; once a quarter of the limit is used, new blocks have no guards and the quarantine is
 * emptied, so that guards around the smallest blocks, as large as these, have taken an eighth at
 * most. At a half, blocks whose place is new are not followed any more. What the agent has mapped
 * does not count where limits are lifted by as much (rlimits.h), and counts in a cgroup.
 */
#pragma once

#include <stdint.h>

enum budget_state {
	BUDGET_ENOUGH = 0,
	BUDGET_TIGHT,	  /* no more guards */
	BUDGET_EXHAUSTED, /* nor new places */
};

/* In the constructor, after limits_begin(). Returns the limit in bytes, UINT64_MAX: there is none.
 */
uint64_t budget_init(void);

/* The memory that is in use is looked at now and then. _sigsafe */
enum budget_state budget_look_sigsafe(void);
