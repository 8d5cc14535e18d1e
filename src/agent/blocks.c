#include "agent/blocks.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/checkpoint.h"
#include "agent/log.h"
#include "agent/memory.h"
#include "agent/real.h"

#define CHUNK_BITS 26u /* address space per index chunk */
#define ADDRESS_BITS 47u
#define POOL_BYTES_MAX (8ull << 30)
#define POOL_BYTES_MIN (16ull << 20)
#define POOL_GRAB 64u
#define ID_GRAB 1024u
#define SIZE_HIGH_SHIFT 24u
#define CONTEXT_MASK 0xffffffu

struct space {
	uint32_t **directory; /* one chunk of windows per 64 MiB; atomic */
	uint32_t shift;	      /* log2 of a window */
	uint64_t largest;     /* block ever seen: bounds the walk backwards; racy, only grows */
};

static struct {
	struct space spaces[BLOCKS_SPACES];
	struct block *pool;
	uint32_t pool_limit;
	uint32_t pool_used; /* atomic; entry 0 is none */
} blocks;

bool blocks_init(void)
{
	size_t directory_bytes = sizeof(uint32_t *) << (ADDRESS_BITS - CHUNK_BITS);
	uint64_t bytes;
	unsigned i;

	for (bytes = POOL_BYTES_MAX; bytes >= POOL_BYTES_MIN && !blocks.pool; bytes /= 2) {
		blocks.pool = memory_map_sigsafe(bytes);
		blocks.pool_limit = (uint32_t)(bytes / sizeof(struct block));
	}
	for (i = 0; i < BLOCKS_SPACES; i++) {
		blocks.spaces[i].directory = memory_map_sigsafe(directory_bytes);
		if (!blocks.spaces[i].directory)
			return false;
	}
	/* glibc's smallest chunk is 32 bytes, so two live blocks never share a window of 32. */
	blocks.spaces[BLOCKS_HEAP].shift = real.glibc_malloc ? 5 : 4;
	blocks.spaces[BLOCKS_SUB].shift = 4;
	blocks.pool_used = 1;
	return blocks.pool != NULL;
}

