/*
 * Side table: which allocation owns an address now, and which owned it last.
 *
 * An index maps a window of 32 bytes (16 where blocks can lie that close) to an entry; entries lie
 * densely in a pool. Per live block that is 32 bytes, plus 4 for every window of its heap: about
 * 42 for blocks of 80 bytes. Neighbours in the heap are neighbours in the index, so the table
 * misses the cache where the program itself does, and nowhere else.
 *
 * An entry is never given back: a freed block's stays as "last owner of this address" until the
 * next block starts in the same window. So the life of any freed address can be told, however
 * long ago it ended.
 *
 * No locks: a block's window belongs to the thread that owns the block, from the return of the
 * real malloc until before the call of the real free. A crash handler may see a half-written entry
 * of the thread it interrupted, never of another.
 *
 * The index grows by 64 MiB of address space at a time (8 MiB of untouched memory). When memory is
 * refused, the block is dropped and counted: a hole in the record is honest, a stall inside the
 * target's malloc is not.
 */
#ifndef REDHAND_AGENT_BLOCKS_H
#define REDHAND_AGENT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/context.h"
#include "agent/guard.h"
#include "wire/log_format.h"

/* The hot path writes it as four words. */
struct block {
	uint64_t id;
	uint32_t size_low;
	uint32_t context; /* bits 0..23; bits 24..31 are bits 32..39 of the size */
	uint32_t free_context;
	uint32_t ordinal; /* within its context */
	uint32_t freed_epoch;
	uint8_t state; /* enum log_block_state; 0: never used */
	uint8_t api;   /* enum log_api */
	uint8_t low;   /* start & 31: two blocks may have shared the window */
	uint8_t lane;  /* whose context it was; THREAD_LANE_SHARED: count atomically */
};

_Static_assert(sizeof(struct block) == 32, "at most 48 bytes per live block");

/* Two name spaces: blocks of malloc, and objects that a sub-allocator (CPython's, --allocator)
 * carves out of them. */
enum block_space { BLOCKS_HEAP, BLOCKS_SUB, BLOCKS_SPACES };

/* Maps the tables. False: no memory. */
bool blocks_init(void);

/* ---- the hot path: inlined into the hooks, about 60 instructions each way ---------------------
 */

#define BLOCKS_CHUNK_BITS 26u /* address space per index chunk */
#define BLOCKS_ADDRESS_BITS 47u
#define BLOCK_SIZE_SHIFT 24u
#define BLOCK_CONTEXT_MASK 0xffffffu
#define BLOCKS_LARGE (64u << 10)
#define EPOCH_EVENTS 64u

struct blocks_space {
	uint32_t **directory; /* one chunk of windows per 64 MiB; atomic */
	uint32_t shift;	      /* log2 of a window */
	uint64_t largest;     /* block ever seen: bounds the walk backwards; racy, only grows */
};

extern struct blocks_state {
	struct block *pool;
	struct blocks_space spaces[BLOCKS_SPACES];
} blocks_state;

/* The rare parts, out of line. */
struct block *block_entry_slow(struct thread *self, enum block_space space, uint64_t start);
void block_id_refill(struct thread *self);
void block_epoch_move(struct thread *self);
void block_bad_free(struct guard guard, enum block_space space, uint64_t start,
		    uint64_t return_address, uint64_t frame);
void block_count_elsewhere(const struct block *block);

static inline __attribute__((always_inline)) uint32_t *
block_window(const struct blocks_space *space, uint64_t start)
{
	uint32_t *chunk;

	if (unlikely(start >> BLOCKS_ADDRESS_BITS))
		return NULL;
	chunk = __atomic_load_n(&space->directory[start >> BLOCKS_CHUNK_BITS], __ATOMIC_ACQUIRE);
	if (unlikely(!chunk))
		return NULL;
	return &chunk[(start & ((1ull << BLOCKS_CHUNK_BITS) - 1)) >> space->shift];
}

static inline uint64_t block_size(const struct block *block)
{
	return (uint64_t)(block->context >> BLOCK_SIZE_SHIFT) << 32 | block->size_low;
}

/* Bits 0..31 as in struct block: size, then context with the size's high byte. */
static inline uint64_t block_size_context(uint64_t size, uint32_t context)
{
	return (size & 0xffffffff) | (uint64_t)context << 32 |
	       (size >> 32) << (32 + BLOCK_SIZE_SHIFT);
}

static inline __attribute__((always_inline)) void block_ring_add(struct thread *self, uint64_t id,
								 uint64_t addr_op,
								 uint64_t size_context,
								 uint32_t epoch)
{
	uint64_t position = self->ring_position;
	uint64_t *to = (uint64_t *)&self->ring[position & self->ring_mask];

	to[0] = id;
	to[1] = addr_op;
	to[2] = size_context;
	to[3] = (uint64_t)log_life_sum(id, addr_op, size_context, epoch) << 32 | epoch;
	self->ring_position = position + 1;
	self->row->ring_position = position + 1;
	if (unlikely(!(position % EPOCH_EVENTS)))
		block_epoch_move(self);
}

