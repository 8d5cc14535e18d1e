/*
 * libc's cache of freed blocks, which each thread has one of: what its malloc and free do nearly
 * always, done in the hook.
 *
 * A call of libc and what it looks at on the way cost as much as everything that `ids` does; the
 * cache itself is two arrays, by size: how many blocks, and the first of them, each pointing to the
 * next. Blocks come and go in the same order as by libc's own hands, so the heap is as it would be.
 *
 * How libc keeps it is no promise. So it is watched first (tcache.c): only when what the real
 * functions did to the cache was what we would have done, every time, is it trusted. Whatever is
 * out of the ordinary is left to libc, which knows what to say about it: an empty or full bin, a
 * block that is not aligned or looks freed already, a size that no block has. A bin that leads
 * nowhere faults in libc's code, not in ours (arch_read_or()). A handler that comes in between and
 * allocates finds what it would find in libc: the same stores in the same order.
 */
#ifndef REDHAND_AGENT_TCACHE_H
#define REDHAND_AGENT_TCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/arch/x86_64.h"

#define TCACHE_BINS 64u
#define TCACHE_FULL 7u	      /* blocks in a bin; GLIBC_TUNABLES can change it: not trusted then */
#define TCACHE_LARGEST 1032u  /* that is asked for */
#define TCACHE_SMALLEST 0x20u /* a chunk: a block and the word before it */

struct tcache_bins {
	uint16_t count[TCACHE_BINS];
	uint64_t *first[TCACHE_BINS];
};

extern HIDDEN struct tcache {
	/* Where a thread has its pointer to its cache, from fs; of a word that is always NULL as
	 * long as it is not trusted. */
	uint64_t offset;
	uint64_t key;	   /* the second word of every block in a cache */
	uint32_t watching; /* the real functions are to be called by the two below */
} tcache;

/* Before the hooks are switched on. Begins to watch, unless blocks are to be: then libc's own
 * instructions are to be seen at them. */
void tcache_init(char **envp);

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

/* malloc, if there is a block in the cache. NULL: libc is to do it. */
static inline __attribute__((always_inline)) void *tcache_take(size_t size)
{
	struct tcache_bins *bins = tcache_own(tcache.offset);
	uint64_t bin = tcache_bin(size), *block, next;

	if (unlikely(!bins || size > TCACHE_LARGEST || !bins->count[bin]))
		return NULL;
	block = bins->first[bin];
	if (unlikely((uint64_t)block % 16))
		return NULL;
	arch_read_or(next, block, fault);
	bins->first[bin] = (uint64_t *)tcache_mixed(block, next);
	arch_count(&bins->count[bin], -1);
	block[1] = 0;
	return block;
fault:
	return NULL;
}

/* free, of a block that libc gave out. False: libc is to do it. */
static inline __attribute__((always_inline)) bool tcache_give(void *ptr)
{
	struct tcache_bins *bins = tcache_own(tcache.offset);
	uint64_t *block = ptr, head, second, bin;

	if (unlikely(!bins))
		return false;
	arch_read_or(head, block - 1, fault);
	bin = tcache_bin_of(head);
	arch_read_or(second, block + 1, fault);
	if (unlikely(bin >= TCACHE_BINS || second == tcache.key || bins->count[bin] >= TCACHE_FULL))
		return false;
	block[1] = tcache.key;
	block[0] = tcache_mixed(block, (uint64_t)bins->first[bin]);
	bins->first[bin] = block;
	arch_count(&bins->count[bin], 1);
	return true;
fault:
	return false;
}

#endif
