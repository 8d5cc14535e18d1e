/*
 * Rounds: looking at every block with guards, live ones and those in quarantine.
 *
 * A whole round is made before each line on stdout or stderr, at exit and at a crash; in between a
 * bit of one over live blocks, when somebody allocates and the plan's time has gone by. Rounds may
 * take a part of the run time and no more: a heap of millions of blocks is looked at bit by bit. So
 * that it can be told between which two lines a block was damaged, the start of the last round that
 * got through is remembered: whatever was there then was whole.
 *
 * One round at a time. Other threads go on meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "wire/log_format.h"

/* Called once at start, and in a forked child. */
void guard_check_init(void);

/* No time for another line? A program that prints hundreds of thousands of them would be slowed
 * down. _sigsafe */
bool guard_check_refuses_line_sigsafe(void);

/* So much time of FEATURE_LINE_COST went into lines. On a busy machine the time that passes is
 * mostly the others', and one round would use up what is meant for many. _sigsafe */
void guard_check_spent_sigsafe(uint64_t ns);

/* Before a line, whose CHECKPOINT record has this seq: every block is looked at. _sigsafe */
void guard_check_line_sigsafe(uint64_t checkpoint);

/* Now and then, from an allocation. */
void guard_check_time(struct guard *guard);

void guard_check_exit_sigsafe(void);
/* In the signal handler. */
void guard_check_crash_sigsafe(const struct log_crash *crash, const uint64_t *starts,
			       unsigned count);