static uint32_t *chunk_add(struct space *space, uint64_t index)
{
	size_t bytes = sizeof(uint32_t) << (CHUNK_BITS - space->shift);
	uint32_t *fresh = memory_map_sigsafe(bytes), *none = NULL;

	if (!fresh)
		return NULL;
	if (__atomic_compare_exchange_n(&space->directory[index], &none, fresh, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	memory_unmap_sigsafe(fresh, bytes);
	return none;
}

static inline uint32_t *window_find(const struct space *space, uint64_t start)
{
	uint32_t *chunk;

	if (unlikely(start >> ADDRESS_BITS))
		return NULL;
	chunk = __atomic_load_n(&space->directory[start >> CHUNK_BITS], __ATOMIC_ACQUIRE);
	if (unlikely(!chunk))
		return NULL;
	return &chunk[(start & ((1ull << CHUNK_BITS) - 1)) >> space->shift];
}

static __attribute__((noinline)) uint32_t *window_add(struct space *space, uint64_t start)
{
	if (start >> ADDRESS_BITS || !chunk_add(space, start >> CHUNK_BITS))
		return NULL;
	return window_find(space, start);
}

static __attribute__((noinline)) bool pool_refill(struct thread *self)
{
	uint32_t at = __atomic_load_n(&blocks.pool_used, __ATOMIC_RELAXED);

	if (at > blocks.pool_limit - POOL_GRAB)
		return false;
	at = __atomic_fetch_add(&blocks.pool_used, POOL_GRAB, __ATOMIC_RELAXED);
	if (at > blocks.pool_limit - POOL_GRAB)
		return false;
	self->pool_next = at;
	self->pool_end = at + POOL_GRAB;
	return true;
}

/* Ids come in blocks per thread: one shared counter would make the threads wait for each other. */
static __attribute__((noinline)) void id_refill(struct thread *self)
{
	self->next_id = __atomic_fetch_add(&agent.next_id, ID_GRAB, __ATOMIC_RELAXED);
	self->id_end = self->next_id + ID_GRAB;
	log_map.header->next_id = self->id_end;
}

static __attribute__((noinline)) void epoch_move(struct thread *self)
{
	self->epoch_left = 64;
	log_map.header->epoch = __atomic_add_fetch(&agent.epoch, 1, __ATOMIC_RELAXED);
	if (unlikely(agent_switch.growth))
		checkpoint_time_sigsafe();
}

static inline uint32_t epoch_now(struct thread *self)
{
	if (unlikely(--self->epoch_left == 0))
		epoch_move(self);
	return (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
}

static inline uint64_t block_size(const struct block *block)
{
	return (uint64_t)(block->context >> SIZE_HIGH_SHIFT) << 32 | block->size_low;
}

static inline void block_set_size(struct block *block, uint64_t size, uint32_t context)
{
	block->size_low = (uint32_t)size;
	block->context = (context & CONTEXT_MASK) | (uint32_t)(size >> 32 & 0xff)
							    << SIZE_HIGH_SHIFT;
}

static inline void ring_add(struct thread *self, const struct block *block, uint64_t start,
			    enum log_life_op op, uint32_t context, uint32_t epoch)
{
	uint64_t position = self->ring_position++;
	struct log_life *to = &self->ring[position & self->ring_mask];
	struct log_life life;

	life.id = block->id;
	life.addr_op = (start & LOG_ADDRESS_MASK) | (uint64_t)op << 48 |
		       (uint64_t)block->api << 52 |
		       (uint64_t)(block->context >> SIZE_HIGH_SHIFT) << 56;
	life.size_low = block->size_low;
	life.context = context;
	life.epoch = epoch;
	life.check = log_life_check(&life);
	*to = life;
	self->row->ring_position = position + 1;
}

/* Counters of the context that made the block. Its own lane's thread adds plainly. */
static inline void count_begin(struct block *block, uint32_t context, uint64_t size)
{
	struct log_context *row = &log_map.contexts[context];

	block->ordinal = (uint32_t)row->allocs++;
	row->alloc_bytes += size;
}

static inline void count_end(struct thread *self, const struct block *block)
{
	struct log_context *row = &log_map.contexts[block->context & CONTEXT_MASK];

	/* Made before the fork: its context is a row of the parent's log. */
	if (unlikely(block->id < log_map.id_base))
		return;
	if (likely(block->lane == (uint8_t)self->lane && row->lane == self->lane)) {
		row->frees_own++;
		row->free_bytes_own += block_size(block);
	} else {
		__atomic_fetch_add(&row->frees_other, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&row->free_bytes_other, block_size(block), __ATOMIC_RELAXED);
	}
}

static inline struct block *entry_take(struct thread *self, struct space *space, uint64_t start)
{
	uint32_t *window = window_find(space, start);

	if (unlikely(!window)) {
		window = window_add(space, start);
		if (!window)
			return NULL;
	}
	if (unlikely(!*window)) {
		if (unlikely(self->pool_next == self->pool_end) && !pool_refill(self))
			return NULL;
		*window = self->pool_next++;
	}
	return &blocks.pool[*window];
}

void block_begin(struct guard *guard, enum block_space space, uint64_t start, uint64_t size,
		 enum log_api api, struct caller caller)
{
	struct thread *self = guard->self;
	struct block *block = entry_take(self, &blocks.spaces[space], start);
	uint32_t context;

	if (unlikely(!block)) {
		log_drop_sigsafe(LOG_DROP_BLOCK);
		return;
	}
	context = context_find(guard, caller);
	if (unlikely(self->next_id == self->id_end))
		id_refill(self);
	block->id = self->next_id++;
	block_set_size(block, size, context);
	block->free_context = 0;
	block->freed_epoch = 0;
	block->api = (uint8_t)api;
	block->low = start & 31;
	block->lane = (uint8_t)self->lane;
	block->state = LOG_BLOCK_LIVE;
	if (unlikely(size > blocks.spaces[space].largest))
		blocks.spaces[space].largest = size;
	count_begin(block, context, size);
	ring_add(self, block, start, LOG_LIFE_ALLOC, context, epoch_now(self));
}

struct block *block_at_sigsafe(enum block_space space, uint64_t start)
{
	uint32_t *window = window_find(&blocks.spaces[space], start);
	struct block *block;

	if (unlikely(!window || !*window))
		return NULL;
	block = &blocks.pool[*window];
	return block->low == (start & 31) ? block : NULL;
}

void block_describe_sigsafe(const struct block_view *view, struct log_block *ret)
{
	const struct block *block = &view->block;
	uint32_t context = block->context & CONTEXT_MASK;

	ret->state = block->state;
	ret->relation = (uint8_t)view->relation;
	ret->api = block->api;
	ret->id = block->id;
	ret->start = view->start;
	ret->size = view->size;
	ret->freed_epoch = block->freed_epoch;
	ret->context = context;
	ret->free_context = block->free_context;
	if (context < agent.plan.context_rows) {
		ret->key.stack_hash = log_map.contexts[context].stack_hash;
		ret->key.lane = log_map.contexts[context].lane;
	}
	ret->key.ordinal = block->ordinal;
}

/* Free of something that is not a live block's start. Also seen when a block was allocated where
 * no hook could see it, at an address whose last known owner is dead: the record is a suspicion,
 * which the tool holds against what libc says. */
static __attribute__((noinline)) void block_bad_free(struct guard *guard, struct block *block,
						     uint64_t start, uint32_t context)
{
	struct log_bad_free bad = { .kind = LOG_DOUBLE_FREE, .context = context, .pointer = start };
	struct block_view view = { .block = *block, .start = start, .relation = LOG_INSIDE };
	struct log_block hit = { .via = LOG_VIA_BAD_FREE, .value = start };
	struct log_writer writer;

	(void)guard;
	view.size = block_size(block);
	block_describe_sigsafe(&view, &hit);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_BAD_FREE, &bad, sizeof(bad));
	(void)log_append_sigsafe(&writer, LOG_BLOCK, &hit, sizeof(hit), NULL, 0);
}

struct block *block_end(struct guard *guard, enum block_space space, uint64_t start,
			struct caller caller)
{
	struct thread *self = guard->self;
	struct block *block = block_at_sigsafe(space, start);
	uint32_t context;

	if (unlikely(!block)) {
		log_drop_sigsafe(LOG_DROP_FOREIGN_FREE);
		return NULL;
	}
	context = context_find(guard, caller);
	if (unlikely(block->state != LOG_BLOCK_LIVE)) {
		block_bad_free(guard, block, start, context);
		return NULL;
	}
	block->free_context = context;
	block->freed_epoch = epoch_now(self);
	block->state = LOG_BLOCK_FREED;
	count_end(self, block);
	ring_add(self, block, start, LOG_LIFE_FREE, context, block->freed_epoch);
	return block;
}

struct block *block_suspend(struct guard *guard, uint64_t start, struct caller caller)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);

	if (!block) {
		log_drop_sigsafe(LOG_DROP_FOREIGN_FREE);
		return NULL;
	}
	if (block->state != LOG_BLOCK_LIVE) {
		block_bad_free(guard, block, start, context_find(guard, caller));
		return NULL;
	}
	block->free_context = context_find(guard, caller);
	block->freed_epoch = (uint32_t)agent.epoch;
	block->state = LOG_BLOCK_FREED;
	return block;
}

