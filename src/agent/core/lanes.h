/*
 * A lane per thread of the target (thread.h).
 *
 * Mapped by the creating thread before the new one starts, reused (with its lane number) when the
 * thread has ended. The lowest free lane is taken, so that a program that makes its threads in the
 * same order gets the same lanes in every run: they are part of a block's key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/thread.h"

/* Main thread, in the constructor. stack_high: an address above all its frames. */
bool thread_init_main(uint64_t stack_high);

/* A thread that we did not see start: taken in at its first hook. NULL when no lane is free or the
 * thread is ending. _sigsafe. */
struct thread *thread_adopt_sigsafe(void);

/* In a forked child: only the caller is left, its log is new and empty. */
void thread_after_fork(void);

/* Installs our alternate stack for this thread. _sigsafe */
void thread_altstack_sigsafe(struct thread *self);

/* Whose stack lies in this mapping? False: nobody's that is known. _sigsafe */
bool thread_by_stack_sigsafe(uint64_t low, uint64_t high, uint32_t *ret_lane);

/* How many lanes are in use. _sigsafe */
uint32_t thread_lanes_in_use_sigsafe(void);

/* What was ever mapped for lane number n, in use or not; NULL: nothing, nor for those behind it.
 * _sigsafe */
const struct thread *lane_area_sigsafe(uint32_t n);
