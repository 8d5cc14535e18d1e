#include "agent/alloc/hooks_python.h"

#include <stddef.h>

#include "agent/alloc/python_guarded.h"
#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/core/log.h"
#include "agent/core/real.h"
#include "agent/guards/canary.h"
#include "agent/ids/blocks.h"
#include "agent/pages/pages.h"

/* What stood there before; `context` of our wrapper points to one of these. */
struct python_domain {
	struct python_allocator behind;
	enum log_api api;
};

static struct python_allocator raw; /* malloc itself, as the interpreter calls it */
static struct python_domain memory = { .api = LOG_API_PYTHON_MEMORY };
static struct python_domain object = { .api = LOG_API_PYTHON_OBJECT };

static inline bool followed(void)
{
	return likely(agent_switch.ids != AGENT_IDS_OFF);
}

static inline __attribute__((always_inline)) void *begun(void *ptr, size_t size, enum log_api api,
							 struct caller caller)
{
	if (unlikely(!ptr || !followed()))
		return ptr;
	if (unlikely(agent_ids_slow()))
		return block_begin_slow(ptr, size, BLOCKS_SUB, api, (const uint64_t *)caller.frame);
	return block_begin(BLOCKS_SUB, BLOCKS_SHIFT, ptr, size, api, caller);
}

/* True: nothing is left to do. */
static inline __attribute__((always_inline)) bool ended(void *ptr, struct caller caller)
{
	return !ptr || !followed() ||
	       (!agent_ids_slow() && block_end(BLOCKS_SUB, BLOCKS_SHIFT, ptr, caller));
}

/* Where objects may be watched on pages. Reached by a jump, so its caller is the hook's. */
static __attribute__((noinline)) void *domain_place(void *context, size_t count, size_t size)
{
	struct caller caller = CALLER_BARE;
	struct python_domain *domain = context;
	bool zeroed = count > 0; /* 0: not an array, and not cleared */
	size_t total = size;
	void *ptr = NULL;

	if (zeroed && __builtin_mul_overflow(count, size, &total))
		return NULL;
	if (followed() && domain->api == LOG_API_PYTHON_OBJECT)
		ptr = pages_allocate_python(total, zeroed, caller);
	if (ptr)
		return ptr;
	ptr = zeroed ? domain->behind.calloc(domain->behind.context, count, size)
		     : domain->behind.malloc(domain->behind.context, size);
	return begun(ptr, total, domain->api, caller);
}

static void *domain_malloc(void *context, size_t size)
{
	if (unlikely(pages.bytes))
		return domain_place(context, 0, size);
	struct caller caller = CALLER_BARE;
	struct python_domain *domain = context;
	void *ptr = domain->behind.malloc(domain->behind.context, size);

	return begun(ptr, size, domain->api, caller);
}

static void *domain_calloc(void *context, size_t count, size_t size)
{
	if (unlikely(pages.bytes) && count > 0)
		return domain_place(context, count, size);
	struct caller caller = CALLER_BARE;
	struct python_domain *domain = context;
	void *ptr = domain->behind.calloc(domain->behind.context, count, size);

	return begun(ptr, count * size, domain->api, caller);
}

/* It leaves the watched pages. */
static void *moved_out(struct python_domain *domain, void *ptr, size_t size, struct caller caller)
{
	size_t kept = pages_usable(ptr);
	void *moved = domain->behind.malloc(domain->behind.context, size);

	if (!moved)
		return NULL;
	__builtin_memcpy(moved, ptr, kept < size ? kept : size);
	pages_free(ptr, caller);
	return begun(moved, size, domain->api, caller);
}

/* The interpreter's lock is held: nobody takes the old place between our end and our begin. A
 * resized object gets a new id, also when it stays where it is. */
static void *domain_realloc(void *context, void *ptr, size_t size)
{
	struct caller caller = CALLER_BARE;
	struct python_domain *domain = context;
	void *moved;

	if (unlikely(pages_hold((uint64_t)ptr)))
		return moved_out(domain, ptr, size, caller);
	if (!ended(ptr, caller))
		block_end_slow(ptr, BLOCKS_SUB, (const uint64_t *)caller.frame);
	moved = domain->behind.realloc(domain->behind.context, ptr, size);
	if (unlikely(!moved && ptr)) { /* failed: it lives on; its entry still has the size */
		struct block old;
		bool known = block_look_sigsafe(BLOCKS_SUB, (uint64_t)ptr, &old);

		(void)begun(ptr, known ? block_size(&old) : 0, domain->api, caller);
		return moved;
	}
	return begun(moved, size, domain->api, caller);
}

/* What lies on watched pages is no object of this space. */
static void domain_free(void *context, void *ptr)
{
	struct caller caller = CALLER_BARE;
	struct python_domain *domain = context;

	if (unlikely(pages_hold((uint64_t)ptr))) {
		pages_free(ptr, caller);
		return;
	}
	if (!ended(ptr, caller))
		block_end_slow(ptr, BLOCKS_SUB, (const uint64_t *)caller.frame);
	domain->behind.free(domain->behind.context, ptr);
}

static void domain_wrap(struct python_domain *domain, int number)
{
	struct python_allocator ours = {
		.context = domain,
		.malloc = domain_malloc,
		.calloc = domain_calloc,
		.realloc = domain_realloc,
		.free = domain_free,
	};

	real.python_get_allocator(number, &domain->behind);
	if (domain->behind.malloc && domain->behind.free)
		real.python_set_allocator(number, &ours);
}

static void domains_take(void)
{
	if (canary.python && python_guarded_init())
		return;
	domain_wrap(&memory, PYTHON_DOMAIN_MEMORY);
	domain_wrap(&object, PYTHON_DOMAIN_OBJECT);
}

void python_init(void)
{
	if (!(agent.plan.flags & PLAN_PYTHON) || (agent.plan.flags & PLAN_NO_BLOCKS) ||
	    !real.python_get_allocator || !real.python_set_allocator)
		return;
	real.python_get_allocator(PYTHON_DOMAIN_RAW, &raw);
	domains_take();
	blocks_state.unsettled = true;
}

void python_settle(struct guard *guard, uint32_t api)
{
	struct python_allocator now;

	(void)guard;
	blocks_state.unsettled = api != LOG_API_PYTHON_OBJECT && log_map.header->threads_seen == 1;
	if (!blocks_state.unsettled)
		return;
	real.python_get_allocator(PYTHON_DOMAIN_OBJECT, &now);
	if (now.malloc == domain_malloc || python_guarded_is(&now))
		return;
	blocks_state.unsettled = false;
	if (now.malloc != raw.malloc)
		domains_take();
}
