/*
 * The allocation hooks of C. Each calls the real function first (so the heap is as it would be) and
 * then notes the block, or, when a block goes, notes that before the real call: afterwards another
 * thread may own the address.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/blocks.h"
#include "agent/canary.h"
#include "agent/guard.h"
#include "agent/log.h"
#include "agent/real.h"

#define PAGE 4096u

/* C23; libc may not declare them yet. */
EXPORT void free_sized(void *ptr, size_t size);
EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size);

static inline __attribute__((always_inline)) void *begun(void *ptr, size_t size, enum log_api api,
							 struct caller caller)
{
	return likely(ptr && agent_switch.ids) ? block_begin(BLOCKS_HEAP, ptr, size, api, caller)
					       : ptr;
}

static inline __attribute__((always_inline)) void ended(void *ptr, struct caller caller)
{
	if (likely(ptr && agent_switch.ids))
		block_end(BLOCKS_HEAP, ptr, caller);
}

/* malloc and free where blocks have guards: a third half. */
#define guarded() (agent_switch.ids == AGENT_IDS_GUARDED)

/* The common case first: the block's place in the table is there already, so that it cannot fail
 * to be noted. */
static __attribute__((noinline)) void *malloc_guarded(size_t size)
{
	void *base =
		likely(size < BLOCKS_LARGE) ? real.malloc(canary_room(CANARY_FRONT, size)) : NULL;
	uint64_t start = (uint64_t)base + CANARY_FRONT;
	struct caller caller = CALLER_HERE;
	const uint32_t *window;

	if (unlikely(!base)) /* large, or no memory: what is in quarantine may help */
		return BLOCKS_HERE(canary_allocate(0, size, 0, LOG_API_MALLOC, caller));
	window = block_window(&blocks_state.spaces[BLOCKS_HEAP], start);
	if (unlikely(!window || !*window || !thread_self || thread_self->busy ||
		     start % CANARY_FRONT))
		return BLOCKS_HERE(canary_take(base, CANARY_FRONT, size, LOG_API_MALLOC, caller));
	canary_write(start, CANARY_FRONT, size);
	return block_begin(BLOCKS_HEAP, (void *)start, size,
			   (enum log_api)(LOG_API_MALLOC | 1 << BLOCK_FRONT_SHIFT), caller);
}

static __attribute__((noinline)) void free_guarded(void *ptr)
{
	struct caller caller = CALLER_HERE;

	if (!ptr)
		return;
	if (guarded())
		canary_free(ptr, LOG_BY_FREE, caller);
	else /* retired, or in a child that libc does not know of */
		canary_free_blindly(ptr);
	BLOCKS_KEEP_FRAME();
}

/* malloc and free come in two halves, so that without `ids` they are three instructions: a check
 * and a jump. The other half is reached by a jump too (the file is never compiled below -O2), so
 * its caller is ours. */
static __attribute__((noinline)) void *malloc_followed(size_t size)
{
	void *ptr = real.malloc(size);
	struct caller caller = CALLER_HERE; /* now: not kept across the call */

	return likely(ptr) ? block_begin(BLOCKS_HEAP, ptr, size, LOG_API_MALLOC, caller) : ptr;
}

EXPORT void *malloc(size_t size)
{
	if (unlikely(agent_switch.ids != AGENT_IDS_PLAIN))
		return guarded() ? malloc_guarded(size) : real.malloc(size);
	return malloc_followed(size);
}

static __attribute__((noinline)) void free_followed(void *ptr)
{
	struct caller caller = CALLER_HERE;

	if (likely(ptr))
		block_end(BLOCKS_HEAP, ptr, caller);
	real.free(ptr);
}

EXPORT void free(void *ptr)
{
	if (unlikely(early_owns(ptr)))
		return;
	if (likely(agent_switch.ids == AGENT_IDS_PLAIN))
		free_followed(ptr);
	else if (canary.on)
		free_guarded(ptr);
	else
		real.free(ptr);
}

static inline __attribute__((always_inline)) void released(void *ptr, struct caller caller)
{
	if (!ptr || early_owns(ptr))
		return;
	if (unlikely(canary.on)) {
		if (guarded())
			canary_free(ptr, LOG_BY_FREE, caller);
		else
			canary_free_blindly(ptr);
		BLOCKS_KEEP_FRAME();
		return;
	}
	ended(ptr, caller);
	real.free(ptr);
}

EXPORT void free_sized(void *ptr, size_t size)
{
	struct caller caller = CALLER_HERE;

	(void)size;
	released(ptr, caller);
}

EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size)
{
	struct caller caller = CALLER_HERE;

	(void)align;
	(void)size;
	released(ptr, caller);
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t total;
	void *ptr;

	if (unlikely(guarded()) && !__builtin_mul_overflow(count, size, &total)) {
		struct caller caller = CALLER_HERE;

		return BLOCKS_HERE(
			canary_allocate(0, total, CANARY_ZEROED, LOG_API_MALLOC, caller));
	}
	ptr = real.calloc(count, size);
	struct caller caller = CALLER_HERE;
	return begun(ptr, count * size, LOG_API_MALLOC, caller);
}

/* A block of the early arena moves to the heap when it is resized. */
static void *early_leave(void *ptr, size_t size)
{
	size_t old = early_size(ptr);
	void *moved = real.malloc(size);

	if (moved)
		memcpy(moved, ptr, old < size ? old : size);
	return moved;
}

/* The old block is ended before the real call and taken back if nothing happened to it: after the
 * call another thread may already own its address. */
static void *resized(void *ptr, size_t size, struct caller caller)
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
		block->state = LOG_BLOCK_LIVE; /* failed: the old block stays as it was */
		block->free_context = 0;
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

static __attribute__((noinline)) void *resized_guarded(void *ptr, size_t size, struct caller caller)
{
	void *moved;

	if (canary_holds(ptr))
		return guarded() ? canary_realloc(ptr, size, caller)
				 : canary_realloc_blindly(ptr, size);
	if (!guarded())
		return real.realloc(ptr, size);
	if (ptr && !early_owns(ptr))
		return resized(ptr, size, caller);
	moved = canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
	if (moved && ptr)
		memcpy(moved, ptr, early_size(ptr) < size ? early_size(ptr) : size);
	return moved;
}

static inline __attribute__((always_inline)) void *reallocated(void *ptr, size_t size,
							       struct caller caller)
{
	if (unlikely(canary.on))
		return BLOCKS_HERE(resized_guarded(ptr, size, caller));
	if (!ptr)
		return begun(real.realloc(NULL, size), size, LOG_API_MALLOC, caller);
	if (unlikely(early_owns(ptr)))
		return begun(early_leave(ptr, size), size, LOG_API_MALLOC, caller);
	return resized(ptr, size, caller);
}

EXPORT void *realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_HERE;

	return reallocated(ptr, size, caller);
}

EXPORT void *reallocarray(void *ptr, size_t count, size_t size)
{
	struct caller caller = CALLER_HERE;
	size_t total;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return reallocated(ptr, total, caller);
}

static inline bool power_of_two(size_t value)
{
	return value && !(value & (value - 1));
}

EXPORT void *memalign(size_t align, size_t size)
{
	struct caller caller = CALLER_HERE;

	if (unlikely(guarded()) && power_of_two(align))
		return BLOCKS_HERE(canary_allocate(align, size, 0, LOG_API_ALIGNED, caller));
	return begun(real.memalign(align, size), size, LOG_API_ALIGNED, caller);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	struct caller caller = CALLER_HERE;

	if (unlikely(guarded()) && power_of_two(align))
		return BLOCKS_HERE(canary_allocate(align, size, 0, LOG_API_ALIGNED, caller));
	return begun(real.aligned_alloc(align, size), size, LOG_API_ALIGNED, caller);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	struct caller caller = CALLER_HERE;
	int r;

	if (unlikely(guarded()) && power_of_two(align) && align % sizeof(void *) == 0) {
		int saved = errno; /* it answers by its value only */
		void *ptr = canary_allocate(align, size, 0, LOG_API_ALIGNED, caller);

		errno = saved;
		if (!ptr)
			return ENOMEM;
		*ret = ptr;
		return 0;
	}
	if (unlikely(!real.posix_memalign))
		return ENOMEM;
	r = real.posix_memalign(ret, align, size);
	if (!r)
		(void)begun(*ret, size, LOG_API_ALIGNED, caller);
	return r;
}

EXPORT void *valloc(size_t size)
{
	struct caller caller = CALLER_HERE;

	if (unlikely(guarded()))
		return BLOCKS_HERE(canary_allocate(PAGE, size, 0, LOG_API_ALIGNED, caller));
	if (unlikely(!real.valloc))
		return NULL;
	return begun(real.valloc(size), size, LOG_API_ALIGNED, caller);
}

EXPORT void *pvalloc(size_t size)
{
	struct caller caller = CALLER_HERE;

	if (unlikely(guarded()) && size <= SIZE_MAX - PAGE)
		return BLOCKS_HERE(canary_allocate(PAGE, (size + PAGE - 1) & ~(size_t)(PAGE - 1), 0,
						   LOG_API_ALIGNED, caller));
	if (unlikely(!real.pvalloc))
		return NULL;
	return begun(real.pvalloc(size), size, LOG_API_ALIGNED, caller);
}

EXPORT size_t malloc_usable_size(void *ptr)
{
	if (early_owns(ptr))
		return early_size(ptr);
	if (unlikely(canary.on) && ptr)
		return canary_usable(ptr);
	return real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
}
