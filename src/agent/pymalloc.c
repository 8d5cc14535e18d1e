#include "agent/pymalloc.h"

#include "agent/blocks.h"
#include "agent/canary.h"
#include "agent/grid.h"
#include "agent/log.h"
#include "agent/memory.h"
#include "agent/python.h"
#include "agent/real.h"
#include "agent/watch.h"

#define ENOUGH 64u     /* of each kind, all of them as foreseen */
#define PATIENCE 8192u /* calls until then */
#define RING_STEPS 64u
#define KINDS (PYMALLOC_LARGEST / PYMALLOC_ALIGN)
#define OWN_POOLS 0x030c0000u /* of each interpreter, from 3.12 on: Py_Version */

_Static_assert(sizeof(struct pymalloc_pool) == 48, "as obmalloc.c has it, since 3.10");

uint32_t pymalloc_watching;

static struct {
	struct pymalloc_ring *rings; /* likely */
	uint32_t calls, lists, fresh, gives;
	bool trusted;
} seen;

/* For whoever reads the log. */
static void tell(enum log_trust trust)
{
	agent.python_pools = trust;
	if (log_map.header)
		log_map.header->python_pools = trust;
}

/* What was watched is left alone from here on, or used. */
static void decide(enum log_trust trust)
{
	pymalloc_watching = 0;
	tell(trust);
}

void pymalloc_init(void)
{
	bool own = real.python_version && *real.python_version >> 8 >= OWN_POOLS >> 8;

	pymalloc_watching = !own && !real.python_unlocked && blocks_hot() && !watch_state.area &&
			    !canary.planned && grid_init();
	if (pymalloc_watching)
		tell(LOG_TRUST_WATCHED);
}

/* Where the ring of this object's pool begins: the one place in it that no pool begins at. */
static void find_rings(const void *ptr, size_t size)
{
	uint64_t kind = (size - 1) / PYMALLOC_ALIGN, at = (uint64_t)pymalloc_pool_of(ptr);
	struct pymalloc_pool pool;
	unsigned i;

	for (i = 0; i < RING_STEPS; i++) {
		if (memory_read_sigsafe(&pool, at, sizeof(pool)) != sizeof(pool))
			return;
		if (at % PYMALLOC_POOL) {
			at += offsetof(struct pymalloc_pool, around);
			if (at % 8 == 0)
				seen.rings = (struct pymalloc_ring *)at - kind;
			return;
		}
		if (pool.kind != kind || !pool.count)
			return;
		at = pool.around[0];
	}
}

void pymalloc_resume(void)
{
	agent_switch.pymalloc = seen.trusted ? seen.rings : NULL;
}

static void settle(bool as_foreseen, uint32_t *count)
{
	if (!as_foreseen) {
		decide(LOG_TRUST_LEFT);
		return;
	}
	++*count;
	if (seen.lists < ENOUGH || seen.fresh < ENOUGH || seen.gives < ENOUGH)
		return;
	seen.trusted = true;
	pymalloc_resume();
	decide(LOG_TRUST_USED);
}

void *pymalloc_malloc_watched(pymalloc_malloc *real_malloc, void *context, size_t size)
{
	uint64_t kind = (size - 1) / PYMALLOC_ALIGN, *block, next;
	struct pymalloc_pool *pool, was;
	uint32_t fresh;
	void *ptr;

	if (python_unsettled) /* it may still choose another */
		return real_malloc(context, size);
	if (++seen.calls > PATIENCE)
		decide(LOG_TRUST_LEFT);
	if (!seen.rings || size - 1 >= PYMALLOC_LARGEST || pymalloc_is_empty(&seen.rings[kind])) {
		ptr = real_malloc(context, size);
		if (ptr && !seen.rings && size - 1 < PYMALLOC_LARGEST)
			find_rings(ptr, size);
		return ptr;
	}
	pool = seen.rings[kind].next;
	if (memory_read_sigsafe(&was, (uint64_t)pool, sizeof(was)) != sizeof(was) ||
	    memory_read_sigsafe(&next, (uint64_t)was.free, sizeof(next)) != sizeof(next)) {
		decide(LOG_TRUST_LEFT);
		return real_malloc(context, size);
	}
	block = was.free;
	fresh = was.fresh;
	if (!next && was.fresh > was.last)
		return real_malloc(context, size);
	if (!next) {
		next = (uint64_t)pool + fresh;
		fresh += (uint32_t)(kind + 1) * PYMALLOC_ALIGN;
	}
	ptr = real_malloc(context, size);
	settle(ptr == block && pool->free == (uint64_t *)next && pool->fresh == fresh &&
		       pool->count == was.count + 1 && pool->kind == kind &&
		       pymalloc_pool_of(ptr) == pool &&
		       (fresh == was.fresh || *(uint64_t *)next == 0),
	       fresh == was.fresh ? &seen.lists : &seen.fresh);
	return ptr;
}

/* Is it one of those that have room? */
static bool ring_has(const struct pymalloc_pool *pool, uint64_t kind)
{
	const struct pymalloc_pool *at = seen.rings[kind].next;
	unsigned i;

	for (i = 0; i < RING_STEPS && (uint64_t)at % PYMALLOC_POOL == 0; i++) {
		if (at == pool)
			return true;
		at = (const struct pymalloc_pool *)at->around[0];
	}
	return false;
}

void pymalloc_free_watched(pymalloc_free *real_free, void *context, void *ptr)
{
	struct pymalloc_pool *pool = pymalloc_pool_of(ptr), was;

	if (!seen.rings || memory_read_sigsafe(&was, (uint64_t)pool, sizeof(was)) != sizeof(was) ||
	    was.kind >= KINDS || !was.free || was.count <= 1 || !ring_has(pool, was.kind)) {
		real_free(context, ptr);
		return;
	}
	real_free(context, ptr);
	settle(*(uint64_t *)ptr == (uint64_t)was.free && pool->free == ptr &&
		       pool->count == was.count - 1,
	       &seen.gives);
}
