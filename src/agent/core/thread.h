/*
 * What the agent keeps for one thread of the target: its lane (lanes.h).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/core/unwind_rule.h"
#include "wire/log_format.h"
#include "wire/plan.h"

struct quarantine;
struct arch_scratch;

#define THREAD_SITES_BITS 16
#define THREAD_SITE_PAIRS_MIN 512u
#define THREAD_KEYS (1u << 18)
#define THREAD_KEY_GROUPS_MIN 32u
#define THREAD_RULES_BITS 15
#define THREAD_RULES_MIN 256u
#define THREAD_WRAPPERS_BITS 12
#define THREAD_SITE_WORDS 6
#define THREAD_PLACES_BITS 8
#define THREAD_LANE_SHARED 255u
#define THREAD_ALTSTACK_BYTES \
	(256u << 10) /* untouched but for handlers of the target that ask for one */
#define THREAD_PENDING 64u
#define THREAD_SPACES 2u
#define THREAD_NO_REGION (~0ull)

/* A place that allocates or frees, and one way to it: return address and stack pointer, and the
 * next return addresses above, whose offsets were found when it was first seen.
 *
 * Programs do the same things in the same order, so a site remembers which two came behind it: the
 * next call is looked for there first. Only what is not there is looked up by its place (return
 * address and stack pointer, mixed). Where several ways lead to one place, a fork stands there
 * that only reads the return addresses which all of them have at the same offsets; those words and
 * the place make the place of the next site. Where the first of those words tells most of them
 * apart, it is part of the place from the start: `wrappers`. */
struct thread_site {
	uint64_t call; /* frame and return address: context_call(); 0: a fork, or nothing */
	union {
		uint64_t follow; /* what is below, by one load */
		/* What is learned later is stored by itself: a signal handler may come in between
		 * and have the site for another call. */
		struct __attribute__((packed)) {
			uint32_t context : 24;
			uint16_t other; /* the site behind it that is less likely */
			uint8_t fork;	/* of a fork: the words that it reads */
			uint16_t next;	/* the likelier one; 0 for both: none yet */
		};
	};
	uint32_t sum; /* of the return address and the stack words at `offset`; a fork's place */
	uint16_t offset[THREAD_SITE_WORDS]; /* from the frame, in bytes */
};

/* Of `follow`: the likelier site, in bytes. No fork is ever followed. */
#define THREAD_SITE_NEXT_SHIFT 43u
#define THREAD_SITE_CONTEXT 0xffffffu
#define THREAD_SITE_BIT 16u /* the lowest of a place's bits that choose its pair */

_Static_assert(sizeof(struct thread_site) == 32, "a pair is a cache line");
_Static_assert(THREAD_SITES_BITS == 16, "the number of a site has 16 bits");
_Static_assert(offsetof(struct thread_site, other) == 11 &&
		       offsetof(struct thread_site, next) == 14,
	       "whole bytes in `follow`");

/* A call of a hooked allocator that has not returned yet. */
struct thread_pending {
	uint64_t frame;	  /* names the call: its return address lies above */
	uint64_t size;	  /* asked for */
	uint64_t pointer; /* realloc: what is to be resized, and its size until then */
	uint64_t old_size;
	uint32_t number; /* of the allocator */
	uint32_t reserved;
};

/* What the hot path of the allocation hooks lives on: two lines, of which the first is full. */
struct thread_fast {
	uint64_t next_id, id_stop; /* ids from there on are not for the hot path; 0 in the guard */
	uint64_t ring_next,
		ring_stop;   /* of struct log_life; end of the group: the slow way moves on */
	uint64_t live_word;  /* the last word of a block that begins here */
	uint64_t freed_word; /* added to it when the block ends: state and epoch */
	/* By space of blocks: where the last block lay, so that the index can be read there. */
	uint64_t region[THREAD_SPACES];
	/* Never NULL. */
	struct thread_site *site_next; /* what the next call will be, if it is as it was before */
	struct thread_site *site_last; /* the last one */
	uint32_t site_mask;	       /* which bits of a place choose its pair of sites */
	uint32_t busy;		       /* inside a hook */
};

_Static_assert(offsetof(struct thread_fast, site_next) == 64, "the first line is full");

/* Its blocks: blocks.c, history.c, sample.c. */
struct thread_blocks {
	uint64_t id_end;   /* of this thread's block of ids */
	uint64_t id_group; /* ids below are counted in the epoch */
	uint32_t lane_tag; /* lane, or THREAD_LANE_SHARED for those that do not fit a byte */
	uint32_t burst;	   /* of its blocks every one is guarded: sample.c */
	/* By space of blocks: its piece of the side table's entries. */
	uint32_t pool_next[THREAD_SPACES], pool_end[THREAD_SPACES];
	struct log_life *ring;
	uint64_t ring_end;   /* of the group */
	uint32_t ring_ready; /* bytes of it that were touched or asked for */
	uint32_t epoch_due;  /* groups written since this lane last moved the epoch */
	uint64_t ring_group; /* position of the group's first record */
};

/* What of its tables is in use: they grow. */
struct thread_known {
	uint32_t sites_used, spans_varied, key_groups, rules_used, rules_mask;
	uint32_t forks;			    /* they are about the log of so many forks */
	uint32_t rules_generation;	    /* of the module table, that `rules` are about */
	uint32_t context_next, context_end; /* its rows of the context table */
};