void block_resume(struct guard *guard, struct block *block, uint64_t start, uint64_t size)
{
	struct thread *self = guard->self;
	uint32_t context = block->context & CONTEXT_MASK, by = block->free_context;
	uint64_t old = block_size(block);
	struct log_context *row = &log_map.contexts[context];

	block->free_context = 0;
	block->freed_epoch = 0;
	block->state = LOG_BLOCK_LIVE;
	if (size == old)
		return;
	if (block->id >= log_map.id_base) {
		/* The bytes given back are counted as freed, those taken as allocated. */
		__atomic_fetch_add(&row->free_bytes_other, old, __ATOMIC_RELAXED);
		__atomic_fetch_add(&row->alloc_bytes, size, __ATOMIC_RELAXED);
	}
	block_set_size(block, size, context);
	if (size > blocks.spaces[BLOCKS_HEAP].largest)
		blocks.spaces[BLOCKS_HEAP].largest = size;
	ring_add(self, block, start, LOG_LIFE_RESIZE, by, epoch_now(self));
}

void block_moved(struct guard *guard, const struct block *was, uint64_t start, struct caller caller)
{
	count_end(guard->self, was);
	ring_add(guard->self, was, start, LOG_LIFE_FREE, context_find(guard, caller),
		 epoch_now(guard->self));
}

