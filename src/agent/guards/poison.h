/*
 * Poison: what freed blocks are overwritten with, one word over and over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/guards/canary.h"

#define POISON_END 256u /* bytes of a block that is overwritten at both ends only */

/* The parts of a freed block that are overwritten: [start, head) and [tail, start + size). */
static inline void poison_parts(uint64_t start, uint64_t size, bool all, uint64_t *ret_head,
				uint64_t *ret_tail)
{
	all |= size <= 2 * POISON_END;
	*ret_head = all ? start + size : start + POISON_END;
	*ret_tail = all ? start + size : (start + size - POISON_END) & ~7ull;
}

/* Two words at once, wherever they lie; every x86-64 can. */
typedef uint64_t poison_pair __attribute__((vector_size(16), aligned(8), may_alias));

#define POISON_PAIRS 4u /* of a stride */
#define POISON_STRIDE (2 * POISON_PAIRS)

static inline void poison_fill_stride(uint64_t *word, poison_pair both)
{
	((poison_pair *)word)[0] = both;
	((poison_pair *)word)[1] = both;
	((poison_pair *)word)[2] = both;
	((poison_pair *)word)[3] = both;
}

/* Strides that overlap at the end: fewer turns to guess wrong. */
static inline void poison_fill(uint64_t *word, uint64_t *end, uint64_t value)
{
	const poison_pair both = { value, value };

	if (end - word >= POISON_STRIDE) {
		for (; end - word > POISON_STRIDE; word += POISON_STRIDE)
			poison_fill_stride(word, both);
		poison_fill_stride(end - POISON_STRIDE, both);
		return;
	}
	for (; end - word >= 2; word += 2)
		*(poison_pair *)word = both;
	if (word < end)
		*word = value;
}

static inline void poison_write(uint64_t start, uint64_t size, bool all, uint64_t poison)
{
	uint64_t mask = canary_tail_mask(size), *last = (uint64_t *)(start + (size & ~7ull));
	uint64_t head, tail;

	poison_parts(start, size, all, &head, &tail);
	poison_fill((uint64_t *)start, (uint64_t *)(head & ~7ull), poison);
	if (unlikely(tail < start + size))
		poison_fill((uint64_t *)tail, last, poison);
	*last = (*last & ~mask) | (poison & mask);
}

static inline poison_pair poison_stride_differs(const uint64_t *word, poison_pair both)
{
	return (((const poison_pair *)word)[0] ^ both) | (((const poison_pair *)word)[1] ^ both) |
	       (((const poison_pair *)word)[2] ^ both) | (((const poison_pair *)word)[3] ^ both);
}

static inline uint64_t poison_differs(const uint64_t *word, const uint64_t *end, uint64_t value)
{
	const poison_pair both = { value, value };
	poison_pair wrong = { 0, 0 };
	uint64_t odd = 0;

	if (end - word >= POISON_STRIDE) {
		for (; end - word > POISON_STRIDE; word += POISON_STRIDE)
			wrong |= poison_stride_differs(word, both);
		wrong |= poison_stride_differs(end - POISON_STRIDE, both);
	} else {
		for (; end - word >= 2; word += 2)
			wrong |= *(const poison_pair *)word ^ both;
		if (word < end)
			odd = *word ^ value;
	}
	return wrong[0] | wrong[1] | odd;
}

static inline bool poison_is(uint64_t start, uint64_t size, bool all, uint64_t poison)
{
	const uint64_t *last = (const uint64_t *)(start + (size & ~7ull));
	uint64_t wrong = (*last ^ poison) & canary_tail_mask(size), head, tail;

	poison_parts(start, size, all, &head, &tail);
	wrong |= poison_differs((const uint64_t *)start, (const uint64_t *)(head & ~7ull), poison);
	if (unlikely(tail < start + size))
		wrong |= poison_differs((const uint64_t *)tail, last, poison);
	return !wrong;
}

/* Is the poison as it was written? The block's last bytes, in a word with the guard, included. */
static inline bool poison_whole(uint64_t start, uint64_t size, bool all)
{
	return poison_is(start, size, all, canary_word(canary.seed, start, CANARY_POISON));
}
