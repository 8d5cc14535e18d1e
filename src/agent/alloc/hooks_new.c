/*
 * operator new and delete, by their Itanium ABI names.
 *
 * The C++ library's own operator new calls malloc, whose hook has noted the block by the time we
 * see it: we only mark it as made by new. What another operator new (an allocator's) takes from
 * elsewhere is noted here, what it takes from malloc stays malloc's. No guard is held across the
 * real call, which may throw; the file is compiled with -fexceptions so that it can pass through.
 *
 * A program that brings C++ by dlopen binds to these hooks although nothing stood behind them at
 * start: malloc then does the work, and when it fails the late library is looked up to throw.
 */
#include <malloc.h>
#include <stdlib.h>

#include "agent/alloc/builtin_malloc.h"
#include "agent/alloc/policy.h"
#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/core/real.h"
#include "agent/core/thread.h"
#include "agent/fence/fence.h"
#include "agent/ids/blocks.h"

/* Where the program's malloc goes past us, so do its frees: blocks would never end. Inside one of
 * its functions, what becomes of the block is noted there. */
static inline __attribute__((always_inline)) bool unseen(void)
{
	return unlikely(real.past_us) && (!builtin_replaced || builtin_nested());
}

static inline __attribute__((always_inline)) void *claimed(void *ptr, size_t size, enum log_api api,
							   struct caller caller)
{
	struct guard guard;

	if (ptr && !unseen() && guard_enter(&guard)) {
		block_claim(&guard, (uint64_t)ptr, size, api, caller);
		guard_leave(&guard);
	}
	return ptr;
}

/* One delete often calls another, which comes here, too.
 *
 * What malloc's hook noted, free's hook ends: in this delete, or when whoever it was made by gives
 * it back to malloc, or never. Only where operator new took the block from elsewhere, it ends here.
 */
static inline __attribute__((always_inline)) void deleted(void *ptr, struct caller caller)
{
	struct guard guard;

	if (ptr && real.delete_plain && !real.plain_new && !unseen() && guard_enter(&guard)) {
		if (guard.self->calls.deleting != (uint64_t)ptr && block_claimed((uint64_t)ptr))
			block_end_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, caller);
		guard.self->calls.deleting = (uint64_t)ptr;
		guard_leave(&guard);
	}
}

static inline __attribute__((always_inline)) void deleted_now(void)
{
	if (!real.plain_new && thread_self)
		thread_self->calls.deleting = 0;
}

/* Where it matters what kind of delete it is (policy.h). False: go on as ever. */
static inline __attribute__((always_inline)) bool told(void *ptr, enum log_free_by by,
						       const struct caller *caller)
{
	const struct policy *policy = agent_switch.policy;

	return unlikely(policy && policy->delete_by) && ptr && !early_owns(ptr) && real.plain_new &&
	       policy->delete_by(ptr, by, caller);
}

static void *late_new(size_t size, size_t align)
{
	void *ptr = align ? memalign(align, size ? size : 1) : malloc(size ? size : 1);

	if (ptr)
		return ptr;
	real_resolve_new();
	return real.new_plain ? real.new_plain(size) : NULL;
}

#define NEW_HOOKS(X)                                                                               \
	X(_Znwm, new_plain, LOG_API_NEW, (size_t size), (size), 0)                                 \
	X(_Znam, new_array, LOG_API_NEW_ARRAY, (size_t size), (size), 0)                           \
	X(_ZnwmRKSt9nothrow_t, new_nothrow, LOG_API_NEW, (size_t size, const void *tag),           \
	  (size, tag), 0)                                                                          \
	X(_ZnamRKSt9nothrow_t, new_array_nothrow, LOG_API_NEW_ARRAY,                               \
	  (size_t size, const void *tag), (size, tag), 0)                                          \
	X(_ZnwmSt11align_val_t, new_aligned, LOG_API_NEW, (size_t size, size_t align),             \
	  (size, align), align)                                                                    \
	X(_ZnamSt11align_val_t, new_array_aligned, LOG_API_NEW_ARRAY, (size_t size, size_t align), \
	  (size, align), align)                                                                    \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t, new_aligned_nothrow, LOG_API_NEW,                    \
	  (size_t size, size_t align, const void *tag), (size, align, tag), align)                 \
	X(_ZnamSt11align_val_tRKSt9nothrow_t, new_array_aligned_nothrow, LOG_API_NEW_ARRAY,        \
	  (size_t size, size_t align, const void *tag), (size, align, tag), align)

#define NEW_HOOK(name, field, api, parameters, arguments, align)                       \
	EXPORT void *name parameters;                                                  \
	EXPORT void *name parameters                                                   \
	{                                                                              \
		struct caller caller = CALLER_HERE;                                    \
		fence_expect_new();                                                    \
		void *ptr = real.field ? real.field arguments : late_new(size, align); \
                                                                                       \
		return claimed(ptr, size, api, caller);                                \
	}

NEW_HOOKS(NEW_HOOK)

#define DELETE_HOOKS(X)                                                                            \
	X(_ZdlPv, delete_plain, LOG_BY_DELETE, (void *ptr), (ptr))                                 \
	X(_ZdaPv, delete_array, LOG_BY_DELETE_ARRAY, (void *ptr), (ptr))                           \
	X(_ZdlPvm, delete_sized, LOG_BY_DELETE, (void *ptr, size_t size), (ptr, size))             \
	X(_ZdaPvm, delete_array_sized, LOG_BY_DELETE_ARRAY, (void *ptr, size_t size), (ptr, size)) \
	X(_ZdlPvRKSt9nothrow_t, delete_nothrow, LOG_BY_DELETE, (void *ptr, const void *tag),       \
	  (ptr, tag))                                                                              \
	X(_ZdaPvRKSt9nothrow_t, delete_array_nothrow, LOG_BY_DELETE_ARRAY,                         \
	  (void *ptr, const void *tag), (ptr, tag))                                                \
	X(_ZdlPvSt11align_val_t, delete_aligned, LOG_BY_DELETE, (void *ptr, size_t align),         \
	  (ptr, align))                                                                            \
	X(_ZdaPvSt11align_val_t, delete_array_aligned, LOG_BY_DELETE_ARRAY,                        \
	  (void *ptr, size_t align), (ptr, align))                                                 \
	X(_ZdlPvmSt11align_val_t, delete_sized_aligned, LOG_BY_DELETE,                             \
	  (void *ptr, size_t size, size_t align), (ptr, size, align))                              \
	X(_ZdaPvmSt11align_val_t, delete_array_sized_aligned, LOG_BY_DELETE_ARRAY,                 \
	  (void *ptr, size_t size, size_t align), (ptr, size, align))                              \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t, delete_aligned_nothrow, LOG_BY_DELETE,              \
	  (void *ptr, size_t align, const void *tag), (ptr, align, tag))                           \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t, delete_array_aligned_nothrow, LOG_BY_DELETE_ARRAY,  \
	  (void *ptr, size_t align, const void *tag), (ptr, align, tag))

#define DELETE_HOOK(name, field, by, parameters, arguments) \
	EXPORT void name parameters;                        \
	EXPORT void name parameters                         \
	{                                                   \
		struct caller caller = CALLER_HERE;         \
                                                            \
		if (told(ptr, by, &caller))                 \
			return;                             \
		deleted(ptr, caller);                       \
		if (real.field)                             \
			real.field arguments;               \
		else if (real.delete_plain)                 \
			real.delete_plain(ptr);             \
		else                                        \
			free(ptr);                          \
		deleted_now();                              \
	}

DELETE_HOOKS(DELETE_HOOK)
