/*
 * The allocation hooks of C. Each calls the real function first (so the heap is as it would be) and
 * then notes the block, or, when a block goes, notes that before the real call: afterwards another
 * thread may own the address.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/alloc/builtin_malloc.h"
#include "agent/alloc/sampled.h"
#include "agent/alloc/tcache.h"
#include "agent/chaos/chaos.h"
#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/core/log.h"
#include "agent/core/real.h"
#include "agent/guards/canary_heap.h"
#include "agent/guards/quarantine.h"
#include "agent/ids/blocks.h"
#include "agent/pages/pages.h"

#define PAGE 4096u

/* C23; libc may not declare them yet. */
EXPORT void free_sized(void *ptr, size_t size);
EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size);

static inline __attribute__((always_inline)) void *begun(void *ptr, size_t size, enum log_api api,
							 struct caller caller)
{
	if (unlikely(!ptr || !agent_switch.ids))
		return ptr;
	if (unlikely(agent_ids_slow()))
		return block_begin_slow(ptr, size, BLOCKS_HEAP, api,
					(const uint64_t *)caller.frame);
	return block_begin(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift, ptr, size, api,
			   caller);
}

static __attribute__((noinline)) void *malloc_other(size_t size)
{
	void *ptr = real.malloc(size);
	struct caller caller = CALLER_BARE;

	return begun(ptr, size, LOG_API_MALLOC, caller);
}

/* Where blocks have guards. The common case first: the block's place in the table is there already,
 * so that it cannot fail to be noted. */
static inline __attribute__((always_inline)) void *begun_guarded(void *base, size_t size,
								 struct caller caller)
{
	const enum log_api api = (enum log_api)(LOG_API_MALLOC | 1 << BLOCK_FRONT_SHIFT);
	uint64_t start = (uint64_t)base + CANARY_FRONT;
	const uint32_t *window = block_window(&blocks_state.spaces[BLOCKS_HEAP], start);

	if (unlikely(!window || !*window || !thread_self || thread_self->busy ||
		     start % CANARY_FRONT))
		return canary_take(base, CANARY_FRONT, size, LOG_API_MALLOC, caller);
	canary_write(start, CANARY_FRONT, size);
	block_mark_guarded(*window);
	if (unlikely(agent_ids_slow()))
		return block_begin_slow((void *)start, size, BLOCKS_HEAP, api,
					(const uint64_t *)caller.frame);
	return block_begin(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift, (void *)start, size,
			   api, caller);
}

static __attribute__((noinline)) void *malloc_guarded(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *base;

	if (unlikely(size >= BLOCKS_LARGE || canary.asks))
		return canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
	if (unlikely(!sample_takes(caller)))
		return begun(real.malloc(size), size, LOG_API_MALLOC, caller);
	base = real.malloc(canary_room(CANARY_FRONT, size) + canary.gap);
	if (unlikely(!base)) /* no memory: what is in quarantine may help */
		return canary_allocate(0, size, CANARY_TAKEN, LOG_API_MALLOC, caller);
	return begun_guarded(base, size, caller);
}

static __attribute__((noinline)) void *calloc_guarded(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *base;

	if (unlikely(size >= BLOCKS_LARGE || canary.asks))
		return canary_allocate(0, size, CANARY_ZEROED, LOG_API_MALLOC, caller);
	if (unlikely(!sample_takes(caller)))
		return begun(real.calloc(1, size), size, LOG_API_MALLOC, caller);
	base = real.calloc(1, canary_room(CANARY_FRONT, size) + canary.gap);
	if (unlikely(!base))
		return canary_allocate(0, size, CANARY_ZEROED | CANARY_TAKEN, LOG_API_MALLOC,
				       caller);
	return begun_guarded(base, size, caller);
}

/* The second half of those below, reached by a jump: what it finds for itself is not kept across
 * the call of libc. */
static __attribute__((noinline)) void *begun_sampled(void *ptr, size_t size, uint64_t context)
{
	struct caller caller = CALLER_BARE;

	return block_begin_in(thread_hot, context, BLOCKS_HEAP,
			      blocks_state.spaces[BLOCKS_HEAP].shift, ptr, size, LOG_API_MALLOC,
			      caller);
}

/* Where most blocks have no guards: those. A context that is not known, or whose turn it is, goes
 * the other way, which decides. */
