/*
 * Policies that stand before another one.
 */
#include "agent/alloc/builtin_malloc.h"
#include "agent/alloc/policy.h"
#include "agent/chaos/chaos.h"
#include "agent/core/real.h"
#include "agent/pages/pages.h"

/* NULL: it is to lie where it always does. */
static inline __attribute__((always_inline)) void *place(size_t align, size_t size, bool zeroed,
							 enum log_api api, struct caller caller)
{
	return agent_switch.ids ? pages_allocate(align, size, zeroed, api, caller) : NULL;
}

static inline const struct policy *beneath_placed(void)
{
	return policy_beneath(policy_state.beneath_placed);
}

static void *placed_malloc(size_t size)
{
	struct caller caller = CALLER_BARE;
	void *ptr = place(0, size, false, LOG_API_MALLOC, caller);

	return unlikely(ptr != NULL) ? ptr : beneath_placed()->malloc(size);
}

static void *placed_calloc(size_t bytes)
{
	struct caller caller = CALLER_BARE;
	void *ptr = place(0, bytes, true, LOG_API_MALLOC, caller);

	return unlikely(ptr != NULL) ? ptr : beneath_placed()->calloc(bytes);
}

static void *placed_realloc(void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;
	void *moved = NULL;

	if (pages_hold((uint64_t)ptr))
		return pages_realloc(ptr, size, caller);
	if (agent_switch.ids && !(ptr && early_owns(ptr)))
		moved = ptr ? pages_take_in(ptr, size, caller)
			    : pages_allocate(0, size, false, LOG_API_MALLOC, caller);
	return moved ? moved : beneath_placed()->realloc(ptr, size);
}

static void placed_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (pages_hold((uint64_t)ptr))
		pages_free(ptr, caller);
	else
		beneath_placed()->free(ptr);
}

static void *placed_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			    const struct caller *caller)
{
	void *ptr = policy_power_of_two(align) ? place(align, size, false, LOG_API_ALIGNED, *caller)
					       : NULL;

	return ptr ? ptr : beneath_placed()->aligned(fn, align, size, caller);
}

static bool placed_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	const struct policy *beneath = beneath_placed();

	return !pages_hold((uint64_t)ptr) && beneath->delete_by &&
	       beneath->delete_by(ptr, by, caller);
}

static size_t placed_usable(void *ptr)
{
	return pages_hold((uint64_t)ptr) ? pages_usable(ptr) : beneath_placed()->usable(ptr);
}

const struct policy policy_placed = {
	.name = "placed",
	.malloc = placed_malloc,
	.calloc = placed_calloc,
	.realloc = placed_realloc,
	.free = placed_free,
	.aligned = placed_aligned,
	.delete_by = placed_delete,
	.usable = placed_usable,
};

static inline const struct policy *beneath_held(void)
{
	return policy_beneath(policy_state.beneath_held);
}

static void *held_malloc(size_t size)
{
	chaos_at((uint64_t)__builtin_return_address(0));
	return beneath_held()->malloc(size);
}

static void *held_calloc(size_t bytes)
{
	chaos_at((uint64_t)__builtin_return_address(0));
	return beneath_held()->calloc(bytes);
}

static void *held_realloc(void *ptr, size_t size)
{
	chaos_at((uint64_t)__builtin_return_address(0));
	return beneath_held()->realloc(ptr, size);
}

static void held_free(void *ptr)
{
	chaos_at((uint64_t)__builtin_return_address(0));
	beneath_held()->free(ptr);
}

static void *held_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			  const struct caller *caller)
{
	return beneath_held()->aligned(fn, align, size, caller);
}

static bool held_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	const struct policy *beneath = beneath_held();

	if (!beneath->delete_by)
		return false; /* free() is called, where it is held */
	chaos_at(caller->return_address);
	return beneath->delete_by(ptr, by, caller);
}

static size_t held_usable(void *ptr)
{
	return beneath_held()->usable(ptr);
}

const struct policy policy_held = {
	.name = "held",
	.malloc = held_malloc,
	.calloc = held_calloc,
	.realloc = held_realloc,
	.free = held_free,
	.aligned = held_aligned,
	.delete_by = held_delete,
	.usable = held_usable,
};

/* ---- a malloc that the program has inside ------------------------------------------------------
 *
 * Where its functions were called by a hook and pass on to ours, libc's are what they want.
 */

static inline const struct policy *beneath_builtin(void)
{
	return policy_beneath(policy_state.beneath_builtin);
}

static void *builtin_malloc(size_t size)
{
	if (builtin_passes_on())
		return builtin_behind.malloc(size);
	return beneath_builtin()->malloc(size);
}

static void *builtin_calloc(size_t bytes)
{
	if (builtin_passes_on())
		return builtin_behind.calloc(1, bytes);
	return beneath_builtin()->calloc(bytes);
}

static void *builtin_realloc(void *ptr, size_t size)
{
	if (builtin_passes_on())
		return builtin_behind.realloc(ptr, size);
	return beneath_builtin()->realloc(ptr, size);
}

static void builtin_free(void *ptr)
{
	if (builtin_passes_on())
		builtin_behind.free(ptr);
	else
		beneath_builtin()->free(ptr);
}

static void *builtin_aligned(void *(*fn)(size_t, size_t), size_t align, size_t size,
			     const struct caller *caller)
{
	if (builtin_passes_on())
		return builtin_behind.memalign(align, size);
	return beneath_builtin()->aligned(fn, align, size, caller);
}

static bool builtin_delete(void *ptr, enum log_free_by by, const struct caller *caller)
{
	const struct policy *beneath = beneath_builtin();

	return beneath->delete_by && beneath->delete_by(ptr, by, caller);
}

static size_t builtin_usable(void *ptr)
{
	return beneath_builtin()->usable(ptr);
}

const struct policy policy_builtin = {
	.name = "builtin",
	.malloc = builtin_malloc,
	.calloc = builtin_calloc,
	.realloc = builtin_realloc,
	.free = builtin_free,
	.aligned = builtin_aligned,
	.delete_by = builtin_delete,
	.usable = builtin_usable,
};
