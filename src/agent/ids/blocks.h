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
 * The index grows by 64 MiB of address space at a time (8 MiB of untouched memory), and can be read
 * for the 1 GiB around. Room for all of it is reserved at start, so that the hot path finds a
 * window by a shift; a target with a limit on its address space goes the slow way, over a
 * directory. When memory is refused, the block is dropped and counted: a hole in the record is
 * honest, a stall inside the target's malloc is not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "agent/core/memory.h"
#include "agent/ids/context.h"
#include "agent/ids/history.h"
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
	uint8_t lane;  /* whose context it was; THREAD_LANE_SHARED: does not fit */
	uint8_t low;   /* start & 255: two blocks may have shared the window; with BLOCK_MARK for
			* sizes that need their high byte and for blocks that are watched, so that
			* the hot path passes them on */
};

_Static_assert(sizeof(struct block) == 32, "at most 48 bytes per live block");

/* Two name spaces: blocks of malloc, and objects that a sub-allocator (CPython's, --allocator)
 * carves out of them. */
enum block_space { BLOCKS_HEAP, BLOCKS_SUB, BLOCKS_SPACES };

/* Maps the tables. False: no memory. */
bool blocks_init(void);

/* After this, with the first lane: decides whether the hot path may be taken. False: no memory. */
bool blocks_settle(const void *auxiliary_vector);

/* The lane's ring and tags; also when a lane is taken again. */
void blocks_open_lane(struct thread *self, bool other_stack);
/* Its thread has ended: the position in the log becomes exact. _sigsafe */
void blocks_close_lane(struct thread *self);

/* The lane's n-th latest record, from 0; NULL when there are not so many. _sigsafe */
const struct log_life *blocks_recent_sigsafe(const struct thread *self, uint64_t n);

/* ---- the hot path: inlined into the hooks -----------------------------------------------------
 *
 * It has one way out, a jump to the slow function, which does the whole work again: so nothing
 * lives across a call and no register is saved. What only growth needs (bytes, frees per context)
 * is left to the slow way, which then is taken always (AGENT_IDS_SLOW).
 *
 * It does not enter the guard. A signal handler that interrupts it and allocates finds everything
 * whole: counters move in one instruction, and the entry belongs to the block that is being made or
 * freed. Inside the guard, where more than that is in the making, the stops are 0.
 */

#define BLOCKS_CHUNK_BITS 26u  /* address space per index chunk */
#define BLOCKS_REGION_BITS 30u /* …and for which `flat` becomes readable at once */
#define BLOCKS_ADDRESS_BITS 47u
#define BLOCK_SIZE_SHIFT 24u
#define BLOCK_CONTEXT_MASK 0xffffffu
#define BLOCKS_LARGE (64u << 10)
#define BLOCKS_GLIBC_SHIFT 5u
#define BLOCKS_SHIFT 4u
/* Of the last word of an entry. */
#define BLOCK_STATE_SHIFT 32u
#define BLOCK_API_SHIFT 40u
#define BLOCK_LOW_SHIFT 56u
#define BLOCK_API_MASK 15u
#define BLOCK_FRONT_SHIFT 4u
#define BLOCKS_GROUP 1024u /* ids that a lane is given at once */
#define BLOCKS_PIECE 128u  /* entries, of one space: a page */
#define BLOCKS_PER_LINE (64u / sizeof(struct block))
#define WINDOWS_PER_LINE (64u / sizeof(uint32_t))

struct blocks_space {
	uint32_t **directory; /* one chunk of windows per 64 MiB; atomic */
	uint32_t *flat;	      /* where all chunks lie one after the other; NULL: anywhere */
	uint8_t *regions;     /* by region of `flat`: it can be read; atomic */
	uint32_t shift;	      /* log2 of a window */
	uint8_t *populated;   /* by step of `flat`: it was asked for; racy, only time hangs on it */
	uint64_t largest;     /* block ever seen: bounds the walk backwards; racy, only grows */
};

/* The last pointer given to free() that is no block's start, and the start of the block that it
 * leads into; 0: there was none. */
extern HIDDEN struct block_misfreed {
	uint64_t pointer, start;
} block_misfreed;

extern HIDDEN struct blocks_state {
	struct block *pool;
	/* With the heap observer: the address of each entry's window, so that all blocks can be
	 * walked without the index, which is large and mostly empty. Else NULL. */
	uint64_t *bases;
	/* Beside them, by piece: there has been a block with guards in it. So what has none, as
	 * most objects of sub-allocators, is not walked through to find that out. */
	uint8_t *guarded;
	struct blocks_space spaces[BLOCKS_SPACES];
	bool hot;
	bool hooks_planned;  /* on allocators of the program's own: their objects are wanted */
	bool guards_planned; /* by the heap observer: `bases` and `guarded` are wanted */
	bool guards;	     /* blocks have them (canary.h), and memory is looked after */
	bool unsettled;	     /* somebody is told of each block until he has settled */
	uint64_t seed;	     /* of the words that guards and freed blocks are filled with:
			      * wire/guard_word.h
			      */
} blocks_state;

