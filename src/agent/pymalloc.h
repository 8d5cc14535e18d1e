/*
 * CPython's own allocator of small objects: what it does nearly always, done in the hook.
 *
 * As with libc's cache (tcache.h), and for the same reason: the call and what is looked at on the
 * way, on a free three levels of a tree that say whether an object is in an arena at all, are a
 * good part of what an object costs. Objects lie in pools, 16 KiB each, of one size; a pool has a
 * list of free objects and an end behind which none was ever given out. Pools of a size that have
 * room are in a ring, which begins in a table of the interpreter's.
 *
 * How it keeps them is no promise: it is watched first (pymalloc.c), and trusted when all it did
 * was what we would have done. Whatever is out of the ordinary is left to it: a pool that becomes
 * full or empty, or had been full; larger objects; a list that leads nowhere.
 *
 * All of it under the interpreter's lock, which these two domains are called with. Not where each
 * interpreter of a process has pools of its own (3.12), nor without that lock.
 */
#ifndef REDHAND_AGENT_PYMALLOC_H
#define REDHAND_AGENT_PYMALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/arch/x86_64.h"

#define PYMALLOC_LARGEST 512u
#define PYMALLOC_ALIGN 16u
#define PYMALLOC_POOL (16u << 10) /* bytes, and where it begins a multiple of them */

struct pymalloc_pool {
	uint32_t count; /* of live objects */
	uint32_t unused;
	uint64_t *free;	    /* the first of its list; NULL: full */
	uint64_t around[2]; /* the next pool of the ring and the one before */
	uint32_t arena;
	uint32_t kind;	/* (size - 1) / 16 of its objects */
	uint32_t fresh; /* from the pool: behind it no object was ever given out */
	uint32_t last;	/* where there is room for a fresh one */
};

/* Of one size: where its ring begins. */
struct pymalloc_ring {
	struct pymalloc_pool *next, *before;
};

extern HIDDEN uint32_t pymalloc_watching; /* the real functions are to be called by the two below */

typedef void *pymalloc_malloc(void *context, size_t size);
typedef void pymalloc_free(void *context, void *ptr);

/* Begins to watch, if this is an interpreter that it can be right for. */
void pymalloc_init(void);

/* In a forked child, whose switches are new: what was trusted is. */
void pymalloc_resume(void);

/* The real functions, watched. */
void *pymalloc_malloc_watched(pymalloc_malloc *real_malloc, void *context, size_t size);
void pymalloc_free_watched(pymalloc_free *real_free, void *context, void *ptr);

static inline __attribute__((always_inline)) struct pymalloc_pool *pymalloc_pool_of(const void *ptr)
{
	return (struct pymalloc_pool *)((uint64_t)ptr & ~(uint64_t)(PYMALLOC_POOL - 1));
}

/* A ring is entered as if there was a pool around it. */
static inline __attribute__((always_inline)) bool
pymalloc_is_empty(const struct pymalloc_ring *ring)
{
	return (uint64_t)ring->next == (uint64_t)ring - offsetof(struct pymalloc_pool, around);
}

/* An object, if there is room in a pool of its size. NULL: the interpreter is to do it. */
static inline __attribute__((always_inline)) void *pymalloc_take(size_t size)
{
	const struct pymalloc_ring *rings = agent_switch.pymalloc, *ring;
	struct pymalloc_pool *pool;
	uint64_t *block, next;

	if (unlikely(!rings || size - 1 >= PYMALLOC_LARGEST))
		return NULL;
	ring = &rings[(size - 1) / PYMALLOC_ALIGN];
	if (unlikely(pymalloc_is_empty(ring)))
		return NULL;
	pool = ring->next;
	block = pool->free;
	arch_read_or(next, block, fault);
	if (!next) {
		if (unlikely(pool->fresh > pool->last))
			return NULL;
		next = (uint64_t)pool + pool->fresh;
		pool->fresh +=
			(uint32_t)(size - 1) / PYMALLOC_ALIGN * PYMALLOC_ALIGN + PYMALLOC_ALIGN;
		*(uint64_t *)next = 0;
	}
	pool->free = (uint64_t *)next;
	pool->count++;
	return block;
fault:
	return NULL;
}

/* Gives back what pymalloc_take() can have given out. False: the interpreter is to do it. */
static inline __attribute__((always_inline)) bool pymalloc_give(void *ptr)
{
	struct pymalloc_pool *pool = pymalloc_pool_of(ptr);
	uint64_t *free = pool->free;

	if (unlikely(!free || pool->count <= 1))
		return false;
	*(uint64_t *)ptr = (uint64_t)free;
	pool->free = ptr;
	pool->count--;
	return true;
}

#endif
