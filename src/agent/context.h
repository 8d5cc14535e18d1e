/*
 * From a call's place to a context id.
 *
 * The fast way (about 3 ns): return address, stack pointer and the next six return addresses
 * above it are those of a site that has followed the last one before (sites.h). Their offsets were
 * found by a walk when it was new; reading six words again tells callers apart that reach the same
 * wrapper at the same depth, which (return address, stack pointer) alone would merge. What comes in
 * another order than before is looked up: context_seek().
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

/* The context of a call by the Python frames it stands under as well; `native` where there are
 * none. With python_stack_on only. */
uint32_t context_in_python(struct guard *guard, uint32_t native, struct caller caller);

/* The context of a call that is not what was expected; 0: not known. Called from the middle of the
 * hot path: arch_call_kept(). */
uint64_t context_seek(struct thread *self, uint64_t return_address, uint64_t frame);

/* Small factors keep the order of callers and cost one instruction each. Half of it is enough: two
 * ways differ by addresses of code, which lie near each other. */
static inline __attribute__((always_inline)) uint32_t
context_sum(const struct thread_site *site, uint64_t return_address, uint64_t frame)
{
	const char *base = (const char *)frame;
	uint64_t sum = return_address + 2 * *(const uint64_t *)(base + site->offset[0]);
	uint64_t b, c, d, e, f;

	if (site->offset[1]) {
		b = *(const uint64_t *)(base + site->offset[1]);
		c = *(const uint64_t *)(base + site->offset[2]);
		d = *(const uint64_t *)(base + site->offset[3]);
		e = *(const uint64_t *)(base + site->offset[4]);
		f = *(const uint64_t *)(base + site->offset[5]);
		sum += 4 * (b + 2 * c + 4 * d + 8 * (e + 2 * f));
	}
	return (uint32_t)sum;
}

/* Is it this call? The frame first: at another one the offsets lead anywhere. */
static inline __attribute__((always_inline)) bool
context_site_is(const struct thread_site *site, uint64_t return_address, uint64_t frame)
{
	return likely(site->frame == (uint32_t)frame) &&
	       likely(context_sum(site, return_address, frame) == site->sum);
}

static inline struct thread_site *context_behind(struct thread *self,
						 const struct thread_site *site, unsigned i)
{
	return (struct thread_site *)((char *)self + site->next[i]);
}

/* The call was this; what may come next is asked for, because a program that has done much in
 * between has it in no cache any more. */
static inline __attribute__((always_inline)) void context_follow(struct thread *self,
								 struct thread_site *site)
{
	struct thread_site *next = context_behind(self, site, 0);

	self->site_last = site;
	self->site_next = next;
	__builtin_prefetch(next);
	__builtin_prefetch(context_behind(self, site, 1));
}

/* The context of this call, if the place is known. */
static inline __attribute__((always_inline)) bool context_hit(struct thread *self,
							      struct caller caller, uint64_t *ret)
{
	struct thread_site *site = self->site_next;

	if (likely(context_site_is(site, caller.return_address, caller.frame))) {
		context_follow(self, site);
		*ret = site->context;
		return true;
	}
	*ret = arch_call_kept(context_seek, self, caller.return_address, caller.frame);
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
