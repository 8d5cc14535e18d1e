/*
 * How allocation is done in this process: a table of functions, chosen once when the agent is
 * switched on, instead of tests in every hook.
 *
 *   plain     libc's own functions; nothing is recorded
 *   ids       libc's own, and each block is followed
 *   guarded   blocks have guards and go through quarantine (guards/); `fenced`: each is asked for
 *             first, because it may lie elsewhere (fence/) or be filled by chance
 *   sampled   most blocks as with ids, some as with guarded
 *   placed    blocks that are watched lie on pages of their own (pages/), the others as beneath it
 *   held      threads are held back (chaos/), then as beneath it
 *   builtin   the program has a malloc inside (builtin_malloc.h), else as beneath it
 *
 * Two tables are in force: one for as long as the agent records, in agent_switch, which the kernel
 * wipes in a forked child and retiring clears; and one for the rest, because blocks that were given
 * out stay as they are.
 *
 * The shortest way of all, blocks of libc's own malloc by its cache, is in malloc and free
 * themselves (AGENT_IDS_GLIBC) and asks no table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/core/agent.h"
#include "agent/ids/sites.h"
#include "wire/log_format.h"

/* malloc, calloc, realloc and free are reached by a jump from hooks that have set up no frame:
 * their caller is the hook's (CALLER_BARE), and so is that of what they jump to in turn. */
struct policy {
	const char *name;
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t bytes);
	void *(*realloc)(void *ptr, size_t size);
	void (*free)(void *ptr); /* of NULL and the early arena, too */
	/* align is a power of two; fn is libc's, NULL: it has none. */
	void *(*aligned)(void *(*fn)(size_t, size_t), size_t align, size_t size,
			 const struct caller *caller);
	/* By operator delete, of the C++ library, which only calls free: what kind of delete it is
	 * would be lost there. False, or NULL: nobody wants to know. */
	bool (*delete_by)(void *ptr, enum log_free_by by, const struct caller *caller);
	size_t (*usable)(void *ptr);
};

extern HIDDEN const struct policy policy_plain, policy_ids, policy_ids_slow, policy_guarded,
	policy_guarded_slow, policy_guarded_rest, policy_fenced, policy_sampled, policy_placed,
	policy_held, policy_builtin;

HIDDEN void *policy_plain_malloc(size_t size);
HIDDEN void *policy_plain_calloc(size_t bytes);
HIDDEN void *policy_plain_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
				  const struct caller *caller);
HIDDEN size_t policy_plain_usable(void *ptr);

extern HIDDEN struct policy_state {
	const struct policy *rest; /* in force when agent_switch is clear */
	/* What those that stand before others lead to: while the agent records, and at rest. */
	const struct policy *beneath_builtin, *beneath_held, *beneath_placed, *beneath_sampled;
	const struct policy *bottom;
} policy_state;

static inline __attribute__((always_inline)) const struct policy *
policy_beneath(const struct policy *recording)
{
	return likely(agent_switch.ids) ? recording : policy_state.bottom;
}

static inline __attribute__((always_inline)) const struct policy *policy_now(void)
{
	const struct policy *policy = agent_switch.policy;

	return likely(policy != NULL) ? policy : policy_state.rest;
}

/* Sets agent_switch.ids, and chooses. From then on the hooks record. */
void policy_switch_on(void);
/* Functions of a malloc that the program has inside are patched: hooks call them from now on. */
void policy_take_over(void);

/* What the shortest way of free leaves. frame: of the hook. */
void policy_free_slow(void *ptr, const uint64_t *frame);

static inline bool policy_power_of_two(size_t value)
{
	return value && !(value & (value - 1));
}
