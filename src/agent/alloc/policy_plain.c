/*
 * Nothing is recorded: libc's own functions.
 */
#include "agent/alloc/policy.h"

#include "agent/core/real.h"

void *policy_plain_malloc(size_t size)
{
	return real.malloc(size);
}

void *policy_plain_calloc(size_t bytes)
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

void *policy_plain_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			   const struct caller *caller)
{
	(void)caller;
	return fn ? fn(align, size) : NULL;
}

size_t policy_plain_usable(void *ptr)
{
	return real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
}

const struct policy policy_plain = {
	.name = "plain",
	.malloc = policy_plain_malloc,
	.calloc = policy_plain_calloc,
	.realloc = plain_realloc,
	.free = plain_free,
	.aligned = policy_plain_aligned,
	.usable = policy_plain_usable,
};
