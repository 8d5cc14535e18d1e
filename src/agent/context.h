/*
 * From a call's place to a context id.
 *
 * The fast way (about 3 ns): return address, stack pointer and the next six return addresses
 * above it are what they were the last time this place was seen. Their offsets were found by a
 * scan when the place was new; reading six words again tells callers apart that reach the same
 * wrapper at the same depth, which (return address, stack pointer) alone would merge.
 *
 * The slow way, once per new path: the stack is walked (unwind.h) and its first seven frames are
 * hashed as (module identity, offset): as many as the fast way tells apart, so that a context never
 * depends on which path came first, and is the same in the next run. The stack bytes go into the
 * log once per context, and the tool unwinds them with all that it knows.
 */
#ifndef REDHAND_AGENT_CONTEXT_H
#define REDHAND_AGENT_CONTEXT_H

#include <stdint.h>

#include "agent/guard.h"

/* Where a hook was called from. Two words, and every function that takes it by value is inlined or
 * rare: passed through memory it would stall on its own stores. */
struct caller {
	uint64_t return_address;
	uint64_t frame; /* the hook's frame: [frame + 8] is the return address */
};

/* Only as the first thing in an exported hook. */
#define CALLER_HERE                                                                          \
	{                                                                                    \
		(uint64_t) __builtin_return_address(0), (uint64_t)__builtin_frame_address(0) \
	}

/* By value: a guard whose address is taken lives in memory, in every hook. */
uint32_t context_find_slow(struct guard guard, uint64_t return_address, uint64_t frame);

static inline uint64_t context_words(const struct thread_site *site, uint64_t frame)
{
	const char *base = (const char *)frame;
	uint64_t a = *(const uint64_t *)(base + site->offset[0]);
	uint64_t b = *(const uint64_t *)(base + site->offset[1]);
	uint64_t c = *(const uint64_t *)(base + site->offset[2]);
	uint64_t d = *(const uint64_t *)(base + site->offset[3]);
	uint64_t e = *(const uint64_t *)(base + site->offset[4]);
	uint64_t f = *(const uint64_t *)(base + site->offset[5]);

	/* Small factors keep the order of callers and cost one instruction each. */
	return (a + 3 * b + 5 * c) + 2 * (9 * d + 5 * e + 3 * f);
}

static inline uint64_t context_place(struct caller caller)
{
	return (caller.return_address ^ caller.frame << 20) * 0x9e3779b97f4a7c15ull;
}

static inline struct thread_site *context_site(struct thread *self, uint64_t place)
{
	return &self->sites[place >> (64 - THREAD_SITES_BITS) & ~1ull];
}

/* The context of this call. 0 when the table is full: counted. */
static inline __attribute__((always_inline)) uint32_t context_find(struct guard *guard,
								   struct caller caller)
{
	uint64_t place = context_place(caller);
	struct thread_site *site = context_site(guard->self, place);

	if (likely(site->place == place && context_words(site, caller.frame) == site->words))
		return site->context;
	return context_find_slow(*guard, caller.return_address, caller.frame);
}

#endif
