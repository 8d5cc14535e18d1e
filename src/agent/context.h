/*
 * From a call's place to a context id.
 *
 * The fast way (about 3 ns): return address, stack pointer and the next six return addresses
 * above it are what they were the last time this place was seen. Their offsets were found by a
 * walk when the place was new; reading six words again tells callers apart that reach the same
 * wrapper at the same depth, which (return address, stack pointer) alone would merge. A wrapper
 * with many callers has a site for each way to it: context_branch().
 *
 * The slow way, once per new path: the stack is walked (unwind.h) and its first seven frames are
 * hashed as (module identity, offset): as many as the fast way tells apart, so that a context never
 * depends on which path came first, and is the same in the next run. The frames go into the log
 * once per context; where the walk was lost the stack's bytes go with them, for the tool to unwind.
 */
#ifndef REDHAND_AGENT_CONTEXT_H
#define REDHAND_AGENT_CONTEXT_H

#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/guard.h"

/* Where a hook was called from. Every function that takes it by value is inlined or rare: passed
 * through memory it would stall on its own stores. */
struct caller {
	uint64_t return_address;
	uint64_t frame; /* where a hook saves rbp, if it does: [frame + 8] is the return address */
	uint64_t rbp;	/* the caller's; 0: it lies at `frame` */
};

/* Only in an exported hook itself. */
#define CALLER_HERE                                                       \
	{                                                                 \
		((const uint64_t *)__builtin_frame_address(0))[1],        \
			(uint64_t)__builtin_frame_address(0),             \
			((const uint64_t *)__builtin_frame_address(0))[0] \
	}

/* The same for a hook that sets up no frame, in files that are compiled with -ffixed-rbp: there rbp
 * is the caller's everywhere, and the slow half of a hook may take the place of the hook's frame.
 */
#define CALLER_BARE                                                      \
	{                                                                \
		((const uint64_t *)__builtin_dwarf_cfa())[-1],           \
			(uint64_t)__builtin_dwarf_cfa() - 16, arch_rbp() \
	}

/* Blocks that each context has begun. Beside the log, because a row there is a cache line, and a
 * program with thousands of contexts has better use for those. */
extern HIDDEN uint32_t *context_ordinals;

/* Maps the index; learns the program's entry from the vector behind the environment. */
bool context_init(const void *auxiliary_vector);

/* After a fork: the log is new. */
void context_forget(void);

/* By value: a guard whose address is taken lives in memory, in every hook. */
uint32_t context_find_slow(struct guard guard, uint64_t return_address, uint64_t frame,
			   uint64_t rbp);

/* The context of a call by the Python frames it stands under as well; `native` where there are none.
 * With python_stack_on only. */
uint32_t context_in_python(struct guard *guard, uint32_t native, struct caller caller);

/* The context of a place that several ways lead to, or that is second of its pair; 0: not known.
 * Called from the middle of the hot path: arch_call_kept(). */
uint64_t context_branch(const struct thread *self, uint64_t place, uint64_t frame);

/* Small factors keep the order of callers and cost one instruction each. */
static inline __attribute__((always_inline)) uint64_t context_words(const struct thread_site *site,
								    uint64_t frame)
{
	const char *base = (const char *)frame;
	uint64_t a = *(const uint64_t *)(base + site->offset[0]);
	uint64_t b, c, d, e, f;

	if (!site->offset[1])
		return a;
	b = *(const uint64_t *)(base + site->offset[1]);
	c = *(const uint64_t *)(base + site->offset[2]);
	d = *(const uint64_t *)(base + site->offset[3]);
	e = *(const uint64_t *)(base + site->offset[4]);
	f = *(const uint64_t *)(base + site->offset[5]);
	return a + 2 * b + 4 * c + 8 * (d + 2 * e + 4 * f);
}

/* Where this return address would be among the wrappers. */
static inline uint32_t context_wrapper(uint64_t return_address)
{
	return (uint32_t)return_address & ((1u << THREAD_WRAPPERS_BITS) - 1);
}

/* Return address and stack pointer; of a wrapper also the caller's return address. */
static inline __attribute__((always_inline)) uint64_t context_place(const struct thread *self,
								    struct caller caller)
{
	uint64_t place = caller.frame + caller.return_address * 0x71bbcd88;
	uint32_t number = context_wrapper(caller.return_address);

	if (self->wrappers[number] == caller.return_address) {
		uint64_t above = caller.frame + self->wrapper_offsets[number];

		/* Below the end of the stack, although nothing else can be there: another library
		 * may have come to the same address since. */
		if (likely(above < self->stack_high))
			place += *(const uint64_t *)above * 0x2545f490;
	}
	return place;
}

/* The first of the pair that it may be in. */
static inline struct thread_site *context_site(struct thread *self, uint64_t place)
{
	/* Frames lie 16 bytes apart at least; a pair is 64 bytes. */
	uint64_t bytes = (place & self->site_mask) * 4;

	return (struct thread_site *)((char *)self->sites + bytes);
}

/* The context of this call, if the place is known. */
static inline __attribute__((always_inline)) bool context_hit(struct thread *self,
							      struct caller caller, uint64_t *ret)
{
	uint64_t place = context_place(self, caller);
	struct thread_site *site = context_site(self, place);

	if (likely(site->place == place && context_words(site, caller.frame) == site->words)) {
		*ret = site->context;
		return true;
	}
	*ret = arch_call_kept(context_branch, self, place, caller.frame);
	return *ret != 0;
}

/* The context of this call. 0 when the table is full: counted. */
static inline __attribute__((always_inline)) uint32_t context_find(struct guard *guard,
								   struct caller caller)
{
	uint64_t context;

	return context_hit(guard->self, caller, &context)
		       ? (uint32_t)context
		       : context_find_slow(*guard, caller.return_address, caller.frame, caller.rbp);
}

#endif
