/*
 * The allocation hooks of C. What each does is the policy's (policy.h); the shortest way of malloc
 * and free, for blocks of libc's own, is here.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "agent/alloc/builtin_malloc.h"
#include "agent/alloc/policy.h"
#include "agent/alloc/tcache.h"
#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/ids/blocks.h"

/* C23; libc may not declare them yet. */
EXPORT void free_sized(void *ptr, size_t size);
EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size);

/* Where libc's cache is empty or not trusted. */
static __attribute__((noinline)) void *malloc_behind(size_t size)
{
	void *ptr = unlikely(tcache.watching) ? tcache_malloc_watched(size) : real.malloc(size);
	struct caller caller = CALLER_BARE;

	return block_begin(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, size, LOG_API_MALLOC, caller);
}

/* The hooks jump (the file is never compiled below -O2): whatever they lead to has their caller. */
EXPORT void *malloc(size_t size)
{
	uint32_t ids = arch_loaded(agent_switch.ids);
	void *ptr;

	if (unlikely(ids != AGENT_IDS_GLIBC))
		return policy_now()->malloc(size);
	ptr = tcache_take(size);
	if (unlikely(!ptr))
		return malloc_behind(size);
	struct caller caller = CALLER_BARE;

	return block_begin(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, size, LOG_API_MALLOC, caller);
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
		policy_now()->free(ptr);
	} else if (likely(block_end(BLOCKS_HEAP, BLOCKS_GLIBC_SHIFT, ptr, caller))) {
		if (unlikely(!tcache_give(ptr)))
			free_behind(ptr);
	} else {
		policy_free_slow(ptr, (const uint64_t *)caller.frame);
	}
}

EXPORT void free_sized(void *ptr, size_t size)
{
	(void)size;
	policy_now()->free(ptr);
}

EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size)
{
	(void)align;
	(void)size;
	policy_now()->free(ptr);
}

static inline __attribute__((always_inline)) bool multiplied(size_t count, size_t size,
							     size_t *ret_total)
{
	if (likely(!__builtin_mul_overflow(count, size, ret_total)))
		return true;
	errno = ENOMEM;
	return false;
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t total;

	return multiplied(count, size, &total) ? policy_now()->calloc(total) : NULL;
}

EXPORT void *realloc(void *ptr, size_t size)
{
	return policy_now()->realloc(ptr, size);
}

EXPORT void *reallocarray(void *ptr, size_t count, size_t size)
{
	size_t total;

	return multiplied(count, size, &total) ? policy_now()->realloc(ptr, total) : NULL;
}

EXPORT void *memalign(size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;

	return policy_now()->aligned(real.memalign, align, size, &caller);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;

	return policy_now()->aligned(real.aligned_alloc, align, size, &caller);
}

static void *posix_aligned(size_t align, size_t size)
{
	void *ptr = NULL;

	return real.posix_memalign && !real.posix_memalign(&ptr, align, size) ? ptr : NULL;
}

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	struct caller caller = CALLER_BARE;
	int saved = errno; /* it answers by its value only */
	void *ptr;

	if (!policy_power_of_two(align) || align % sizeof(void *))
		return EINVAL;
	ptr = policy_now()->aligned(posix_aligned, align, size, &caller);
	errno = saved;
	if (!ptr)
		return ENOMEM;
	*ret = ptr;
	return 0;
}

static void *page_aligned(size_t align, size_t size)
{
	(void)align;
	return real.valloc ? real.valloc(size) : NULL;
}

EXPORT void *valloc(size_t size)
{
	struct caller caller = CALLER_BARE;

	return policy_now()->aligned(page_aligned, PAGE, size, &caller);
}

static void *pages_aligned(size_t align, size_t size)
{
	(void)align;
	return real.pvalloc ? real.pvalloc(size) : NULL;
}

EXPORT void *pvalloc(size_t size)
{
	struct caller caller = CALLER_BARE;

	if (size > SIZE_MAX - PAGE)
		return pages_aligned(PAGE, size); /* libc is to say that it is too much */
	size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
	return policy_now()->aligned(pages_aligned, PAGE, size, &caller);
}

EXPORT size_t malloc_usable_size(void *ptr)
{
	return early_owns(ptr) ? early_size(ptr) : policy_now()->usable(ptr);
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