static __attribute__((noinline)) void *malloc_sampled(size_t size)
{
	struct caller caller = CALLER_BARE;
	struct thread *self = thread_hot;
	uint64_t context;
	void *ptr;

	if (unlikely(!context_hit(self, caller, &context)) ||
	    unlikely(!sample_passes(self, context)))
		return malloc_guarded(size);
	ptr = real.malloc(size);
	if (unlikely(!ptr))
		return malloc_guarded(size);
	return begun_sampled(ptr, size, context);
}

static __attribute__((noinline)) void *calloc_sampled(size_t size)
{
	struct caller caller = CALLER_BARE;
	struct thread *self = thread_hot;
	uint64_t context;
	void *ptr;

	if (unlikely(!context_hit(self, caller, &context)) ||
	    unlikely(!sample_passes(self, context)))
		return calloc_guarded(size);
	ptr = real.calloc(1, size);
	if (unlikely(!ptr))
		return calloc_guarded(size);
	return begun_sampled(ptr, size, context);
}

/* A block that is to lie on watched pages; NULL: none of those. */
static inline __attribute__((always_inline)) void *placed(size_t align, size_t size, bool zeroed,
							  enum log_api api, struct caller caller)
{
	if (likely(!pages.bytes) || !agent_switch.ids || builtin_replaced)
		return NULL;
	return pages_allocate(align, size, zeroed, api, caller);
}

static __attribute__((noinline)) void *malloc_unlike(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *ptr;

	if (builtin_passes_on())
		return builtin_behind.malloc(size);
	chaos_at((uint64_t)__builtin_return_address(0));
	ptr = placed(0, size, false, LOG_API_MALLOC, caller);
	if (unlikely(ptr != NULL))
		return ptr;
	if (agent_ids_guarded())
		return malloc_guarded(size);
	return agent_switch.ids ? malloc_other(size) : real.malloc(size);
}

/* Where libc's cache is empty or not trusted. */
static __attribute__((noinline)) void *malloc_behind(size_t size)
{
	void *ptr = unlikely(tcache.watching) ? tcache_malloc_watched(size) : real.malloc(size);
	struct caller caller = CALLER_BARE;

	return block_begin(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, size, LOG_API_MALLOC, caller);
}

/* malloc and free are for libc's blocks; for others, and without `ids`, they are a jump more. Where
 * the rest is reached by a jump (the file is never compiled below -O2), its caller is ours. */
EXPORT void *malloc(size_t size)
{
	uint32_t ids = arch_loaded(agent_switch.ids);
	void *ptr;

	if (unlikely(ids != AGENT_IDS_GLIBC))
		return ids == AGENT_IDS_SAMPLED ? malloc_sampled(size) : malloc_unlike(size);
	ptr = tcache_take(size);
	if (unlikely(!ptr))
		return malloc_behind(size);
	struct caller caller = CALLER_BARE;

	return block_begin(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, size, LOG_API_MALLOC, caller);
}

/* What the fast way leaves. */
static __attribute__((noinline)) void free_slow(void *ptr, const uint64_t *frame)
{
	if (!ptr || early_owns(ptr))
		return;
	block_end_slow(ptr, BLOCKS_HEAP, frame);
	real.free(ptr);
}

static __attribute__((noinline)) void free_other(void *ptr)
{
	struct caller caller = CALLER_BARE;
	uint32_t shift = blocks_state.spaces[BLOCKS_HEAP].shift;

	if (!agent_ids_slow() && likely(block_end(BLOCKS_HEAP, shift, ptr, caller)))
		real.free(ptr);
	else
		free_slow(ptr, (const uint64_t *)caller.frame);
}

static __attribute__((noinline)) void free_guarded(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (likely(agent_ids_guarded()) && !agent_ids_slow() &&
	    likely(quarantine_free(ptr, LOG_API_MALLOC, caller.return_address, caller.frame)))
		return;
	if (agent_ids_guarded())
		canary_free(ptr, LOG_BY_FREE, caller);
	else /* retired, or in a child that libc does not know of */
		canary_free_blindly(ptr);
}

