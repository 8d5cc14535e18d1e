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

struct block {
	uint64_t id;
	uint32_t size_low;
	uint32_t context; /* bits 0..23; bits 24..31 are bits 32..39 of the size */
	uint32_t free_context;
	uint32_t ordinal; /* within its context */
	uint32_t freed_epoch;
	uint8_t state; /* enum log_block_state; 0: never used */
	uint8_t api;   /* bits 0..3: enum log_api; bits 4..7: see canary.h, 0 without guards */
	uint8_t low;   /* start & 255: two blocks may have shared the window; bit 0 is turned for
			* sizes that need their high byte and for blocks that are watched, so that
			* the hot path passes them on */
	uint8_t lane;  /* whose context it was; THREAD_LANE_SHARED: does not fit */
};

_Static_assert(sizeof(struct block) == 32, "at most 48 bytes per live block");

/* Two name spaces: blocks of malloc, and objects that a sub-allocator (CPython's, --allocator)
 * carves out of them. */
enum block_space { BLOCKS_HEAP, BLOCKS_SUB, BLOCKS_SPACES };

/* Maps the tables. False: no memory. */
bool blocks_init(void);

/* The lane's ring and tags; also when a lane is taken again. */
void blocks_open_lane(struct thread *self);
/* Its thread has ended: the position in the log becomes exact. _sigsafe */
void blocks_close_lane(struct thread *self);

/* The lane's n-th latest record, from 0; NULL when there are not so many. _sigsafe */
const struct log_life *blocks_recent_sigsafe(const struct thread *self, uint64_t n);

/* ---- the hot path: inlined into the hooks -----------------------------------------------------
 *
 * It has one way out, a call of the slow function, which does the whole work again: so nothing
 * lives across a call and no register is saved. What only growth needs (bytes, frees per context)
 * is left to the slow way, which then is taken always: see group_records().
 */

#define BLOCKS_CHUNK_BITS 26u /* address space per index chunk */
#define BLOCKS_ADDRESS_BITS 47u
#define BLOCK_SIZE_SHIFT 24u
#define BLOCK_CONTEXT_MASK 0xffffffu
#define BLOCKS_LARGE (64u << 10)
#define BLOCKS_GLIBC_SHIFT 5u
#define BLOCKS_SHIFT 4u
#define BLOCK_API_MASK 15u
#define BLOCK_FRONT_SHIFT 4u

struct blocks_space {
	uint32_t **directory; /* one chunk of windows per 64 MiB; atomic */
	uint32_t shift;	      /* log2 of a window */
	uint64_t largest;     /* block ever seen: bounds the walk backwards; racy, only grows */
};

extern HIDDEN struct blocks_state {
	struct block *pool;
	/* With the heap observer: the address of each entry's window, so that all blocks can be
	 * walked without the index, which is large and mostly empty. Else NULL. */
	uint64_t *bases;
	struct blocks_space spaces[BLOCKS_SPACES];
} blocks_state;

/* Keeps the hook's frame until the slow function has returned. As a tail call it would run on the
 * place of that frame, write over the rbp that the hook saved there, and lose every caller whose
 * frame is found by rbp. */
#define BLOCKS_HERE(call)                           \
	({                                          \
		void *here_ = (call);               \
		__asm__ volatile("" : "+r"(here_)); \
		here_;                              \
	})

/* The same at the end of a function that answers nothing. */
#define BLOCKS_KEEP_FRAME() __asm__ volatile("")

/* The whole way, for what the fast way leaves. `held`: NULL when the guard is still to be entered;
 * it is left at the end either way. block_begin_slow returns `start`. */
void *block_begin_slow(struct thread *held, enum block_space space, void *start, uint64_t size,
		       enum log_api api, const uint64_t *frame);
void block_end_slow(struct thread *held, enum block_space space, void *start,
		    const uint64_t *frame);

static inline bool block_starts_at(const struct block *block, uint64_t start)
{
	return !((block->low ^ start) & 0x1e);
}

static inline __attribute__((always_inline)) uint32_t *
block_window(const struct blocks_space *space, uint64_t start)
{
	uint32_t *chunk;
	uint64_t at = start & ((1ull << BLOCKS_CHUNK_BITS) - 1);

	if (unlikely(start >> BLOCKS_ADDRESS_BITS))
		return NULL;
	chunk = __atomic_load_n(&space->directory[start >> BLOCKS_CHUNK_BITS], __ATOMIC_ACQUIRE);
	if (unlikely(!chunk))
		return NULL;
	/* A shift by a constant is one step for the CPU, by a variable three. */
	if (likely(space->shift == BLOCKS_GLIBC_SHIFT))
		return &chunk[at >> BLOCKS_GLIBC_SHIFT];
	return &chunk[at >> BLOCKS_SHIFT];
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
	struct log_life *to = self->ring_next;
	uint64_t *words = (uint64_t *)to;

	words[0] = id;
	words[1] = addr_op;
	words[2] = size_context;
	to->epoch = epoch;
	to->check = log_life_sum(id, addr_op, size_context, epoch);
	self->ring_next = to + 1;
}