void block_claim(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
		 struct caller caller)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);

	if (block && block->state == LOG_BLOCK_LIVE)
		block->api = (uint8_t)api;
	else
		block_begin(guard, BLOCKS_HEAP, start, size, api, caller);
}

static void view_fill(struct block_view *view, const struct block *block, uint64_t window_start,
		      uint32_t shift)
{
	view->block = *block;
	view->start = (window_start & ~(uint64_t)31) | block->low;
	if (shift == 4)
		view->start = window_start | (block->low & 15);
	view->size = block_size(block);
}

/* The n-th youngest former owner stays sorted in by its end. */
static unsigned former_insert(struct block_view *ret, unsigned from, unsigned count, unsigned cap,
			      const struct block_view *view)
{
	unsigned at = count;

	while (at > from && (int32_t)(view->block.freed_epoch - ret[at - 1].block.freed_epoch) > 0)
		at--;
	if (at == cap)
		return count;
	if (count < cap)
		count++;
	memmove(ret + at + 1, ret + at, (count - at - 1) * sizeof(*ret));
	ret[at] = *view;
	return count;
}

unsigned block_find_sigsafe(enum block_space kind, uint64_t address, uint64_t reach_bytes,
			    struct block_view *ret, unsigned cap)
{
	const struct space *space = &blocks.spaces[kind];
	uint64_t at = address & ~((1ull << space->shift) - 1), step = 1ull << space->shift;
	struct block_view view, live = { 0 }, nearest = { 0 };
	bool have_live = false, have_nearest = false;
	uint64_t windows = space->largest / step + 128;
	unsigned count = 0;

	if (!space->directory || !cap || address >> ADDRESS_BITS)
		return 0;
	if (windows > reach_bytes / step)
		windows = reach_bytes / step;
	for (; windows && at >= step; windows--, at -= step) {
		const uint32_t *window = window_find(space, at);

		if (!window) { /* nothing in this 64 MiB: go to the one below */
			uint64_t skip = (at & ((1ull << CHUNK_BITS) - 1)) >> space->shift;

			if (skip >= windows)
				break;
			windows -= skip;
			at -= skip << space->shift;
			continue;
		}
		if (!*window)
			continue;
		view_fill(&view, &blocks.pool[*window], at, space->shift);
		if (view.start > address || !view.block.state)
			continue;
		if (address - view.start < (view.size ? view.size : 1)) {
			if (view.block.state == LOG_BLOCK_LIVE) {
				live = view;
				have_live = true;
				break; /* nothing below can overlap a live block, former ones aside
					*/
			}
			view.relation = LOG_INSIDE;
			count = former_insert(ret, 0, count, cap, &view);
		} else if (!have_nearest && address - view.start - view.size < 4096) {
			nearest = view;
			have_nearest = true;
		}
	}
	if (have_live) {
		unsigned i;

		for (i = 0; i < count; i++)
			ret[i].relation = LOG_FORMER;
		if (count == cap)
			count--;
		memmove(ret + 1, ret, count * sizeof(*ret));
		live.relation = LOG_INSIDE;
		ret[0] = live;
		count++;
	} else if (!count && have_nearest) {
		nearest.relation = LOG_BEYOND;
		ret[count++] = nearest;
	}
	return count;
}
