/*
 * Each block is followed: libc's function first, then the block is noted, or, when it goes, noted
 * before the real call, because afterwards another thread may own the address.
 */
#include "agent/alloc/policy_inside.h"

#include "agent/core/guard.h"
#include "agent/core/real.h"
#include "agent/ids/blocks.h"

/* Every event must be seen, or the tables lie elsewhere: not by the hot path. */
static inline __attribute__((always_inline)) void *
begun_slow(void *ptr, size_t size, enum log_api api, struct caller caller)
{
	return ptr ? block_begin_slow(ptr, size, BLOCKS_HEAP, api, (const uint64_t *)caller.frame)
		   : ptr;
}

static void *ids_malloc(size_t size)
{
	void *ptr = real.malloc(size);
	struct caller caller = CALLER_BARE;

	return policy_begun(ptr, size, LOG_API_MALLOC, caller);
}

static void *slow_malloc(size_t size)
{
	void *ptr = real.malloc(size);
	struct caller caller = CALLER_BARE;

	return begun_slow(ptr, size, LOG_API_MALLOC, caller);
}

static void *ids_calloc(size_t bytes)
{
	void *ptr = real.calloc(1, bytes);
	struct caller caller = CALLER_BARE;

	return policy_begun(ptr, bytes, LOG_API_MALLOC, caller);
}

static void *slow_calloc(size_t bytes)
{
	void *ptr = real.calloc(1, bytes);
	struct caller caller = CALLER_BARE;

	return begun_slow(ptr, bytes, LOG_API_MALLOC, caller);
}

/* The old block is ended before the real call and taken back if nothing happened to it: after the
 * call another thread may already own its address. */
void *policy_resized(void *ptr, size_t size, struct caller caller)
{
	struct block *block = NULL, was;
	struct guard guard;
	void *moved;

	if (!guard_enter(&guard))
		return real.realloc(ptr, size);
	block = block_suspend(&guard, (uint64_t)ptr, caller);
	if (block)
		was = *block;
	guard_leave(&guard);

	moved = real.realloc(ptr, size);

	if (!guard_enter(&guard))
		return moved;
	if (block && moved == ptr) {
		block_resume(&guard, block, (uint64_t)ptr, size);
	} else if (block && !moved && size) {
		/* failed: the old block stays as it was */
		block_resume(&guard, block, (uint64_t)ptr, block_size(block));
	} else {
		if (block)
			block_moved(&guard, &was, (uint64_t)ptr, caller);
		if (moved)
			(void)block_begin_guarded(&guard, BLOCKS_HEAP, (uint64_t)moved, size,
						  LOG_API_MALLOC, caller);
	}
	guard_leave(&guard);
	return moved;
}

static void *ids_realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;

	if (!ptr)
		return policy_begun(real.realloc(NULL, size), size, LOG_API_MALLOC, caller);
	if (unlikely(early_owns(ptr)))
		return policy_begun(early_leave(ptr, size), size, LOG_API_MALLOC, caller);
	return policy_resized(ptr, size, caller);
}

static void *slow_realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;

	if (!ptr)
		return begun_slow(real.realloc(NULL, size), size, LOG_API_MALLOC, caller);
	if (unlikely(early_owns(ptr)))
		return begun_slow(early_leave(ptr, size), size, LOG_API_MALLOC, caller);
	return policy_resized(ptr, size, caller);
}

__attribute__((noinline)) void policy_free_slow(void *ptr, const uint64_t *frame)
{
	if (!ptr || early_owns(ptr))
		return;
	block_end_slow(ptr, BLOCKS_HEAP, frame);
	real.free(ptr);
}

static void ids_free(void *ptr)
{
	struct caller caller = CALLER_BARE;
	uint32_t shift = blocks_state.spaces[BLOCKS_HEAP].shift;

	if (likely(block_end(BLOCKS_HEAP, shift, ptr, caller)))
		real.free(ptr);
	else
		policy_free_slow(ptr, (const uint64_t *)caller.frame);
}

static void slow_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	policy_free_slow(ptr, (const uint64_t *)caller.frame);
}

static void *ids_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			 const struct caller *caller)
{
	return policy_begun(policy_plain.aligned(fn, align, size, caller), size, LOG_API_ALIGNED,
			    *caller);
}

static void *slow_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			  const struct caller *caller)
{
	return begun_slow(policy_plain.aligned(fn, align, size, caller), size, LOG_API_ALIGNED,
			  *caller);
}

const struct policy policy_ids = {
	.name = "ids",
	.malloc = ids_malloc,
	.calloc = ids_calloc,
	.realloc = ids_realloc,
	.free = ids_free,
	.aligned = ids_aligned,
	.usable = policy_plain_usable,
};

const struct policy policy_ids_slow = {
	.name = "ids, every event",
	.malloc = slow_malloc,
	.calloc = slow_calloc,
	.realloc = slow_realloc,
	.free = slow_free,
	.aligned = slow_aligned,
	.usable = policy_plain_usable,
};
