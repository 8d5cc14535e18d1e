#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

int compiler_device(void)
{
	const char *devices = getenv("CUDA_VISIBLE_DEVICES");
	long first = devices ? strtol(devices, NULL, 10) : 0;

	return first > 0 && first < 1024 ? (int)first : 0;
}

/* Devices differ in what they measure, so each has plans of its own. */
static uint64_t plan_key(const struct compiler *cc, const struct fusion *f, enum scheduler wanted)
{
	return fusion_hash(f) ^ ((uint64_t)cc->device << 48) ^ ((uint64_t)wanted << 40);
}

/* Takes the cached order if it still is one. */
static bool order_from_plan(const struct plan_view *cached, struct runtime *rt)
{
	const uint32_t *order = plan_view_order(cached);
	uint32_t count = cached->rec->norder;

	if (count > (uint32_t)rt->fusion->nops)
		return false;
	for (uint32_t i = 0; i < count; i++)
		rt->order[i] = (int)order[i];
	rt->norder = (int)count;
	return fusion_order_is_valid(rt->fusion, rt->order, rt->norder);
}

static void keep_in_plan(const struct runtime *rt, struct plan *plan)
{
	size_t bytes = (size_t)rt->norder * sizeof(*rt->order);

	plan->order = malloc(bytes + 1);
	if (!plan->order)
		abort();
	memcpy(plan->order, rt->order, bytes);
	plan->norder = rt->norder;
	plan->schedule = rt->schedule;
}

static int runtime_prepare(struct runtime *rt, const struct plan_view *cached,
			   enum scheduler wanted, struct diag *diag)
{
	rt->order = calloc((size_t)rt->fusion->nops + 1, sizeof(*rt->order));
	if (!rt->order)
		abort();
	if (!cached || !order_from_plan(cached, rt))
		rt->norder = fusion_order(rt->fusion, rt->order);
	printf("[RUNTIME CONSTRUCTOR] Preparing runtime order.\n");
	if (cached) {
		rt->schedule = cached->rec->schedule;
		if (schedule_fits(&rt->schedule, rt->fusion, rt->order, rt->norder, wanted))
			return 0;
	}
	return schedule_choose(rt->fusion, rt->order, rt->norder, wanted, &rt->schedule, diag);
}

int runtime_new(struct compiler *cc, struct fusion *f, enum scheduler wanted, struct runtime **ret,
		struct diag *diag)
{
	struct runtime *rt = calloc(1, sizeof(*rt));
	struct plan plan = { 0 };
	struct plan_view found, *cached;
	uint64_t key = plan_key(cc, f, wanted);
	int r;

	if (!rt)
		abort();
	rt->fusion = f;
	printf("[RUNTIME CONSTRUCTOR] Fusion %s: %d operations.\n", f->name, f->nops);
	cached = cache_find(cc->cache, key, &found) ? &found : NULL;
	printf("[RUNTIME CONSTRUCTOR] Before PreSegmenter.\n");
	r = presegmenter_run(f, cached, &plan, diag);
	if (r == 0) {
		printf("[RUNTIME CONSTRUCTOR] After PreSegmenter.\n");
		r = runtime_prepare(rt, cached, wanted, diag);
	}
	if (r == 0) {
		keep_in_plan(rt, &plan);
		cache_put(cc->cache, key, &plan);
		printf("[RUNTIME CONSTRUCTOR] Runtime ready: %u segment%s.\n",
		       rt->schedule.segments, rt->schedule.segments == 1 ? "" : "s");
		*ret = rt;
	} else {
		runtime_free(rt);
	}
	plan_deinit(&plan);
	return r;
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	fusion_free(rt->fusion);
	free(rt->order);
	free(rt);
}

void runtime_run(const struct runtime *rt, struct result *ret)
{
	eval_fusion(rt->fusion, rt->order, rt->norder, ret);
}
