/*
 * A write to watched memory, caught at the trap after it.
 *
 * Everything about it goes into one slot of a ring in the log: registers, the blocks behind them,
 * the stack, the code, the value before and after. The ring is what the last hits were; the first
 * hit of each writer is also kept for good, among the events. Hits that the plan's predicate does
 * not let through are counted.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/ucontext.h>

#include "agent/watch/watch.h"

/* True: the trap was one of ours, and the target never hears of it. _sigsafe */
bool hit_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);

/* A write to watched pages. call: the system call that made it; -1: the instruction at rip, with
 * the registers before it. `armed` may be a copy. _sigsafe */
void hit_store_sigsafe(const struct watch_armed *armed, const uint64_t old[WATCH_WORDS],
		       const uint64_t new[WATCH_WORDS], int call, const ucontext_t *context);
