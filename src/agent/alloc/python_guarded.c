/*
 * In CPython's arenas a freed object's place is the next one's, mostly at once, and nothing can lie
 * around it. So the heap observer has the interpreter take its objects from the guarded heap, one
 * by one, as PYTHONMALLOC=malloc would: an object that was released too early is poisoned, stays
 * in quarantine, and whoever uses it shows.
 *
 * Objects that the interpreter itself keeps for the next one of their kind (floats, small tuples,
 * lists, dictionaries) do not come here when they end: they are as before.
 */
#include "agent/alloc/python_guarded.h"

#include "agent/alloc/sampled.h"
#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/guards/canary_heap.h"
#include "agent/guards/quarantine.h"

static enum log_api apis[] = {
	[PYTHON_DOMAIN_MEMORY] = LOG_API_PYTHON_MEMORY,
	[PYTHON_DOMAIN_OBJECT] = LOG_API_PYTHON_OBJECT,
};

/* No object is of no size: the interpreter is promised different addresses for those, too. */
static void *guarded_malloc(void *context, size_t size)
{
	const enum log_api *api = context;
	struct caller caller = CALLER_HERE;

	size += !size;
	if (!agent_ids_guarded())
		return real.malloc(size);
	return canary_allocate(0, size, 0, *api, caller);
}

static void *guarded_calloc(void *context, size_t count, size_t size)
{
	const enum log_api *api = context;
	struct caller caller = CALLER_HERE;
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	total += !total;
	if (!agent_ids_guarded())
		return real.calloc(1, total);
	return canary_allocate(0, total, CANARY_ZEROED, *api, caller);
}

static void *guarded_realloc(void *context, void *ptr, size_t size)
{
	const enum log_api *api = context;
	struct caller caller = CALLER_HERE;

	size += !size;
	if (ptr && canary_holds(ptr))
		return agent_ids_guarded() ? canary_realloc(ptr, size, caller)
					   : canary_realloc_blindly(ptr, size);
	if (ptr && agent_ids_guarded() && canary_could_hold(ptr))
		return canary_take_in(ptr, size, 0, *api, caller);
	if (ptr || !agent_ids_guarded())
		return real.realloc(ptr, size);
	return canary_allocate(0, size, 0, *api, caller);
}

static void guarded_free(void *context, void *ptr)
{
	const enum log_api *api = context;
	struct caller caller = CALLER_HERE;

	if (!ptr)
		return;
	if (agent_switch.ids == AGENT_IDS_SAMPLED && sample_free(ptr, *api, caller))
		return;
	if (agent_ids_guarded() && !agent_ids_slow() &&
	    quarantine_free(ptr, *api, caller.return_address, caller.frame))
		return;
	if (agent_ids_guarded())
		canary_free(ptr, LOG_BY_FREE, caller);
	else /* retired, or in a child that libc does not know of */
		canary_free_blindly(ptr);
}

bool python_guarded_is(const struct python_allocator *allocator)
{
	return allocator->malloc == guarded_malloc;
}

/* What was allocated before us went through the same real malloc only if it was libc's. Nothing
 * was: the interpreter has not begun. */
bool python_guarded_init(void)
{
	int domain;

	/* There the collector finds its objects by walking the interpreter's own heap. */
	if (real.python_unlocked)
		return false;
	for (domain = PYTHON_DOMAIN_MEMORY; domain <= PYTHON_DOMAIN_OBJECT; domain++) {
		struct python_allocator ours = {
			.context = &apis[domain],
			.malloc = guarded_malloc,
			.calloc = guarded_calloc,
			.realloc = guarded_realloc,
			.free = guarded_free,
		};

		real.python_set_allocator(domain, &ours);
	}
	return true;
}