/* A block was handed to the target. */
static inline __attribute__((always_inline)) void
block_begin(struct guard *guard, enum block_space space, uint64_t start, uint64_t size,
	    enum log_api api, struct caller caller)
{
	struct thread *self = guard->self;
	uint32_t *window = block_window(&blocks_state.spaces[space], start);
	uint32_t epoch = (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	uint32_t context = context_find(guard, caller);
	struct log_context *row = &log_map.contexts[context];
	uint64_t id, ordinal, *entry;
	struct block *block;

	if (likely(window && *window))
		block = &blocks_state.pool[*window];
	else if (!(block = block_entry_slow(self, space, start)))
		return;
	if (unlikely(self->next_id == self->id_end))
		block_id_refill(self);
	if (unlikely(size >= BLOCKS_LARGE) && size > blocks_state.spaces[space].largest)
		blocks_state.spaces[space].largest = size;
	id = self->next_id++;
	ordinal = row->allocs++;
	row->alloc_bytes += size;
	entry = (uint64_t *)block;
	entry[0] = id;
	entry[1] = block_size_context(size, context);
	entry[2] = ordinal << 32;
	entry[3] = (uint64_t)self->lane_tag << 56 | (start & 31) << 48 | (uint64_t)api << 40 |
		   (uint64_t)LOG_BLOCK_LIVE << 32;
	block_ring_add(self, id,
		       start | (uint64_t)LOG_LIFE_ALLOC << 48 | (uint64_t)api << 52 |
			       (size >> 32) << 56,
		       (size & 0xffffffff) | (uint64_t)context << 32, epoch);
}

/* Before the block is given back. An address that was never seen is counted. */
static inline __attribute__((always_inline)) void
block_end(struct guard *guard, enum block_space space, uint64_t start, struct caller caller)
{
	struct thread *self = guard->self;
	uint32_t *window = block_window(&blocks_state.spaces[space], start);
	uint32_t epoch = (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	struct log_context *row;
	uint32_t context, meta;
	struct block *block;
	uint64_t size;

	block = window ? &blocks_state.pool[*window] : blocks_state.pool;
	meta = (uint32_t)(((const uint64_t *)block)[3] >> 32);
	/* Live, and this very start. Entry 0 of the pool is never live. */
	if (unlikely((meta & 0xff00ff) != (LOG_BLOCK_LIVE | (uint32_t)(start & 31) << 16))) {
		block_bad_free(*guard, space, start, caller.return_address, caller.frame);
		return;
	}
	context = context_find(guard, caller);
	block->free_context = context;
	((uint64_t *)block)[3] = (uint64_t)(meta ^ LOG_BLOCK_LIVE ^ LOG_BLOCK_FREED) << 32 | epoch;
	size = block_size(block);
	row = &log_map.contexts[block->context & BLOCK_CONTEXT_MASK];
	if (likely(meta >> 24 == self->lane_tag && meta >> 24 != THREAD_LANE_SHARED &&
		   block->id >= log_map.id_base)) {
		row->frees_own++;
		row->free_bytes_own += size;
	} else {
		block_count_elsewhere(block);
	}
	block_ring_add(self, block->id,
		       start | (uint64_t)LOG_LIFE_FREE << 48 | (uint64_t)(meta >> 8 & 0xff) << 52 |
			       (size >> 32) << 56,
		       (size & 0xffffffff) | (uint64_t)context << 32, epoch);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* realloc: ends the block for the time of the real call, without a record yet. */
struct block *block_suspend(struct guard *guard, uint64_t start, struct caller caller);
/* The real call failed, or stayed in place with a new size. */
void block_resume(struct guard *guard, struct block *block, uint64_t start, uint64_t size);
/* It moved: the suspended block is over. `was` is what block_suspend saw. */
void block_moved(struct guard *guard, const struct block *was, uint64_t start,
		 struct caller caller);

/* Marks a block as made by operator new; begins it when no inner malloc did. */
void block_claim(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
		 struct caller caller);

/* The entry whose window holds exactly this start, or NULL. _sigsafe */
struct block *block_at_sigsafe(enum block_space space, uint64_t start);

/* What an address points into. */
struct block_view {
	struct block block; /* a copy */
	uint64_t start, size;
	enum log_block_relation relation;
};

/* Finds the live block that contains the address, freed ones that covered it (latest first), or
 * the nearest block that ends within a page below. Walks backwards through the index: for crash
 * time, at most `reach_bytes` of address space. Returns how many of ret[] were filled. _sigsafe */
unsigned block_find_sigsafe(enum block_space space, uint64_t address, uint64_t reach_bytes,
			    struct block_view *ret, unsigned cap);

/* A view as a record; `via`, `where` and `value` are the caller's. _sigsafe */
void block_describe_sigsafe(const struct block_view *view, struct log_block *ret);

#endif