/* May the hot path be taken? Not when every event must be seen, as growth and short rings need, nor
 * where it cannot be: blocks_settle(). */
static inline bool blocks_hot(void)
{
	return blocks_state.hot;
}

/* The whole way, for what the fast way leaves: from hooks that are compiled with -ffixed-rbp, so
 * that rbp is still their caller's. block_begin_slow returns `start`. */
void *block_begin_slow(void *start, uint64_t size, enum block_space space, enum log_api api,
		       const uint64_t *frame);
void block_end_slow(void *start, enum block_space space, const uint64_t *frame);

/* Bit 0 says that it is there. Bit 7 belongs to the window, so that no pointer into the same one,
 * not even an odd one, looks like the start of the block. */
#define BLOCK_MARK 0x81u

static inline void block_mark(struct block *block)
{
	if (!(block->low & 1))
		block->low ^= BLOCK_MARK;
}

/* start & 255, of a block with or without a mark. */
static inline uint8_t block_low(const struct block *block)
{
	return block->low & 1 ? block->low ^ BLOCK_MARK : block->low;
}

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

/* So much of `flat` is asked for at once: a page that is read before it is written to costs two
 * faults, and each of them more than the block. */
#define BLOCKS_POPULATE_BITS 15u

/* An entry for a window that has none yet; 0: the slow way has to make room first. */
uint64_t block_open(enum block_space space, uint64_t start, struct thread *self);

/* The rest of block_region(), by arch_call_kept(); 0: it cannot. */
uint64_t block_region_turn(struct thread *self, uint64_t start, enum block_space space);

/* The region of a block that starts here: NULL lies in none, also where the first one has blocks,
 * as in a program that is not position-independent. */
static inline uint64_t block_region_of(uint64_t start)
{
	return (start - 1) >> BLOCKS_REGION_BITS;
}

/* Can the index be read for this address? Where no block has ever been it cannot, so that a wild
 * pointer of the target's faults there as it would without us. One word is compared: a signal
 * handler may come in between. */
static inline __attribute__((always_inline)) bool
block_region(struct thread *self, enum block_space space, uint64_t start)
{
	return likely(self->fast.region[space] == block_region_of(start)) ||
	       arch_call_kept(block_region_turn, self, start, space);
}

/* The index, for a shift that is known when this is compiled: by its place. */
static inline __attribute__((always_inline)) uint32_t *block_windows(enum block_space space,
								     uint32_t shift)
{
	if (space == BLOCKS_SUB)
		return (uint32_t *)MEMORY_SUB_AT;
	if (__builtin_constant_p(shift) && shift == BLOCKS_GLIBC_SHIFT)
		return (uint32_t *)MEMORY_HEAP_AT;
	return blocks_state.spaces[space].flat;
}

static inline __attribute__((always_inline)) uint64_t *block_entry(uint64_t number)
{
	return (uint64_t *)&((struct block *)MEMORY_POOL_AT)[number];
}

/* The entry number of the block that starts here or last did, where the index can be read; 0: none.
 */
static inline __attribute__((always_inline)) uint64_t block_number(enum block_space space,
								   uint32_t shift, uint64_t start)
{
	return block_windows(space, shift)[start >> shift];
}

/* Objects of a sub-allocator are many, small, and mostly made and freed in the order in which they
 * lie: what the next ones need is asked for now. Blocks of malloc are left alone, where it costs
 * more than it brings: docs/design/side-table.md. */
static inline __attribute__((always_inline)) void
block_ahead(enum block_space space, uint32_t shift, uint64_t start, uint64_t number)
{
	if (space != BLOCKS_SUB)
		return;
	__builtin_prefetch(block_entry(number + BLOCKS_PER_LINE), 1);
	__builtin_prefetch(&block_windows(space, shift)[(start >> shift) + WINDOWS_PER_LINE]);
}

/* Writes what block_begin is about, once everything is found. Whole words, and whole words again at
 * the end: the CPU does not forward parts of two stores to one load. */
static inline __attribute__((always_inline)) void block_write(struct thread *self, uint64_t *entry,
							      uint64_t id, uint64_t start,
							      uint64_t size, enum log_api api,
							      uint64_t context)
{
	entry[0] = id;
	entry[1] = size | context << 32;
	entry[2] = (uint64_t)arch_take_one(context_ordinal(context)) << 32;
	entry[3] =
		self->fast.live_word | (uint64_t)api << BLOCK_API_SHIFT | start << BLOCK_LOW_SHIFT;
}

/* The end of a live block, in its entry and in the ring; `state` is its last word. */
static inline __attribute__((always_inline)) void block_write_end(const struct thread *self,
								  uint64_t *entry, uint64_t state,
								  uint64_t life, uint64_t start,
								  uint64_t context)
{
	uint64_t id = entry[0], size_context = entry[1], freed = entry[2] | context;

	state += self->fast.freed_word;
	entry[2] = freed;
	entry[3] = state;
	ring_write(life, id, size_context, freed, state, start);
}

