#pragma once

#include "plan/hooks/planner.h"

/*
 * An allocator of the target's own, as the user describes it:
 *
 *	alloc=FUNC(size@0) free=FUNC(ptr@0)
 *
 * N in @N counts integer arguments from 0; a method's object is argument 0. Further forms:
 * alloc=FUNC(count@0*size@1), alloc=FUNC(size=32) for objects of one size,
 * realloc=FUNC(ptr@0,size@1). Any number of each; without parentheses it is as in the first line.
 * FUNC is as for hook_plan().
 */
int allocator_plan(struct hook_planner *planner, const char *text, struct strbuf *items,
		   struct err *err);

/* The n-th function of `text` that hands objects out, and how large they are (0: its arguments
 * tell). The caller's to free; NULL: there is none. */
char *allocator_hands_out(const char *text, size_t n, uint64_t *ret_size);