/* Signals: signals.c, fault_record.c. None at the start. */
struct thread_signals {
	uint64_t blocked;  /* signals the target believes blocked and that are not */
	uint64_t masked;   /* …as long as all of these are blocked, which were set with them */
	uint64_t handling; /* signals whose handler of the target's runs from ours */
	uint64_t handler_frame; /* stack below it: the target's handler, run from ours; 0: none */
	uint64_t last_crash;	/* seq */
	uint64_t survived;	/* the latest of them that it went on behind */
	stack_t target_stack;	/* the alternate stack the target asked for; SS_DISABLE: none */
	/* Where to go on when a read in the agent faults: as __builtin_setjmp fills it. */
	uint64_t recovery[5];
	uint32_t recovery_armed;
};

/* Watched pages and fences: pages_fault.c, calls.c */
struct thread_told {
	uint32_t dispatched; /* its system calls are told */
	uint32_t stepping;   /* an instruction runs with the pages open; 2: the target steps, too */
	uint64_t step_address;
	int64_t step_gregs[LOG_GREGS];
	struct call_wait *waits;      /* the call that was told and is being made: call_cancel.c */
	struct arch_scratch *scratch; /* of the lane */
};

/* Calls of hooked functions that have not returned. */
struct thread_calls {
	struct thread_pending pending[THREAD_PENDING]; /* the last ones, newest before _next */
	uint32_t pending_next;
	bool expects_new;  /* its next block is for operator new: fence.h */
	bool place_python; /* its next object of Python is to lie on watched pages */
	uint64_t makers[PLAN_SIGHT_MAKERS]; /* frames of those that run; 0: it does not.
					       object_trace.c */
	uint64_t
		deleting; /* by operator delete, which may call another one: hooks_new.c; 0: none */
};

struct thread_chaos {
	uint64_t stream; /* 0: this thread has drawn nothing yet; chaos.c */
	uint32_t ease;	 /* its weight is shifted by this: some are held less than others */
	uint16_t places[1u << THREAD_PLACES_BITS]; /* allocations seen from each */
};

/* What a lane has seen so far. */
struct thread_tables {
	/* Return addresses that several callers lead to, and for each the offset of its caller's
	 * return address: it hangs on nothing else. By the address's low bits; who comes first
	 * keeps the place. */
	_Alignas(4096) uint64_t wrappers[1u << THREAD_WRAPPERS_BITS];
	uint16_t wrapper_offsets[1u << THREAD_WRAPPERS_BITS];
	/* Pairs, by their place. */
	_Alignas(4096) struct thread_site sites[1u << THREAD_SITES_BITS];
	_Alignas(4096) uint64_t keys[THREAD_KEYS]; /* stack_hashes.h */
	struct unwind_rule rules[1u << THREAD_RULES_BITS];
	uint16_t spans[1u << THREAD_RULES_BITS]; /* by rule: context.c */
};

struct thread {
	struct thread_fast fast;
	uint32_t lane;
	uint32_t tid;
	uint32_t generation;
	uint32_t exit_rounds;
	uint64_t stack_high; /* frames of this thread lie below */
	struct log_thread *row;
	struct thread_blocks blocks;
	struct thread_known known;
	struct thread_signals signals;
	struct thread_told told;
	struct quarantine *quarantine; /* of the lane, not of the thread; NULL: none yet */
	void *(*start)(void *);
	void *argument;
	uint64_t python_state; /* its PyThreadState, when it was last seen; 0: none. python_stack.c
				*/
	struct thread_calls calls;
	struct thread_chaos chaos;
	struct thread_tables tables;
	/* The alternate stack; a guard page lies below it in the mapping. */
	_Alignas(4096) unsigned char guard_page[4096];
	unsigned char altstack[THREAD_ALTSTACK_BYTES];
};

/* What a thread has without asking. No thread-local variables: a library that has some makes libc's
 * table of them 16 bytes longer in every thread, and that table is a block of the target's heap. A
 * thread that nobody told us of may find here what another left: all but `ended` is cleared where
 * one begins, and where one ends. */
struct thread_words {
	struct thread *self;
	uint64_t hot;	  /* from thread_nobody */
	uint64_t nothing; /* always 0 */
	uint64_t inside;  /* a call of the program's own malloc: alloc/builtin_malloc.h */
	uint32_t ended;	  /* the thread of this number has been here and left */
	uint32_t settled; /* watch/watch_perf.c */
};

_Static_assert(sizeof(struct thread_words) <= ARCH_THREAD_SPARE_BYTES, "libc's come behind");

#define thread_here ((ARCH_OF_THREAD struct thread_words *)ARCH_THREAD_SPARE)

/* NULL until the thread is known, and again when it is ending. */
#define thread_self (thread_here->self)

/* What thread_hot is where no thread is known: knows no place and has no ids, turns everybody away.
 */
extern __attribute__((visibility("hidden"))) struct thread thread_nobody;

/* The same for the hot path: never NULL. */
#define thread_hot ((struct thread *)((uint64_t)&thread_nobody + thread_here->hot))

/* NULL: nobody. Nothing is left of whoever was, but for the call that the thread may be in. */
static inline void thread_become(struct thread *self)
{
	thread_here->settled = 0;
	thread_here->hot = self ? (uint64_t)self - (uint64_t)&thread_nobody : 0;
	thread_here->self = self;
}

/* The hot path of the allocation hooks does not enter the guard: it is turned away while somebody
 * is inside. */
static inline __attribute__((always_inline)) void guard_close(struct thread *self)
{
	self->fast.busy = 1;
	self->fast.id_stop = 0;
	self->fast.ring_stop = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline __attribute__((always_inline)) void guard_open(struct thread *self)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->fast.busy = 0;
	self->fast.ring_stop = self->blocks.ring_end;
	self->fast.id_stop = self->blocks.id_end;
}