/* As block_begin(), of a context that context_hit() has just found. */
static inline __attribute__((always_inline)) void *
block_begin_in(struct thread *self, uint64_t context, enum block_space space, uint32_t shift,
	       void *ptr, uint64_t size, enum log_api api, struct caller caller)
{
	uint64_t start = (uint64_t)ptr, number, id;

	if (unlikely(!block_region(self, space, start)))
		goto slow;
	if (unlikely(size >= BLOCKS_LARGE))
		goto slow;
	number = block_number(space, shift, start);
	if (unlikely(!number)) {
		if (!ptr)
			return ptr;
		number = arch_call_kept(block_open, space, start, self);
		if (unlikely(!number))
			goto slow;
	}
	block_ahead(space, shift, start, number);
	id = arch_take(&self->fast.next_id, 1);
	if (unlikely(id >= self->fast.id_stop))
		goto slow;
	block_write(self, block_entry(number), id, start, size, api, context);
	__asm__("" : "+a"(ptr)); /* where it came from: not moved there and back */
	return ptr;
slow:
	if (!ptr)
		return ptr;
	return block_begin_slow(ptr, size, space, api, (const uint64_t *)caller.frame);
}

/* A block was handed to the target, where agent_switch.ids says that the hot path may be taken.
 * `shift` is the space's: as a constant where it matters, because a shift by a variable is three
 * steps for the CPU. */
static inline __attribute__((always_inline)) void *block_begin(enum block_space space,
							       uint32_t shift, void *ptr,
							       uint64_t size, enum log_api api,
							       struct caller caller)
{
	struct thread *self = thread_hot;
	uint64_t context;

	if (unlikely(!context_hit(self, caller, &context)))
		return ptr ? block_begin_slow(ptr, size, space, api, (const uint64_t *)caller.frame)
			   : ptr;
	return block_begin_in(self, context, space, shift, ptr, size, api, caller);
}

#define BLOCK_ANY_API -1

/* As block_end(), of a block that was made by `api` and has no guards, or BLOCK_ANY_API. */
static inline __attribute__((always_inline)) bool
block_end_of(enum block_space space, uint32_t shift, void *ptr, int api, struct caller caller)
{
	struct thread *self = thread_hot;
	uint64_t start = (uint64_t)ptr, number, life, context, state, *entry;

	if (unlikely(!block_region(self, space, start) || !context_hit(self, caller, &context)))
		return false;
	/* Live, and this very start. Entry 0 of the pool is never live. */
	number = block_number(space, shift, start);
	block_ahead(space, shift, start, number);
	entry = block_entry(number);
	/* One load for all of it; GCC would make three. */
	state = entry[3];
	__asm__("" : "+r"(state));
	if (unlikely((uint8_t)(state >> BLOCK_STATE_SHIFT) != LOG_BLOCK_LIVE ||
		     (uint8_t)(state >> BLOCK_LOW_SHIFT) != (uint8_t)start))
		return false;
	if (api != BLOCK_ANY_API && unlikely((uint8_t)(state >> BLOCK_API_SHIFT) != api))
		return false;
	life = ring_take(self);
	if (unlikely(!life))
		return false;
	block_write_end(self, entry, state, life, start, context);
	return true;
}

/* Before the block is given back, where agent_switch.ids says that the hot path may be taken.
 * False: nothing was done, and block_end_slow() is to do it; so it is for NULL. */
static inline __attribute__((always_inline)) bool block_end(enum block_space space, uint32_t shift,
							    void *ptr, struct caller caller)
{
	return block_end_of(space, shift, ptr, BLOCK_ANY_API, caller);
}

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

/* Begins a block that operator new gave out, when no inner malloc did; else, and if operator new is
 * the C++ library's, marks it as made by new. */
void block_claim(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
		 struct caller caller);
/* Where it is not: was it begun there? */
bool block_claimed(uint64_t start);

/* Entries of the pool are numbered from 1 up to, not including, this. _sigsafe */
uint32_t blocks_entries_sigsafe(void);

/* Before the entry becomes one of a block with guards; only with blocks_state.bases. */
static inline __attribute__((always_inline)) void block_mark_guarded(uint32_t entry)
{
	blocks_state.guarded[entry / BLOCKS_PIECE] = 1;
}

/* Where the block of an entry starts; only with blocks_state.bases. */
static inline uint64_t block_start(uint32_t entry)
{
	return (blocks_state.bases[entry] & ~255ull) | block_low(&blocks_state.pool[entry]);
}

/* The entry whose window holds exactly this start, or NULL. _sigsafe */
struct block *block_at_sigsafe(enum block_space space, uint64_t start);
/* A copy of it. False: there is none. _sigsafe */
bool block_look_sigsafe(enum block_space space, uint64_t start, struct block *ret);

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
