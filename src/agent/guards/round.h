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
#ifndef REDHAND_AGENT_ROUND_H
#define REDHAND_AGENT_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/guard.h"

/* Called once at start, and in a forked child. */
void round_init(void);

/* May another line be told? A program that prints hundreds of thousands of them would be slowed
 * down. _sigsafe */
bool round_affords_line_sigsafe(void);

/* What rounds and lines cost is the time that this thread worked. On a busy machine the time that
 * passes is mostly the others', and one round would use up what is meant for many. */
#define ROUND_COST CLOCK_THREAD_CPUTIME_ID

/* So much of it went into lines. _sigsafe */
void round_spent_sigsafe(uint64_t ns);

/* Before a line, whose CHECKPOINT record has this seq. The caller has the guard. Returns whether
 * every block was looked at. */
bool round_line(struct guard *guard, uint64_t checkpoint);

/* Now and then, from an allocation. */
void round_time(struct guard *guard);

void round_exit_sigsafe(void);
/* In the signal handler. */
void round_crash_sigsafe(void);

/* Fills in where in the run this is, and when blocks, live or freed ones, were last whole. _sigsafe
 */
void round_stamp_sigsafe(struct log_heap_damage *ret, bool freed);

#endif
