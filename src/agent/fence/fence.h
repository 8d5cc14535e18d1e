/*
 * Fences: blocks that end where a page ends, with the next page closed.
 *
 *	| data page(s)                             | closed page |
 *	              | slack | block      | slack |
 *
 * Whoever reads or writes behind the block, or in it after its free, faults at the very
 * instruction. The access is written down and let through: its page is open for that one
 * instruction (fence_access.c), so the program goes on as it would have. What a closed page
 * holds is kept elsewhere meanwhile (keep.c): a freed block's bytes are still there for who reads
 * them.
 *
 * A block ends at the page's end as far as its alignment allows: 16 for sizes that are multiples
 * of 16 and for operator new, 8 for all others, 1 with PLAN_FENCE_EXACT. The bytes between, and
 * some before the block, hold a guard's words (wire/guard_word.h) and are looked at when the block
 * is freed and at the end. With PLAN_FENCE_FRONT it begins where a page begins instead.
 *
 * A freed block's pages are closed, and their place is the last to be used again (slots.c).
 *
 * Fences are a part of the heap observer: canary.c asks here first, and a block that has no fence
 * may have guards. Which contexts have fences follows from the plan's turn (fence_turn.h): all of
 * them, as long as there is room.
 *
 * Locks: slots have one, taken inside the guard only; closed pages have one, taken by handlers.
 * Nobody waits for the first while he has the second.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "agent/core/agent.h"
#include "agent/ids/context.h"
#include "wire/log_fence.h"
#include "wire/plan.h"

struct call;

/* Set once by the constructor; stays when the agent retires, since the blocks do. */
extern HIDDEN struct fence_state {
	uint64_t base, bytes; /* bytes 0: there are none */
	uint32_t mode;	      /* enum log_fence_mode */
	uint32_t level;	      /* atomic */
	bool planned;
	bool left; /* all pages are open, and stay so */
	struct plan_fence plan;
	uint64_t fenced, passed; /* atomic */
} fence;

static inline bool fence_holds(const void *ptr)
{
	return unlikely((uint64_t)ptr - fence.base < fence.bytes);
}

/* The same as a function. */
bool fence_holds_ptr(const void *ptr);

/* What the plan asks for; copied. */
void fence_plan(const struct plan_fence *plan);

/* After canary_init(). */
void fence_init(void);
/* In a forked child. */
void fence_after_fork(void);

/* ---- blocks: in place of libc, from canary_heap.c
 * ---------------------------------------------------
 */

/* Do blocks of this context have fences now? */
bool fence_has_turn(uint32_t context);

/* NULL: it is to have no fence. Zeroed. */
void *fence_allocate(uint64_t align, uint64_t size, enum log_api api, struct caller caller);
void fence_free(void *ptr, enum log_free_by by, struct caller caller);
void *fence_realloc(void *ptr, size_t size, struct caller caller);
size_t fence_usable(const void *ptr);
/* Nothing can be recorded: it is never used again. */
void fence_leave_sigsafe(void *ptr);

/* The next block of this thread is for operator new, whose callers count on an alignment of 16. */
void fence_expect_new(void);

/* An access to a closed page: tells it and lets it through. Or the trap behind it. False: it is
 * none.
 */
bool fence_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);

/* A system call with pointers to fenced memory. False: it is to be made as ever. */
bool fence_call_sigsafe(struct call *call);

/* Looks at what lies beside live blocks, and writes down how much was covered. */
void fence_exiting_sigsafe(void);
void fence_crashed_sigsafe(const struct log_crash *crash, const uint64_t *starts, unsigned count);
/* No page is opened or closed from now on: the target forbids itself the calls that it takes. */
void fence_left_sigsafe(void);
