#pragma once

#include "arch/code.h"
#include "plan/hooks/cfg.h"

/*
 * Where a function is patched so that its entry and its exits are seen, and how.
 *
 * A jump of five bytes where that many can be replaced unnoticed, else a breakpoint of one byte,
 * which costs a signal each time. The choice depends on the function alone and not on what the hook
 * is for: so two plans for one function, made apart, fit together.
 */
/* Bytes of endbr64: where a function begins with one, its entry is patched behind it. */
#define PATCHES_ENTRY_MARK 4

enum patch_kind {
	PATCH_ENTRY,
	PATCH_RETURN,
	PATCH_TAIL, /* a jump to another function, which returns in this one's stead */
};

struct patch {
	enum patch_kind kind;
	bool trap; /* a breakpoint instead of a jump */
	uint64_t at;
	size_t covered; /* bytes from `at` on that are replaced or moved */
	size_t before;	/* of the moved code: the hook runs after so many */
	struct code_moved moved;
	uint64_t tail_target;
};

struct patches {
	VEC(struct patch) list; /* the entry, then the exits */
	/* Why exits are not all seen; code 0 when they are. The entry is usable then. */
	struct err no_exits;
	size_t traps; /* how many are breakpoints */
};

/* An error says why the function cannot be hooked at all. */
int patches_plan(const struct shape *shape, struct patches *ret, struct err *err);
void patches_deinit(struct patches *patches);
