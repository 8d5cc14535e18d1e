/*
 * Reading memory that may not be there, without a fault, and mapping memory for ourselves.
 * All _sigsafe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Copies up to len bytes; returns how many could be read from the start. */
size_t memory_read_sigsafe(void *to, uint64_t from, size_t len);

/* May the kernel read for us? Where it may not, memory_read_sigsafe() reads by itself. */
bool memory_reads_by_kernel(void);

/* How many bytes from `address` on can be read, at most len. */
size_t memory_readable_sigsafe(uint64_t address, size_t len);

/* Where the agent's memory lies: far from where the kernel puts things, so that what the target
 * maps lies as it would without us, and runs over its end into what it would run into. Not where
 * others ask for their places: ZGC has its heaps at 4, 8 and 16 TiB, position-independent programs
 * begin at 85 and a third.
 *
 * What the hot path needs has places of its own, because a constant in its code costs less than a
 * load, and it is made of loads and stores. Where it cannot have them, it is not taken. */
#define MEMORY_REST_AT (18ull << 40)
#define MEMORY_POOL_AT (19ull << 40)
#define MEMORY_ORDINALS_AT (MEMORY_POOL_AT + (512ull << 30))
#define MEMORY_SUB_AT (20ull << 40)  /* the index of sub-allocators: 32 TiB and a page */
#define MEMORY_HEAP_AT (53ull << 40) /* the index of malloc's heap: 16 or 32 TiB and a page */

/* Where to ask for so many bytes of the rest. */
uint64_t memory_place_sigsafe(size_t bytes);

/* Memory that is mapped twice: the target knows [seen, seen + bytes), and we what lies `distance`
 * further. bytes 0: there is none. */
extern __attribute__((visibility("hidden"))) struct memory_view {
	uint64_t seen, bytes, distance;
} memory_view;

/* An address as the target knows it. _sigsafe */
static inline uint64_t memory_seen_sigsafe(uint64_t address)
{
	return address - memory_view.distance - memory_view.seen < memory_view.bytes
		       ? address - memory_view.distance
		       : address;
}

/* What the agent has mapped by now: all of it, and what of it the kernel counts as data. */
uint64_t memory_own_bytes_sigsafe(void);
uint64_t memory_own_data_sigsafe(void);

/* Counts what was mapped elsewhere. */
void memory_count_sigsafe(int64_t bytes, int64_t data);

/* Called when these have changed; NULL: by nobody. Set once, in the constructor. */
extern __attribute__((visibility("hidden"))) void (*memory_counted)(void);

/* Private zero pages, not counted against overcommit where the kernel allows. NULL when refused.
 * Never on huge pages: the tables are touched here and there. */
void *memory_map_sigsafe(size_t bytes);
/* The same, there if the place is free. */
void *memory_map_at_sigsafe(uint64_t at, size_t bytes);
void memory_unmap_sigsafe(void *at, size_t bytes);

/* Address space that nobody can touch and that is not counted as memory, however much it is; parts
 * of it become zeros by memory_allow_sigsafe. NULL, false: refused. */
void *memory_reserve_sigsafe(uint64_t at, size_t bytes);
bool memory_allow_sigsafe(void *at, size_t bytes);

/* Looks at memory that may go away: a fault of our own code ends the look, not the process. True:
 * it got through. In a thread that is known; one look may lie in another. */
bool memory_attempt_sigsafe(void (*look)(void *), void *ctx);

/* Asks for pages that are about to be written, all at once: page faults, one by one, are what a
 * block costs most the first time. Kernels before 5.14 refuse, and fault. Inlined, because the hot
 * path keeps its vector registers. */
static inline void memory_populate_sigsafe(uint64_t at, uint64_t bytes)
{
	(void)raw_syscall3(SYS_madvise, at, bytes, MADV_POPULATE_WRITE);
}

/* Of the ranges so mapped, the lowest that ends after `address`. False when there is none. A few
 * hundred are remembered; those beyond look like the target's. */
bool memory_next_own_sigsafe(uint64_t address, uint64_t *ret_low, uint64_t *ret_high);

/* The first range in [*at, high) that is not the agent's own: neither so mapped nor its code and
 * data. *at becomes its end. False: there is none. _sigsafe */
bool memory_next_foreign_sigsafe(uint64_t *at, uint64_t high, uint64_t *ret_low);
