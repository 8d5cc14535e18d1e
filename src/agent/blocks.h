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
	uint8_t api;   /* enum log_api */
	uint8_t low;   /* start & 31: two blocks may have shared the window */
	uint8_t lane;  /* low 8 bits; whose context counters to change */
};

_Static_assert(sizeof(struct block) == 32, "at most 48 bytes per live block");

/* Two name spaces: blocks of malloc, and objects that a sub-allocator (CPython's, --allocator)
 * carves out of them. */
enum block_space { BLOCKS_HEAP, BLOCKS_SUB, BLOCKS_SPACES };

/* Maps the tables. False: no memory. */
bool blocks_init(void);

/* A block was handed to the target. */
void block_begin(struct guard *guard, enum block_space space, uint64_t start, uint64_t size,
		 enum log_api api, struct caller caller);

/* Before the block is given back. NULL when the address was never seen (counted). */
struct block *block_end(struct guard *guard, enum block_space space, uint64_t start,
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
