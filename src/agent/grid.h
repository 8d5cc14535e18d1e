/*
 * The side table where objects of one size lie side by side, as in the pools of CPython.
 *
 * What is known of an object is found by its place in the pool, so no index is read, and what is
 * always the same in a pool need not be said: one word is enough for a live object, where an entry
 * of blocks.h and its part of the index are 48 bytes and more. A second word, in another array,
 * says who freed it and when. An interpreter makes and frees objects by the million, and feels
 * every line of the cache.
 *
 * A pool has a run of words, one for each object that has room in it; its record says where they
 * begin and how far apart the objects lie. A pool that is used for another size later gets another
 * run; the one before is kept until it changes again, so that former owners can still be told.
 *
 * Only pymalloc's pools have records, and only objects that were made when it was trusted are here.
 * The others are where all objects of sub-allocators are, also those of the same pools: so whoever
 * looks for an object looks here and there. An object has no id of its own: its context and ordinal
 * are one, which comes again only after four billion objects of that context.
 */
#ifndef REDHAND_AGENT_GRID_H
#define REDHAND_AGENT_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/blocks.h"
#include "agent/memory.h"
#include "agent/pymalloc.h"

#define GRID_POOL_BITS 14u

/* Of a record: the number of its first word, 32768 / units rounded up, units of 16 bytes from an
 * object to the next. */
#define GRID_FACTOR_SHIFT 32u
#define GRID_UNITS_SHIFT 48u
#define GRID_ONE_BITS 15u

/* Of the word of an object: context, ordinal, how much shorter than its place it is, which domain,
 * is it live, and how many forks there were before it: the contexts of a parent are in its log. */
#define GRID_CONTEXT_BITS 20u
#define GRID_ORDINAL_SHIFT 20u
#define GRID_SHORT_SHIFT 52u
#define GRID_MEMORY_SHIFT 56u
#define GRID_LIVE_SHIFT 57u
#define GRID_FORKS_SHIFT 58u
#define GRID_FORKS_MAX 63u
#define GRID_LIVE (1ull << GRID_LIVE_SHIFT)

_Static_assert(PYMALLOC_POOL == 1u << GRID_POOL_BITS, "a record for a pool");

/* Makes room for it. False: there is none, and so no grid. */
bool grid_init(void);

/* Makes the records around this address readable: the region of blocks.h. */
bool grid_allow(uint64_t region);

/* The lane's part of the words of its objects. */
uint64_t grid_lane_word(const struct thread *self);

/* As in blocks.h, inside a guard. A record is made if its pool has none and can have one. False: it
 * is none of these objects. */
bool grid_begin_guarded(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
			uint32_t context);
bool grid_end_guarded(struct guard *guard, uint64_t start, struct caller caller);

/* The object that starts here, or last did; `before`: by the run that the pool had before this one.
 * False: there is none, and never was. _sigsafe */
bool grid_look_sigsafe(uint64_t start, bool before, struct block *ret);

static inline __attribute__((always_inline)) uint64_t *grid_record(uint64_t start)
{
	return &((uint64_t *)MEMORY_GRID_AT)[start >> GRID_POOL_BITS];
}

static inline __attribute__((always_inline)) uint64_t *grid_word(uint64_t number)
{
	return &((uint64_t *)MEMORY_GRID_WORDS_AT)[number];
}

/* Who freed it: context, and the epoch in the upper half. */
static inline __attribute__((always_inline)) uint64_t *grid_end_word(uint64_t number)
{
	return &((uint64_t *)MEMORY_GRID_ENDS_AT)[number];
}

/* The number of the word of an object that starts here; 0: none can. By a multiplication instead
 * of a division: what is left over tells whether there is a start at all. Addresses in the pool's
 * head come out behind its last object, where words are that nobody has. */
static inline __attribute__((always_inline)) uint64_t grid_number(uint64_t record, uint64_t start)
{
	uint64_t from = (start - sizeof(struct pymalloc_pool)) & (PYMALLOC_POOL - 1);
	uint64_t factor = (uint16_t)(record >> GRID_FACTOR_SHIFT);
	uint64_t product = from / PYMALLOC_ALIGN * factor;

	if (unlikely((product & ((1u << GRID_ONE_BITS) - 1)) >= factor))
		return 0;
	return (uint32_t)record + (product >> GRID_ONE_BITS);
}

