/*
 * libc's cache of freed blocks, which each thread has one of: what its malloc and free do nearly
 * always, done in the hook.
 *
 * A call of libc and what it looks at on the way cost as much as everything that `ids` does; the
 * cache itself is two arrays, by size: a count, and the first block, each block pointing to the
 * next. Blocks come and go in the same order as by libc's own hands, so the heap is as it would be.
 * There are two shapes of it (tcache.c). Up to glibc 2.41 the count is that of the blocks; since
 * 2.42 it is that of the places left, and there are more bins, which the hook leaves to libc.
 *
 * How libc keeps it is no promise. So it is watched first (tcache.c): only when what the real
 * functions did to the cache was what we would have done, every time, is it trusted. Whatever is
 * out of the ordinary is left to libc, which knows what to say about it: an empty or full bin, a
 * block that is not aligned or looks freed already, a size that no block has. A bin that leads
 * nowhere faults in libc's code, not in ours (arch_read_or()). A handler that comes in between and
 * allocates finds what it would find in libc: the same stores in the same order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"

#define TCACHE_BINS 64u	      /* that the hook uses */
#define TCACHE_FULL 7u	      /* blocks in a bin; GLIBC_TUNABLES can change it: not trusted then */
#define TCACHE_LARGEST 1032u  /* that is asked for */
#define TCACHE_SMALLEST 0x20u /* a chunk: a block and the word before it */

/* The counts. The first blocks' addresses stand behind those of all bins: tcache_first(). */
struct tcache_bins {
	uint16_t count[TCACHE_BINS];
};

extern HIDDEN struct tcache {
	/* Where a thread has its pointer to its cache, from fs; of a word that is always NULL as
	 * long as it is not trusted. */
	uint64_t offset;
	uint64_t key;	   /* the second word of every block in a cache */
	uint32_t watching; /* the real functions are to be called by the two below */
	uint16_t first;	   /* from the cache: where the first blocks stand */
	int16_t step;	   /* of a count, when a block comes: 1, or -1 where places are counted */
} tcache;

/* Before the hooks are switched on. Begins to watch, unless blocks are to be: then libc's own
 * instructions are to be seen at them. */
void tcache_init(void);

/* The real functions, watched; _watching only. */
void *tcache_malloc_watched(size_t size);
void tcache_free_watched(void *ptr);

/* The bin of a block of this size: 24 bytes and less are the first. */
static inline __attribute__((always_inline)) uint64_t tcache_bin(size_t size)
{
	return size < 9 ? 0 : (size - 9) / 16;
}

/* The same by the word before the block: its chunk's size, and flags in the lowest bits. 64 and
 * more: none. */
static inline __attribute__((always_inline)) uint64_t tcache_bin_of(uint64_t head)
{
	enum { MAPPED = 2, ODD = 8 };

	return head & (MAPPED | ODD) ? TCACHE_BINS : (head - TCACHE_SMALLEST) / 16;
}

/* The word that leads to the next block is mixed with its own place. */
static inline __attribute__((always_inline)) uint64_t tcache_mixed(const void *block, uint64_t next)
{
	return next ^ (uint64_t)block >> 12;
}

static inline __attribute__((always_inline)) struct tcache_bins *tcache_own(uint64_t offset)
{
	return (struct tcache_bins *)arch_fs_word(offset);
}

static inline __attribute__((always_inline)) uint64_t **tcache_first(struct tcache_bins *bins,
								     uint64_t bin)
{
	return (uint64_t **)((char *)bins + tcache.first) + bin;
}

/* The block that comes out next; NULL: none, as libc sees it. A count of places says nothing about
 * that, nor does libc ask it. */
static inline __attribute__((always_inline)) uint64_t *tcache_next(struct tcache_bins *bins,
								   uint64_t bin)
{
	if (unlikely(!bins->count[bin]) && tcache.step > 0)
		return NULL;
	return *tcache_first(bins, bin);
}

/* No room for another block? */
static inline __attribute__((always_inline)) bool tcache_is_full(uint16_t count)
{
	return tcache.step > 0 ? count >= TCACHE_FULL : !count;
}

/* malloc, if there is a block in the cache. NULL: libc is to do it. */
static inline __attribute__((always_inline)) void *tcache_take(size_t size)
{
	/* Whoever sees the offset sees what was learned before: acquire. */
	struct tcache_bins *bins = tcache_own(__atomic_load_n(&tcache.offset, __ATOMIC_ACQUIRE));
	uint64_t bin = tcache_bin(size), *block, next;

	if (unlikely(!bins || size > TCACHE_LARGEST))
		return NULL;
	block = tcache_next(bins, bin);
	if (unlikely(!block || (uint64_t)block % 16))
		return NULL;
	arch_read_or(next, block, fault);
	*tcache_first(bins, bin) = (uint64_t *)tcache_mixed(block, next);
	arch_count(&bins->count[bin], (int16_t)-tcache.step);
	block[1] = 0;
	return block;
fault:
	return NULL;
}

/* free, of a block that libc gave out. False: libc is to do it. */
static inline __attribute__((always_inline)) bool tcache_give(void *ptr)
{
	struct tcache_bins *bins = tcache_own(__atomic_load_n(&tcache.offset, __ATOMIC_ACQUIRE));
	uint64_t *block = ptr, head, second, bin;

	if (unlikely(!bins))
		return false;
	arch_read_or(head, block - 1, fault);
	bin = tcache_bin_of(head);
	arch_read_or(second, block + 1, fault);
	if (unlikely(bin >= TCACHE_BINS || second == tcache.key ||
		     tcache_is_full(bins->count[bin])))
		return false;
	block[1] = tcache.key;
	block[0] = tcache_mixed(block, (uint64_t)*tcache_first(bins, bin));
	*tcache_first(bins, bin) = block;
	arch_count(&bins->count[bin], tcache.step);
	return true;
fault:
	return false;
}
