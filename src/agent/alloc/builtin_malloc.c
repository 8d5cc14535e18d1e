#include "agent/alloc/builtin_malloc.h"

#include "agent/core/guard.h"
#include "agent/core/real.h"
#include "agent/hooks/hooked_limits.h"
#include "agent/ids/blocks.h"
#include "agent/ids/context.h"
#include "agent/pages/pages.h"

static uint64_t originals[PLAN_OWN_FUNCTIONS];

struct real builtin_behind;

#define ORIGINAL(number, ret, ...) ((ret(*)(__VA_ARGS__))originals[number])

#define REAL(name, number, ret, parameters, types, arguments)        \
	static ret real_##name parameters                            \
	{                                                            \
		uint64_t outer = builtin_inside;                     \
		ret result;                                          \
                                                                     \
		builtin_inside = (uint64_t)__builtin_dwarf_cfa();    \
		result = ((ret(*) types)originals[number])arguments; \
		builtin_inside = outer;                              \
		return result;                                       \
	}

REAL(malloc, PLAN_OWN_MALLOC, void *, (size_t size), (size_t), (size))
REAL(calloc, PLAN_OWN_CALLOC, void *, (size_t count, size_t size), (size_t, size_t), (count, size))
REAL(realloc, PLAN_OWN_REALLOC, void *, (void *ptr, size_t size), (void *, size_t), (ptr, size))
REAL(memalign, PLAN_OWN_MEMALIGN, void *, (size_t align, size_t size), (size_t, size_t),
     (align, size))
REAL(aligned_alloc, PLAN_OWN_ALIGNED_ALLOC, void *, (size_t align, size_t size), (size_t, size_t),
     (align, size))
REAL(posix_memalign, PLAN_OWN_POSIX_MEMALIGN, int, (void **ret, size_t align, size_t size),
     (void **, size_t, size_t), (ret, align, size))
REAL(valloc, PLAN_OWN_VALLOC, void *, (size_t size), (size_t), (size))
REAL(pvalloc, PLAN_OWN_PVALLOC, void *, (size_t size), (size_t), (size))

static void real_free(void *ptr)
{
	uint64_t outer = builtin_inside;

	builtin_inside = (uint64_t)__builtin_dwarf_cfa();
	ORIGINAL(PLAN_OWN_FREE, void, void *)(ptr);
	builtin_inside = outer;
}

/* Patched entries lead here by a jump, so the hook sees the caller of the function itself. */
#define GATE(name, number, ret, parameters, types, arguments)              \
	static ret gate_##name parameters                                  \
	{                                                                  \
		if (unlikely(builtin_nested()))                            \
			return ((ret(*) types)originals[number])arguments; \
		return hook_##name arguments;                              \
	}

/* Blocks are followed and nothing else: no detour over the hook, which would find that out. */
static inline __attribute__((always_inline)) bool short_way(void)
{
	return likely(agent_switch.ids == AGENT_IDS_OTHER && !agent_switch.chaos && !pages.bytes);
}

static void *gate_malloc(size_t size)
{
	void *ptr;

	if (unlikely(builtin_nested()))
		return ORIGINAL(PLAN_OWN_MALLOC, void *, size_t)(size);
	if (!short_way())
		return hook_malloc(size);
	builtin_inside = (uint64_t)__builtin_dwarf_cfa();
	ptr = ORIGINAL(PLAN_OWN_MALLOC, void *, size_t)(size);
	builtin_inside = 0;
	struct caller caller = CALLER_BARE;
	return block_begin(BLOCKS_HEAP, BLOCKS_SHIFT, ptr, size, LOG_API_MALLOC, caller);
}

static void gate_free(void *ptr)
{
	struct caller caller = CALLER_BARE;

	if (unlikely(builtin_nested())) {
		ORIGINAL(PLAN_OWN_FREE, void, void *)(ptr);
	} else if (short_way() && likely(block_end(BLOCKS_HEAP, BLOCKS_SHIFT, ptr, caller))) {
		builtin_inside = (uint64_t)__builtin_dwarf_cfa();
		ORIGINAL(PLAN_OWN_FREE, void, void *)(ptr);
		builtin_inside = 0;
	} else {
		hook_free(ptr);
	}
}