static inline __attribute__((always_inline)) uint64_t grid_units(uint64_t size)
{
	return (size - 1) / PYMALLOC_ALIGN + 1;
}

static inline __attribute__((always_inline)) void grid_write(const struct thread *self,
							     uint64_t number, uint64_t size,
							     enum log_api api, uint64_t context)
{
	uint64_t ordinal = arch_take_one(context_ordinal(context));

	*grid_word(number) = self->grid_word | context | ordinal << GRID_ORDINAL_SHIFT |
			     (-size & (PYMALLOC_ALIGN - 1)) << GRID_SHORT_SHIFT |
			     (uint64_t)(api == LOG_API_PYTHON_MEMORY) << GRID_MEMORY_SHIFT;
}

/* As block_begin(), of an object of at most PYMALLOC_LARGEST bytes. */
static inline __attribute__((always_inline)) void *
grid_begin(void *ptr, uint64_t size, enum log_api api, struct caller caller)
{
	uint64_t start = (uint64_t)ptr, record, number, context;
	struct thread *self = thread_hot;

	if (unlikely(!context_hit(self, caller, &context) ||
		     !block_region(self, BLOCKS_SUB, start)))
		goto slow;
	record = *grid_record(start);
	if (unlikely(record >> GRID_UNITS_SHIFT != grid_units(size)))
		goto slow;
	number = grid_number(record, start);
	/* Its id counts, and says whether somebody is inside. */
	if (unlikely(!number || arch_take(&self->next_id, 1) >= self->id_stop))
		goto slow;
	grid_write(self, number, size, api, context);
	return ptr;
slow:
	return block_begin_slow(ptr, size, BLOCKS_SUB, api, (const uint64_t *)caller.frame);
}

/* The object's life in the ring, as block_write_end() has it. */
static inline __attribute__((always_inline)) void grid_write_life(const struct thread *self,
								  uint64_t life, uint64_t record,
								  uint64_t word, uint64_t start,
								  uint64_t context)
{
	uint64_t made = word & ((1u << GRID_CONTEXT_BITS) - 1);
	uint64_t ordinal = (uint32_t)(word >> GRID_ORDINAL_SHIFT);
	uint64_t size = (record >> GRID_UNITS_SHIFT) * PYMALLOC_ALIGN -
			(word >> GRID_SHORT_SHIFT & (PYMALLOC_ALIGN - 1));
	uint64_t api = LOG_API_PYTHON_OBJECT + (word >> GRID_MEMORY_SHIFT & 1);
	uint64_t id = ALLOC_ID_PAIR | made << 32 | ordinal, size_context = size | made << 32;
	uint64_t freed = context | ordinal << 32;
	uint64_t state = self->live_word + self->freed_word + (api << BLOCK_API_SHIFT);

	ring_write(life, id, size_context, freed, state, start);
}

/* As block_end(). False: nothing was done; so it is for objects that are not here. */
static inline __attribute__((always_inline)) bool grid_end(void *ptr, struct caller caller)
{
	uint64_t start = (uint64_t)ptr, context, number, record, word, life;
	struct thread *self = thread_hot;

	if (unlikely(!context_hit(self, caller, &context) ||
		     !block_region(self, BLOCKS_SUB, start)))
		return false;
	record = *grid_record(start);
	number = grid_number(record, start);
	if (unlikely(!number))
		return false;
	word = *grid_word(number);
	__builtin_prefetch(grid_word(number + 8), 1);
	if (unlikely((word ^ self->grid_word) >> GRID_LIVE_SHIFT))
		return false;
	life = ring_take(self);
	if (unlikely(!life))
		return false;
	*grid_word(number) = word ^ GRID_LIVE;
	*grid_end_word(number) = context | self->freed_word << 32;
	grid_write_life(self, life, record, word, start, context);
	return true;
}

#endif