static __attribute__((noinline)) void free_unlike(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on()) {
		builtin_behind.free(ptr);
		return;
	}
	chaos_at((uint64_t)__builtin_return_address(0));
	if (pages_hold((uint64_t)ptr))
		pages_free(ptr, caller);
	else if (agent_switch.ids && !agent_ids_guarded())
		free_other(ptr);
	else if (!ptr || early_owns(ptr))
		return;
	else if (canary.on)
		free_guarded(ptr);
	else
		real.free(ptr);
}

/* Of a block that was passed over: as where none has guards. */
static __attribute__((noinline)) void free_sampled(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (likely(sample_end(ptr, LOG_API_MALLOC, caller))) {
		__asm__("" : "+D"(ptr));
		real.free(ptr);
	} else {
		free_unlike(ptr);
	}
}

static __attribute__((noinline)) void free_behind(void *ptr)
{
	if (unlikely(tcache.watching))
		tcache_free_watched(ptr);
	else
		real.free(ptr);
}

EXPORT void free(void *ptr)
{
	struct caller caller = CALLER_BARE;
	uint32_t ids = arch_loaded(agent_switch.ids);

	if (unlikely(ids != AGENT_IDS_GLIBC)) {
		if (ids == AGENT_IDS_SAMPLED)
			free_sampled(ptr);
		else
			free_unlike(ptr);
	} else if (likely(block_end(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, caller))) {
		if (unlikely(!tcache_give(ptr)))
			free_behind(ptr);
	} else {
		free_slow(ptr, (const uint64_t *)caller.frame);
	}
}

EXPORT void free_sized(void *ptr, size_t size)
{
	(void)size;
	free_unlike(ptr);
}

EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size)
{
	(void)align;
	(void)size;
	free_unlike(ptr);
}

/* Where blocks have guards; false when libc is to say that there is too much asked for. */
static inline __attribute__((always_inline)) bool guarded_array(size_t count, size_t size,
								size_t *ret_total)
{
	return unlikely(agent_ids_guarded()) && !__builtin_mul_overflow(count, size, ret_total);
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t total;
	void *ptr;

	if (builtin_passes_on())
		return builtin_behind.calloc(count, size);
	chaos_at((uint64_t)__builtin_return_address(0));
	if (guarded_array(count, size, &total))
		return agent_switch.ids == AGENT_IDS_SAMPLED ? calloc_sampled(total)
							     : calloc_guarded(total);
	struct caller caller = CALLER_BARE;

	if (unlikely(pages.bytes) && !__builtin_mul_overflow(count, size, &total)) {
		ptr = placed(0, total, true, LOG_API_MALLOC, caller);
		if (ptr)
			return ptr;
	}
	ptr = real.calloc(count, size);

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

static __attribute__((noinline)) void *resized_guarded(void *ptr, size_t size, struct caller caller)
{
	void *moved;

	if (canary_holds(ptr))
		return agent_ids_guarded() ? canary_realloc(ptr, size, caller)
					   : canary_realloc_blindly(ptr, size);
	if (!agent_ids_guarded())
		return real.realloc(ptr, size);
	if (ptr && !early_owns(ptr))
		return sample.on && size && canary_could_hold(ptr) && sample_takes(caller)
			       ? canary_take_in(ptr, size, CANARY_TAKEN, LOG_API_MALLOC, caller)
			       : resized(ptr, size, caller);
	moved = canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
	if (moved && ptr)
		memcpy(moved, ptr, early_size(ptr) < size ? early_size(ptr) : size);
	return moved;
}

/* NULL for a block that lies elsewhere: it stays there. */
static __attribute__((noinline)) void *resized_paged(void *ptr, size_t size, struct caller caller)
{
	if (pages_hold((uint64_t)ptr))
		return pages_realloc(ptr, size, caller);
	if (!agent_switch.ids || builtin_replaced || (ptr && early_owns(ptr)))
		return NULL;
	return ptr ? pages_take_in(ptr, size, caller)
		   : pages_allocate(0, size, false, LOG_API_MALLOC, caller);
}

static inline __attribute__((always_inline)) void *reallocated(void *ptr, size_t size,
							       struct caller caller)
{
	chaos_at(caller.return_address);
	if (unlikely(canary.on))
		return resized_guarded(ptr, size, caller);
	if (unlikely(pages.bytes)) {
		void *moved = resized_paged(ptr, size, caller);

		if (moved || pages_hold((uint64_t)ptr))
			return moved;
	}
	if (!ptr)
		return begun(real.realloc(NULL, size), size, LOG_API_MALLOC, caller);
	if (unlikely(early_owns(ptr)))
		return begun(early_leave(ptr, size), size, LOG_API_MALLOC, caller);
	return resized(ptr, size, caller);
}

EXPORT void *realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on())
		return builtin_behind.realloc(ptr, size);
	return reallocated(ptr, size, caller);
}