GATE(calloc, PLAN_OWN_CALLOC, void *, (size_t count, size_t size), (size_t, size_t), (count, size))
GATE(realloc, PLAN_OWN_REALLOC, void *, (void *ptr, size_t size), (void *, size_t), (ptr, size))
GATE(reallocarray, PLAN_OWN_REALLOCARRAY, void *, (void *ptr, size_t count, size_t size),
     (void *, size_t, size_t), (ptr, count, size))
GATE(memalign, PLAN_OWN_MEMALIGN, void *, (size_t align, size_t size), (size_t, size_t),
     (align, size))
GATE(aligned_alloc, PLAN_OWN_ALIGNED_ALLOC, void *, (size_t align, size_t size), (size_t, size_t),
     (align, size))
GATE(posix_memalign, PLAN_OWN_POSIX_MEMALIGN, int, (void **ret, size_t align, size_t size),
     (void **, size_t, size_t), (ret, align, size))
GATE(valloc, PLAN_OWN_VALLOC, void *, (size_t size), (size_t), (size))
GATE(pvalloc, PLAN_OWN_PVALLOC, void *, (size_t size), (size_t), (size))

/* What the function made by a call of another one has its life already; everything that this thread
 * has noted since `first` came from there. */
static __attribute__((noinline)) void *claim(void *ptr, size_t size, enum log_api api,
					     uint64_t first, const uint64_t *frame)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);

	if (block && block->state == LOG_BLOCK_LIVE && block->id >= first &&
	    block->lane == thread_hot->blocks.lane_tag) {
		block->api = (uint8_t)((block->api & ~BLOCK_API_MASK) | api);
		return ptr;
	}
	return block_begin_slow(ptr, size, BLOCKS_HEAP, api, frame);
}

static inline __attribute__((always_inline)) void *taken(void *ptr, size_t size, enum log_api api,
							 uint64_t first, struct caller caller)
{
	if (unlikely(!ptr || !agent_switch.ids))
		return ptr;
	if (unlikely(agent_ids_slow() || thread_hot->fast.next_id != first))
		return claim(ptr, size, api, first, (const uint64_t *)caller.frame);
	return block_begin(BLOCKS_HEAP, BLOCKS_SHIFT, ptr, size, api, caller);
}

static inline __attribute__((always_inline)) void given(void *ptr, struct caller caller)
{
	if (unlikely(!ptr || !agent_switch.ids))
		return;
	if (unlikely(agent_ids_slow() || !block_end(BLOCKS_HEAP, BLOCKS_SHIFT, ptr, caller)))
		block_end_slow(ptr, BLOCKS_HEAP, (const uint64_t *)caller.frame);
}

/* No longer than operator new itself: it may throw. */
#define TAKE(number, api)                                                                     \
	static void *gate_take_##number(size_t size, size_t second, size_t third)             \
	{                                                                                     \
		uint64_t first = thread_hot->fast.next_id;                                    \
		void *ptr;                                                                    \
                                                                                              \
		if (unlikely(builtin_nested()))                                               \
			return ORIGINAL(number, void *, size_t, size_t, size_t)(size, second, \
										third);       \
		ptr = ORIGINAL(number, void *, size_t, size_t, size_t)(size, second, third);  \
		struct caller caller = CALLER_BARE;                                           \
		return taken(ptr, size, api, first, caller);                                  \
	}

#define GIVE(number)                                                                        \
	static void gate_give_##number(void *ptr, size_t second, size_t third)              \
	{                                                                                   \
		struct caller caller = CALLER_BARE;                                         \
		uint64_t outer;                                                             \
                                                                                            \
		if (unlikely(builtin_nested())) {                                           \
			ORIGINAL(number, void, void *, size_t, size_t)(ptr, second, third); \
			return;                                                             \
		}                                                                           \
		given(ptr, caller);                                                         \
		outer = builtin_inside;                                                     \
		builtin_inside = (uint64_t)__builtin_dwarf_cfa();                           \
		ORIGINAL(number, void, void *, size_t, size_t)(ptr, second, third);         \
		builtin_inside = outer;                                                     \
	}

#define TAKES(X)                 \
	X(11, LOG_API_MALLOC)    \
	X(12, LOG_API_NEW)       \
	X(13, LOG_API_NEW)       \
	X(14, LOG_API_NEW)       \
	X(15, LOG_API_NEW)       \
	X(16, LOG_API_NEW_ARRAY) \
	X(17, LOG_API_NEW_ARRAY) \
	X(18, LOG_API_NEW_ARRAY) \
	X(19, LOG_API_NEW_ARRAY)

