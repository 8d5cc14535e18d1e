/*
 * Nothing is recorded: libc's own functions.
 */
#include "agent/alloc/policy.h"

#include "agent/core/real.h"

static void *plain_malloc(size_t size)
{
	return real.malloc(size);
}

static void *plain_calloc(size_t bytes)
{
	return real.calloc(1, bytes);
}

static void *plain_realloc(void *ptr, size_t size)
{
	return early_owns(ptr) ? early_leave(ptr, size) : real.realloc(ptr, size);
}

static void plain_free(void *ptr)
{
	if (ptr && !early_owns(ptr))
		real.free(ptr);
}

static void *plain_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			   const struct caller *caller)
{
	(void)caller;
	return fn ? fn(align, size) : NULL;
}

static size_t plain_usable(void *ptr)
{
	return real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
}

const struct policy policy_plain = {
	.name = "plain",
	.malloc = plain_malloc,
	.calloc = plain_calloc,
	.realloc = plain_realloc,
	.free = plain_free,
	.aligned = plain_aligned,
	.usable = plain_usable,
};