EXPORT void *reallocarray(void *ptr, size_t count, size_t size)
{
	struct caller caller = CALLER_BARE;
	size_t total;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	if (builtin_passes_on())
		return builtin_behind.realloc(ptr, total);
	return reallocated(ptr, total, caller);
}

static inline bool power_of_two(size_t value)
{
	return value && !(value & (value - 1));
}

static inline __attribute__((always_inline)) void *
aligned(void *(*fn)(size_t, size_t), size_t align, size_t size, struct caller caller)
{
	if (unlikely(agent_ids_guarded()) && power_of_two(align))
		return canary_allocate(align, size, 0, LOG_API_ALIGNED, caller);
	if (unlikely(pages.bytes) && power_of_two(align)) {
		void *ptr = placed(align, size, false, LOG_API_ALIGNED, caller);

		if (ptr)
			return ptr;
	}
	return begun(fn(align, size), size, LOG_API_ALIGNED, caller);
}

EXPORT void *memalign(size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on())
		return builtin_behind.memalign(align, size);
	return aligned(real.memalign, align, size, caller);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on())
		return builtin_behind.aligned_alloc(align, size);
	return aligned(real.aligned_alloc, align, size, caller);
}

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;
	int r;

	if (builtin_passes_on())
		return builtin_behind.posix_memalign(ret, align, size);
	if (unlikely(agent_ids_guarded()) && power_of_two(align) && align % sizeof(void *) == 0) {
		int saved = errno; /* it answers by its value only */
		void *ptr = canary_allocate(align, size, 0, LOG_API_ALIGNED, caller);

		errno = saved;
		if (!ptr)
			return ENOMEM;
		*ret = ptr;
		return 0;
	}
	if (unlikely(pages.bytes) && power_of_two(align) && align % sizeof(void *) == 0) {
		void *ptr = placed(align, size, false, LOG_API_ALIGNED, caller);

		if (ptr) {
			*ret = ptr;
			return 0;
		}
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
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on())
		return builtin_behind.valloc(size);
	if (unlikely(agent_ids_guarded()))
		return canary_allocate(PAGE, size, 0, LOG_API_ALIGNED, caller);
	if (unlikely(!real.valloc))
		return NULL;
	return begun(real.valloc(size), size, LOG_API_ALIGNED, caller);
}

EXPORT void *pvalloc(size_t size)
{
	struct caller caller = CALLER_BARE;

	if (builtin_passes_on())
		return builtin_behind.pvalloc(size);
	if (unlikely(agent_ids_guarded()) && size <= SIZE_MAX - PAGE)
		return canary_allocate(PAGE, (size + PAGE - 1) & ~(size_t)(PAGE - 1), 0,
				       LOG_API_ALIGNED, caller);
	if (unlikely(!real.pvalloc))
		return NULL;
	return begun(real.pvalloc(size), size, LOG_API_ALIGNED, caller);
}

EXPORT size_t malloc_usable_size(void *ptr)
{
	if (early_owns(ptr))
		return early_size(ptr);
	if (pages_hold((uint64_t)ptr))
		return pages_usable(ptr);
	if (unlikely(canary.on) && ptr)
		return canary_usable(ptr);
	return real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
}

/* For builtin_malloc.c, which must not find the program's by these names. */
#if __has_attribute(copy)
#define ALIAS_OF(name) __attribute__((alias(#name), copy(name)))
#else
#define ALIAS_OF(name) __attribute__((alias(#name)))
#endif
#define OURS(name) extern __typeof(hook_##name) hook_##name ALIAS_OF(name)
OURS(malloc);
OURS(free);
OURS(calloc);
OURS(realloc);
OURS(reallocarray);
OURS(memalign);
OURS(aligned_alloc);
OURS(posix_memalign);
OURS(valloc);
OURS(pvalloc);