#define GIVES(X) \
	X(20)    \
	X(21)    \
	X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36)

_Static_assert(PLAN_OWN_MALLOCX == 11 && PLAN_OWN_NEW == 12 && PLAN_OWN_NEW_ARRAY == 16 &&
		       PLAN_OWN_GIVE == HOOKED_OWN_GIVE && HOOKED_OWN_GIVE == 20 &&
		       PLAN_OWN_FREE == HOOKED_OWN_FREE && PLAN_OWN_FUNCTIONS == 37,
	       "numbers of the plan");

TAKES(TAKE)
GIVES(GIVE)

/* When it failed, the old block lives on, under a new id. */
static void *gate_rallocx(void *ptr, size_t size, int flags)
{
	struct caller caller = CALLER_BARE;
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);
	uint64_t old = block && block->state == LOG_BLOCK_LIVE ? block_size(block) : 0, outer,
		 first;
	void *moved;

	if (unlikely(builtin_nested()))
		return ORIGINAL(PLAN_OWN_RALLOCX, void *, void *, size_t, int)(ptr, size, flags);
	given(ptr, caller);
	outer = builtin_inside;
	builtin_inside = (uint64_t)__builtin_dwarf_cfa();
	moved = ORIGINAL(PLAN_OWN_RALLOCX, void *, void *, size_t, int)(ptr, size, flags);
	builtin_inside = outer;
	first = thread_hot->fast.next_id;
	if (!moved && old)
		(void)taken(ptr, old, LOG_API_MALLOC, first, caller);
	return taken(moved, size, LOG_API_MALLOC, first, caller);
}

#define GATE_AT(number, gate) [number] = (const void *)(gate)
#define TAKE_AT(number, api) GATE_AT(number, gate_take_##number),
#define GIVE_AT(number) GATE_AT(number, gate_give_##number),

/* For the assembly, too. */
extern HIDDEN const void *const builtin_gates[PLAN_OWN_FUNCTIONS];

const void *const builtin_gates[PLAN_OWN_FUNCTIONS] = {
	GATE_AT(PLAN_OWN_MALLOC, gate_malloc),
	GATE_AT(PLAN_OWN_FREE, gate_free),
	GATE_AT(PLAN_OWN_CALLOC, gate_calloc),
	GATE_AT(PLAN_OWN_REALLOC, gate_realloc),
	GATE_AT(PLAN_OWN_REALLOCARRAY, gate_reallocarray),
	GATE_AT(PLAN_OWN_MEMALIGN, gate_memalign),
	GATE_AT(PLAN_OWN_ALIGNED_ALLOC, gate_aligned_alloc),
	GATE_AT(PLAN_OWN_POSIX_MEMALIGN, gate_posix_memalign),
	GATE_AT(PLAN_OWN_VALLOC, gate_valloc),
	GATE_AT(PLAN_OWN_PVALLOC, gate_pvalloc),
	GATE_AT(PLAN_OWN_RALLOCX, gate_rallocx),
	TAKES(TAKE_AT) GIVES(GIVE_AT)
};

uint64_t builtin_gate(uint32_t number)
{
	return number < PLAN_OWN_FUNCTIONS ? (uint64_t)builtin_gates[number] : 0;
}

void builtin_bind(uint32_t number, uint64_t original)
{
	originals[number] = original;
}

void builtin_take_over(void)
{
	builtin_behind = real;
	real.malloc = real_malloc;
	real.free = real_free;
#define TAKE_OVER(name, number) \
	if (originals[number])  \
	real.name = real_##name
	TAKE_OVER(calloc, PLAN_OWN_CALLOC);
	TAKE_OVER(realloc, PLAN_OWN_REALLOC);
	TAKE_OVER(memalign, PLAN_OWN_MEMALIGN);
	TAKE_OVER(aligned_alloc, PLAN_OWN_ALIGNED_ALLOC);
	TAKE_OVER(posix_memalign, PLAN_OWN_POSIX_MEMALIGN);
	TAKE_OVER(valloc, PLAN_OWN_VALLOC);
	TAKE_OVER(pvalloc, PLAN_OWN_PVALLOC);
#undef TAKE_OVER
	builtin_replaced = true;
}
