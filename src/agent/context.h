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

/* Only in an exported hook itself. */
#define CALLER_HERE                                                \
	{                                                          \
		((const uint64_t *)__builtin_frame_address(0))[1], \
			(uint64_t)__builtin_frame_address(0)       \
	}

/* Blocks that each context has begun. Beside the log, because a row there is a cache line, and a
 * program with thousands of contexts has better use for those. */
extern HIDDEN uint32_t *context_ordinals;

/* Maps the index; learns the program's entry from the vector behind the environment. */
bool context_init(const void *auxiliary_vector);

/* After a fork: the log is new. */
void context_forget(struct thread *self);

/* By value: a guard whose address is taken lives in memory, in every hook. */
uint32_t context_find_slow(struct guard guard, uint64_t return_address, uint64_t frame);

/* Small factors keep the order of callers and cost one instruction each. */
static inline __attribute__((always_inline)) uint64_t context_words(const struct thread_site *site,
								    uint64_t frame)
{
	const char *base = (const char *)frame;
	uint64_t a = *(const uint64_t *)(base + site->offset[0]);
	uint64_t b = *(const uint64_t *)(base + site->offset[1]);
	uint64_t c, d, e, f;

	a += 2 * b;
	if (!site->offset[2])
		return a;
	c = *(const uint64_t *)(base + site->offset[2]);
	d = *(const uint64_t *)(base + site->offset[3]);
	e = *(const uint64_t *)(base + site->offset[4]);
	f = *(const uint64_t *)(base + site->offset[5]);
	return a + 4 * c + 8 * (d + 2 * e + 4 * f);
}

static inline uint64_t context_place(struct caller caller)
{
	return caller.return_address * 0x1e3779b1u + caller.frame * 8;
}

/* The first of the pair. */
static inline struct thread_site *context_site(struct thread *self, uint64_t place)
{
	uint64_t bytes = place & (sizeof(self->sites) - 2 * sizeof(self->sites[0]));

	return (struct thread_site *)((char *)self->sites + bytes);
}

/* The site that knows this call, or NULL. */
static inline __attribute__((always_inline)) struct thread_site *context_hit(struct thread *self,
									     struct caller caller)
{
	uint64_t place = context_place(caller);
	struct thread_site *site = context_site(self, place);

	return likely(site->place == place && context_words(site, caller.frame) == site->words)
		       ? site
		       : NULL;
}

/* The context of this call. 0 when the table is full: counted. */
static inline __attribute__((always_inline)) uint32_t context_find(struct guard *guard,
								   struct caller caller)
{
	struct thread_site *site = context_hit(guard->self, caller);

	return site ? site->context
		    : context_find_slow(*guard, caller.return_address, caller.frame);
}

#endif
