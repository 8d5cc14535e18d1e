/*
 * Blocks have guards and go through quarantine (guards/): all of them, or a sample.
 */
#include "agent/alloc/policy_inside.h"

#include <string.h>

#include "agent/alloc/sampled.h"
#include "agent/core/real.h"
#include "agent/guards/canary_heap.h"
#include "agent/guards/quarantine.h"

/* Where blocks have guards. The common case first: the block's place in the table is there already,
 * so that it cannot fail to be noted. */
static inline __attribute__((always_inline)) void *begun_guarded(void *base, size_t size,
								 struct caller caller)
{
	const enum log_api api = (enum log_api)(LOG_API_MALLOC | 1 << BLOCK_FRONT_SHIFT);
	uint64_t start = (uint64_t)base + CANARY_FRONT;
	const uint32_t *window = block_window(&blocks_state.spaces[BLOCKS_HEAP], start);

	if (unlikely(!window || !*window || !thread_self || thread_self->fast.busy ||
		     start % CANARY_FRONT))
		return canary_take(base, CANARY_FRONT, size, LOG_API_MALLOC, caller);
	canary_write(start, CANARY_FRONT, size);
	block_mark_guarded(*window);
	return block_begin(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift, (void *)start, size,
			   api, caller);
}

static void *guarded_malloc(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *base;

	if (unlikely(size >= BLOCKS_LARGE))
		return canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
	if (unlikely(!sample_takes(caller)))
		return policy_begun(real.malloc(size), size, LOG_API_MALLOC, caller);
	base = real.malloc(canary_room(CANARY_FRONT, size) + canary.gap);
	if (unlikely(!base)) /* no memory: what is in quarantine may help */
		return canary_allocate(0, size, CANARY_TAKEN, LOG_API_MALLOC, caller);
	return begun_guarded(base, size, caller);
}

static void *guarded_calloc(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *base;

	if (unlikely(size >= BLOCKS_LARGE))
		return canary_allocate(0, size, CANARY_ZEROED, LOG_API_MALLOC, caller);
	if (unlikely(!sample_takes(caller)))
		return policy_begun(real.calloc(1, size), size, LOG_API_MALLOC, caller);
	base = real.calloc(1, canary_room(CANARY_FRONT, size) + canary.gap);
	if (unlikely(!base))
		return canary_allocate(0, size, CANARY_ZEROED | CANARY_TAKEN, LOG_API_MALLOC,
				       caller);
	return begun_guarded(base, size, caller);
}

/* Where each block is asked for: it may lie elsewhere, or be filled by chance. */
static void *fenced_malloc(size_t size)
{
	struct caller caller = CALLER_BARE;

	return canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
}

static void *fenced_calloc(size_t size)
{
	struct caller caller = CALLER_BARE;

	return canary_allocate(0, size, CANARY_ZEROED, LOG_API_MALLOC, caller);
}

static __attribute__((noinline)) void *resized(void *ptr, size_t size, struct caller caller)
{
	void *moved;

	if (canary_holds(ptr))
		return canary_realloc(ptr, size, caller);
	if (ptr && !early_owns(ptr))
		return sample.on && size && canary_could_hold(ptr) && sample_takes(caller)
			       ? canary_take_in(ptr, size, CANARY_TAKEN, LOG_API_MALLOC, caller)
			       : policy_resized(ptr, size, caller);
	moved = canary_allocate(0, size, 0, LOG_API_MALLOC, caller);
	if (moved && ptr)
		memcpy(moved, ptr, early_size(ptr) < size ? early_size(ptr) : size);
	return moved;
}

static void *guarded_realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;

	return resized(ptr, size, caller);
}

static void guarded_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (!ptr || early_owns(ptr))
		return;
	if (unlikely(!quarantine_free(ptr, LOG_API_MALLOC, caller.return_address, caller.frame)))
		canary_free(ptr, LOG_BY_FREE, caller);
}

static void guarded_slow_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (ptr && !early_owns(ptr))
		canary_free(ptr, LOG_BY_FREE, caller);
}

static void *guarded_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			     const struct caller *caller)
{
	if (policy_power_of_two(align))
		return canary_allocate(align, size, 0, LOG_API_ALIGNED, *caller);
	return policy_begun(policy_plain.aligned(fn, align, size, caller), size, LOG_API_ALIGNED,
			    *caller);
}

