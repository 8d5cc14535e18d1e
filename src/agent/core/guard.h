/*
 * The way into a hook.
 *
 * A function that relies on being inside takes the guard, so it cannot be called without one. The
 * guard is per thread: a signal handler that interrupts a hook and itself allocates is refused,
 * and the refusal is counted. No lock, no wait.
 *
 * errno is kept by construction: inside the guard only raw system calls are made, which do not
 * know errno (reading and restoring it would cost as much as the rest of the guard).
 */
#pragma once

#include <stdbool.h>

#include "agent/core/agent.h"
#include "agent/core/invariant.h"
#include "agent/core/thread.h"

struct guard {
	struct thread *self;
};

/* The rare half: first hook of a thread we did not start, or a refused entry. */
struct thread *guard_enter_slow(void);

static inline __attribute__((always_inline)) bool guard_enter_any(struct guard *guard)
{
	struct thread *self = thread_self;

	if (unlikely(!self || self->fast.busy)) {
		self = guard_enter_slow();
		if (!self)
			return false;
	}
	guard_close(self);
	guard->self = self;
	return true;
}

/* For the allocation hooks: only when blocks are followed. */
static inline __attribute__((always_inline)) bool guard_enter(struct guard *guard)
{
	return likely(agent_switch.ids) && guard_enter_any(guard);
}

static inline __attribute__((always_inline)) void guard_leave(struct guard *guard)
{
	INVARIANT(guard->self->fast.busy == 1 ? (const char *)0
					      : "guard: left by one who is not inside");
	guard_open(guard->self);
}