/* Writes what block_begin is about, once everything is found. */
static inline __attribute__((always_inline)) void block_write(struct thread *self, uint64_t *entry,
							      uint64_t start, uint64_t size,
							      enum log_api api, uint32_t context)
{
	uint32_t epoch = (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	uint64_t id = self->next_id++, ordinal = context_ordinals[context]++;
	uint64_t size_context = size | (uint64_t)context << 32;

	entry[0] = id;
	entry[1] = size_context;
	entry[2] = ordinal << 32;
	entry[3] = self->live_word | (uint64_t)api << 40;
	((struct block *)entry)->low = (uint8_t)start;
	block_ring_add(self, id,
		       start | (uint64_t)LOG_LIFE_ALLOC << 48 |
			       (uint64_t)(api & BLOCK_API_MASK) << 52,
		       size_context, epoch);
}

/* A block was handed to the target. The caller has looked at agent_switch.ids. */
static inline __attribute__((always_inline)) void *block_begin(enum block_space space, void *ptr,
							       uint64_t size, enum log_api api,
							       struct caller caller)
{
	struct thread *self = thread_self;
	uint64_t start = (uint64_t)ptr;
	struct thread_site *site;
	uint32_t *window;

	if (unlikely(!self || self->busy))
		return BLOCKS_HERE(block_begin_slow(NULL, space, ptr, size, api,
						    (const uint64_t *)caller.frame));
	self->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	window = block_window(&blocks_state.spaces[space], start);
	site = context_hit(self, caller);
	if (unlikely(!site || !window || !*window || size >= BLOCKS_LARGE ||
		     self->ring_next == self->ring_stop))
		return BLOCKS_HERE(block_begin_slow(self, space, ptr, size, api,
						    (const uint64_t *)caller.frame));
	block_write(self, (uint64_t *)&blocks_state.pool[*window], start, size, api, site->context);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->busy = 0;
	return ptr;
}

/* Before the block is given back; the caller has looked at agent_switch.ids. An address that was
 * never seen is counted. */
static inline __attribute__((always_inline)) void block_end(enum block_space space, void *ptr,
							    struct caller caller)
{
	struct thread *self = thread_self;
	uint64_t start = (uint64_t)ptr;
	uint32_t *window, context, epoch;
	struct thread_site *site;
	struct block *block;

	if (unlikely(!self || self->busy)) {
		block_end_slow(NULL, space, ptr, (const uint64_t *)caller.frame);
		return;
	}
	self->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	window = block_window(&blocks_state.spaces[space], start);
	block = window ? &blocks_state.pool[*window] : blocks_state.pool;
	site = context_hit(self, caller);
	/* Live, and this very start. Entry 0 of the pool is never live. */
	if (unlikely(block->state != LOG_BLOCK_LIVE || block->low != (uint8_t)start || !site ||
		     self->ring_next == self->ring_stop)) {
		block_end_slow(self, space, ptr, (const uint64_t *)caller.frame);
		return;
	}
	epoch = (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	context = site->context;
	block->free_context = context;
	block->freed_epoch = epoch;
	block->state = LOG_BLOCK_FREED;
	block_ring_add(self, block->id,
		       start | (uint64_t)LOG_LIFE_FREE << 48 | (uint64_t)block->api << 52,
		       block->size_low | (uint64_t)context << 32, epoch);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->busy = 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* As block_begin and block_end, inside a guard. False: the block could not be noted. */
bool block_begin_guarded(struct guard *guard, enum block_space space, uint64_t start, uint64_t size,
			 enum log_api api, struct caller caller);
void block_end_guarded(struct guard *guard, enum block_space space, uint64_t start,
		       struct caller caller);

/* The same of an entry that was found live, with this start. */
void block_end_known(struct guard *guard, struct block *block, uint64_t start,
		     struct caller caller);

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

/* Entries of the pool are numbered from 1 up to, not including, this. _sigsafe */
uint32_t blocks_entries_sigsafe(void);

/* Where the block of an entry starts; only with blocks_state.bases. */
static inline uint64_t block_start(uint32_t entry)
{
	return (blocks_state.bases[entry] & ~255ull) | (blocks_state.pool[entry].low & 0xfe);
}

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