static void *guarded_slow_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
				  const struct caller *caller)
{
	if (policy_power_of_two(align))
		return canary_allocate(align, size, 0, LOG_API_ALIGNED, *caller);
	return policy_ids_slow.aligned(fn, align, size, caller);
}

static bool guarded_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	enum log_api api = by == LOG_BY_DELETE ? LOG_API_NEW : LOG_API_NEW_ARRAY;

	if (!quarantine_free(ptr, api, caller->return_address, caller->frame))
		canary_free(ptr, by, *caller);
	return true;
}

static bool guarded_slow_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	canary_free(ptr, by, *caller);
	return true;
}

static size_t guarded_usable(void *ptr)
{
	return ptr ? canary_usable(ptr) : policy_plain.usable(ptr);
}

const struct policy policy_guarded = {
	.name = "guarded",
	.malloc = guarded_malloc,
	.calloc = guarded_calloc,
	.realloc = guarded_realloc,
	.free = guarded_free,
	.aligned = guarded_aligned,
	.delete_by = guarded_delete,
	.usable = guarded_usable,
};

const struct policy policy_guarded_slow = {
	.name = "guarded, every event",
	.malloc = fenced_malloc,
	.calloc = fenced_calloc,
	.realloc = guarded_realloc,
	.free = guarded_slow_free,
	.aligned = guarded_slow_aligned,
	.delete_by = guarded_slow_delete,
	.usable = guarded_usable,
};

const struct policy policy_fenced = {
	.name = "fenced",
	.malloc = fenced_malloc,
	.calloc = fenced_calloc,
	.realloc = guarded_realloc,
	.free = guarded_free,
	.aligned = guarded_aligned,
	.delete_by = guarded_delete,
	.usable = guarded_usable,
};

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
static void *sampled_malloc(size_t size)
{
	struct caller caller = CALLER_BARE;
	struct thread *self = thread_hot;
	uint64_t context;
	void *ptr;

	if (unlikely(!context_hit(self, caller, &context)) ||
	    unlikely(!sample_passes(self, context)))
		return policy_state.beneath_sampled->malloc(size);
	ptr = real.malloc(size);
	if (unlikely(!ptr))
		return policy_state.beneath_sampled->malloc(size);
	return begun_sampled(ptr, size, context);
}

static void *sampled_calloc(size_t size)
{
	struct caller caller = CALLER_BARE;
	struct thread *self = thread_hot;
	uint64_t context;
	void *ptr;

	if (unlikely(!context_hit(self, caller, &context)) ||
	    unlikely(!sample_passes(self, context)))
		return policy_state.beneath_sampled->calloc(size);
	ptr = real.calloc(1, size);
	if (unlikely(!ptr))
		return policy_state.beneath_sampled->calloc(size);
	return begun_sampled(ptr, size, context);
}

/* Of a block that was passed over: as where none has guards. */
static void sampled_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (likely(sample_end(ptr, LOG_API_MALLOC, caller))) {
		__asm__("" : "+D"(ptr));
		real.free(ptr);
	} else {
		guarded_free(ptr);
	}
}

static bool sampled_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	return sample_free(ptr, by == LOG_BY_DELETE ? LOG_API_NEW : LOG_API_NEW_ARRAY, *caller) ||
	       guarded_delete(ptr, by, caller);
}

const struct policy policy_sampled = {
	.name = "sampled",
	.malloc = sampled_malloc,
	.calloc = sampled_calloc,
	.realloc = guarded_realloc,
	.free = sampled_free,
	.aligned = guarded_aligned,
	.delete_by = sampled_delete,
	.usable = guarded_usable,
};

static void *rest_realloc(void *ptr, size_t size)
{
	if (ptr && !early_owns(ptr) && canary_holds(ptr))
		return canary_realloc_blindly(ptr, size);
	return policy_plain.realloc(ptr, size);
}

static void rest_free(void *ptr)
{
	if (ptr && !early_owns(ptr))
		canary_free_blindly(ptr);
}

const struct policy policy_guarded_rest = {
	.name = "guarded, at rest",
	.malloc = policy_plain_malloc,
	.calloc = policy_plain_calloc,
	.realloc = rest_realloc,
	.free = rest_free,
	.aligned = policy_plain_aligned,
	.usable = guarded_usable,
};
