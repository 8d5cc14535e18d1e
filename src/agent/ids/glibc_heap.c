#include "agent/ids/glibc_heap.h"

#include <stdbool.h>

#include "agent/core/memory.h"
#include "agent/core/thread.h"
#include "agent/ids/blocks.h"

/* malloc/malloc.c: a chunk's size word lies before the memory; its lowest bits are flags. */
#define PREVIOUS_IN_USE 1u
#define IS_MAPPED 2u
#define FLAGS 7u
#define CHUNK_MIN 32u
#define TCACHE_CHUNK_MAX 1040u
#define SAMPLES 256u

static bool word_read(uint64_t at, uint64_t *ret)
{
	return memory_read_sigsafe(ret, at, sizeof(*ret)) == sizeof(*ret);
}

/* A chunk in a thread's cache carries a key in its second word, the same for all of them (since
 * 2.29), and it is wiped when the chunk is given out. So the block is in the cache if it has the
 * word of another one that this thread freed. */
static bool in_thread_cache(const struct thread *self, uint64_t start)
{
	const struct log_life *life;
	uint64_t key, other;
	unsigned i;

	if (!word_read(start + 8, &key) || !key)
		return false;
	for (i = 0; i < SAMPLES && (life = blocks_recent_sigsafe(self, i)); i++) {
		uint64_t address = life->start;
		const struct block *block;

		if (life->op != LOG_LIFE_FREE || address == start ||
		    log_life_size(life) > TCACHE_CHUNK_MAX - 8)
			continue;
		block = block_at_sigsafe(BLOCKS_HEAP, address);
		if (block && block->id == life->id && block->state == LOG_BLOCK_FREED &&
		    word_read(address + 8, &other) && other == key)
			return true;
	}
	return false;
}

enum heap_opinion glibc_heap_ask_sigsafe(const struct thread *self, uint64_t start, uint64_t size)
{
	uint64_t head, next, chunk, wanted = (size + 8 + 15) & ~15ull;

	if (!word_read(start - 8, &head))
		return HEAP_UNKNOWN;
	/* A mapped chunk is unmapped when it is freed: this is somebody's. */
	if (head & IS_MAPPED)
		return HEAP_IN_USE;
	chunk = head & ~(uint64_t)FLAGS;
	if (wanted < CHUNK_MIN)
		wanted = CHUNK_MIN;
	if (chunk < CHUNK_MIN || chunk % 16 || !word_read(start - 8 + chunk, &next))
		return HEAP_UNKNOWN;
	if (!(next & PREVIOUS_IN_USE))
		return HEAP_FREE;
	/* "In use" also stands at chunks in the thread's cache and in fast bins; but those keep
	 * their size, which is what was asked for or one step more. */
	if (chunk > TCACHE_CHUNK_MAX || (chunk != wanted && chunk != wanted + 16))
		return HEAP_IN_USE;
	return in_thread_cache(self, start) ? HEAP_FREE : HEAP_UNKNOWN;
}
