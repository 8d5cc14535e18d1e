#pragma once

#include "plan/hooks/planner.h"

/*
 * A malloc that a program has inside: linked in statically, or written there. Its calls never come
 * to a preloaded library, so its functions are replaced where they are (docs/design/allocators.md).
 *
 * Known by their names: those of C and C++, and jemalloc's mallocx and its kin.
 */

/* Appends what replaces the functions of `program`'s malloc to `items`. -ENOTSUP when they cannot
 * be: `err` says why, and nothing is appended. -EBUSY when a function of it is in `items` already,
 * as the user's --allocator. `ret_unseen`, if it is not empty then, names functions whose blocks
 * will not be seen, with commas. */
int own_malloc_plan(struct hook_planner *planner, const char *program, struct strbuf *items,
		    struct strbuf *ret_unseen, struct err *err);
