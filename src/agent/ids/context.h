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
#pragma once

#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/core/guard.h"
#include "agent/core/memory.h"
#include "agent/ids/sites.h"

/* Blocks that each context has begun. Beside the log, because a row there is a cache line, and a
 * program with thousands of contexts has better use for those. */
extern HIDDEN uint32_t *context_ordinals;

/* The same for the hot path. */
static inline __attribute__((always_inline)) uint32_t *context_ordinal(uint64_t context)
{
	return &((uint32_t *)MEMORY_ORDINALS_AT)[context];
}

/* For each row of the context table: who is told of its blocks, by bits that are the marker's own
 * (watch.h). Such a context is never kept among the places that the fast path knows. NULL: nobody
 * is. */
extern HIDDEN uint16_t *context_marks;

static inline bool context_marked(uint32_t context)
{
	return unlikely(context_marks != NULL) && context_marks[context];
}

/* Rows of the table that are given out, and row 0: none behind them is in use. */
uint32_t context_rows_sigsafe(void);

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

/* The context of this call. 0 when the table is full: counted. */
static inline __attribute__((always_inline)) uint32_t context_find(struct guard *guard,
								   struct caller caller)
{
	uint64_t context;

	return context_hit(guard->self, caller, &context)
		       ? (uint32_t)context
		       : context_find_slow(*guard, caller.return_address, caller.frame, caller.rbp);
}
