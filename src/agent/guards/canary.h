/*
 * Guards around blocks: the layout of a block under the heap observer.
 *
 *	base            start                 start + size          base + room
 *	|  front (>=16) |  what was asked for  |  8 to 23 bytes of guard |
 *
 * Some trials have a gap behind that (wire/guard_word.h).
 *
 * The last 16 bytes of the front and everything behind the size are guard; malloc_usable_size
 * answers the size, so no program has a right to touch it. The front is 16 bytes, or the alignment
 * where more was asked for. How long it is stands in the side table, in the upper half of the
 * block's `api`, never in the heap: what the target has scribbled over is not trusted for anything.
 * A block without a front there (allocated before the agent was ready, where no hook saw it, by
 * another allocator, or when the side table was full) is passed through as it is.
 *
 * The upper half is 0 again once libc has the memory back: a freed block that still has its front
 * is in quarantine.
 *
 * Two blocks start at least 32 bytes apart, as the index of the side table needs it, also where
 * the second of them has no guards: hence CANARY_OWN_MIN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/ids/blocks.h"
#include "wire/guard_word.h"
#include "wire/plan.h"

#define CANARY_FRONT 16u
#define CANARY_BEHIND 8u   /* at least */
#define CANARY_OWN_MIN 24u /* from the start on */
#define CANARY_FRONT_MAX (CANARY_FRONT << 14)
#define CANARY_SIZE_MAX (1ull << 39) /* the side table's sizes end there */

/* Set once by the constructor; stays when the agent retires, since the blocks do. */
extern HIDDEN struct canary_state {
	bool planned, on;
	bool python;  /* its objects, too */
	bool tight;   /* memory is: new blocks have no guards (memory_budget.h) */
	bool asks;    /* each block goes by canary_allocate() */
	bool annexed; /* some lie elsewhere: canary_annex */
	bool fresh;   /* what new blocks hold is the plan's chance: PLAN_HEAP_FRESH */
	uint64_t seed;
	uint64_t gap; /* canary_gap() */
	struct plan_heap plan;
} canary;

/* What the plan asks for; copied. */
void canary_plan(const struct plan_heap *plan);

static inline uint32_t canary_front(const struct block *block)
{
	uint32_t code = block->api >> BLOCK_FRONT_SHIFT;

	return code ? CANARY_FRONT << (code - 1) : 0;
}

/* What is asked from libc. glibc gives out 8 more than a multiple of 16 anyway. */
static inline uint64_t canary_room(uint64_t front, uint64_t size)
{
	uint64_t room = ((front + size + CANARY_BEHIND + 7) & ~15ull) + 8;

	return room < front + CANARY_OWN_MIN ? front + CANARY_OWN_MIN : room;
}

/* In the last word of the block, which bits are the program's. */
static inline uint64_t canary_tail_mask(uint64_t size)
{
	return (1ull << (size % 8 * 8)) - 1;
}

/* The words behind a block: the first shares its bytes with the program, and one or two may follow.
 * `middle` and `last` are among them whatever the size: where fewer follow, the same word twice
 * (and where none does, the first is all guard). Nothing to branch on, since sizes are what a CPU
 * guesses worst. */
struct canary_behind {
	uint64_t *first, *middle, *last;
};

static inline struct canary_behind canary_behind(uint64_t start, uint64_t front, uint64_t size)
{
	struct canary_behind ret = { .first = (uint64_t *)(start + (size & ~7ull)) };

	ret.last = (uint64_t *)(start - front + canary_room(front, size)) - 1;
	ret.middle = ret.first + (ret.first < ret.last);
	return ret;
}

static inline uint64_t canary_at(const uint64_t *word, uint64_t guard)
{
	return canary_guard_at(guard, (uint64_t)word);
}

/* Writes the guard behind a block of this size. */
static inline void canary_close(uint64_t start, uint64_t front, uint64_t size)
{
	uint64_t guard = canary_word(canary.seed, start, CANARY_GUARD);
	uint64_t mask = canary_tail_mask(size);
	struct canary_behind behind = canary_behind(start, front, size);

	*behind.first = (*behind.first & mask) | (canary_at(behind.first, guard) & ~mask);
	*behind.middle = canary_at(behind.middle, guard);
	*behind.last = canary_at(behind.last, guard);
}

static inline void canary_write(uint64_t start, uint64_t front, uint64_t size)
{
	uint64_t guard = canary_word(canary.seed, start, CANARY_GUARD), *words = (uint64_t *)start;

	words[-1] = canary_at(words - 1, guard);
	words[-2] = canary_at(words - 2, guard);
	canary_close(start, front, size);
}

/* Is every guard as it was written? `guard` is the block's canary_word(). */
static inline bool canary_is(uint64_t start, uint64_t front, uint64_t size, uint64_t guard)
{
	const uint64_t *words = (const uint64_t *)start;
	struct canary_behind behind = canary_behind(start, front, size);

	return !((words[-1] ^ canary_at(words - 1, guard)) |
		 (words[-2] ^ canary_at(words - 2, guard)) |
		 ((*behind.first ^ canary_at(behind.first, guard)) & ~canary_tail_mask(size)) |
		 (*behind.middle ^ canary_at(behind.middle, guard)) |
		 (*behind.last ^ canary_at(behind.last, guard)));
}

static inline bool canary_whole(uint64_t start, uint64_t front, uint64_t size)
{
	return canary_is(start, front, size, canary_word(canary.seed, start, CANARY_GUARD));
}
