/*
 * The places that a thread allocates from: struct thread_site, which came behind which, and how
 * several ways to one place are kept apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/thread.h"

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
 * A compiler that has no such option makes frames in these files, too (meson.build). */
#if AGENT_BARE
#define CALLER_BARE                                                      \
	{                                                                \
		((const uint64_t *)__builtin_dwarf_cfa())[-1],           \
			(uint64_t)__builtin_dwarf_cfa() - 16, arch_rbp() \
	}
#else
#define CALLER_BARE CALLER_HERE
#endif

/* Offset of a word that says nothing: the return address itself, which is the place's own. */
#define SITES_NO_WORD 8u

/* Remembers the context of this call: the stack words that tell it lie at these offsets. fixed: the
 * first of them does for every call that returns there, so the return address may become a wrapper.
 */
void sites_learn(struct thread *self, struct caller caller,
		 const uint16_t offset[THREAD_SITE_WORDS], bool fixed, uint32_t context);

/* What sites were recognised by may be no longer there: all are learned again. */
void sites_forget(struct thread *self);

/* It may be misleading, for those whose context goes through one of these: `through` says by
 * context. */
void sites_forget_through(struct thread *self, const uint32_t *through, uint32_t bits);

/* The context of a call that is not what was expected; 0: not known. Called from the middle of the
 * hot path: arch_call_kept(). */
uint64_t context_seek(struct thread *self, uint64_t return_address, uint64_t frame);

static inline __attribute__((always_inline)) uint64_t context_word(uint64_t sum, uint64_t frame,
								   uint32_t offset)
{
	return arch_mix(sum, (const uint64_t *)((const char *)frame + offset));
}

/* Factors and additions would do for less, but then a call some bytes further and a caller some
 * bytes nearer cancel each other out. */
static inline __attribute__((always_inline)) uint32_t
context_sum(const struct thread_site *site, uint64_t return_address, uint64_t frame)
{
	uint64_t sum = return_address; /* of which the lower half counts */
	uint32_t two;		       /* of the offsets, by one load */

	__builtin_memcpy(&two, site->offset, sizeof(two));
	sum = context_word(sum, frame, (uint16_t)two);
	if (two >> 16) {
		/* Two halves, which do not wait for each other. Each word is mixed in by itself: if
		 * the sum began with one word as it is, that word and the next would cancel each
		 * other out where both differ in the same bits. So would one of each half if both
		 * counted alike. */
		uint64_t half = context_word(0, frame, site->offset[3]);

		sum = context_word(sum, frame, two >> 16);
		half = context_word(half, frame, site->offset[4]);
		sum = context_word(sum, frame, site->offset[2]);
		half = context_word(half, frame, site->offset[5]);
		sum += half * 5;
	}
	return (uint32_t)sum;
}

/* All of the frame, and as much of the return address as there is room for above it. */
static inline __attribute__((always_inline)) uint64_t context_call(uint64_t return_address,
								   uint64_t frame)
{
	return frame ^ return_address << 48;
}

/* Is it this call? Its frame first: at another one the offsets lead anywhere, and so they may in
 * another function on another stack that lies where one was. */
static inline __attribute__((always_inline)) bool
context_site_is(const struct thread_site *site, uint64_t return_address, uint64_t frame)
{
	return likely(site->call == context_call(return_address, frame)) &&
	       likely(context_sum(site, return_address, frame) == site->sum);
}

/* The call was this; what comes next is asked for, because a program that has done much in between
 * has it in no cache any more. Returns the context. */
static inline __attribute__((always_inline)) uint64_t context_follow(struct thread *self,
								     struct thread_site *site)
{
	uint64_t follow = site->follow, next;

	__asm__("" : "+r"(follow)); /* GCC would load its parts */
	next = follow >> THREAD_SITE_NEXT_SHIFT;
	__asm__("" : "+r"(next)); /* ...and multiply a number, where this is one addition */
	self->fast.site_last = site;
	self->fast.site_next = (struct thread_site *)((char *)self->tables.sites + next);
	__builtin_prefetch(self->fast.site_next);
	return follow & THREAD_SITE_CONTEXT;
}

/* The context of this call, if the place is known. */
static inline __attribute__((always_inline)) bool context_hit(struct thread *self,
							      struct caller caller, uint64_t *ret)
{
	struct thread_site *site = self->fast.site_next;

	if (likely(context_site_is(site, caller.return_address, caller.frame))) {
		*ret = context_follow(self, site);
		return true;
	}
	*ret = arch_call_kept(context_seek, self, caller.return_address, caller.frame);
	return *ret != 0;
}
