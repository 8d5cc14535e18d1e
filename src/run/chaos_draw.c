#include "run/chaos_draw.h"

#include <string.h>

#include "search/stats/rng.h"
#include "wire/plan.h"

#define PAD_MOST 8192u	      /* two pages: any place within one, and the next */
#define GAP_PAGES_MOST 16384u /* 64 MiB */
#define HEAP_STEPS 256u	      /* of 16 bytes: any place in a page that malloc can begin at */
#define HOLD_WEIGHT_LEAST 4u  /* sixteenths */
#define HOLD_WEIGHT_MOST 128u
#define ARM_US_MOST 1000u
#define PAGE 4096u

/* low .. high, every doubling as likely as every other, and evenly within it. Whole numbers only: a
 * seed must mean the same with every libm. */
static uint64_t draw_wide(struct rng *rng, uint64_t low, uint64_t high)
{
	uint64_t octaves = 1, from, value;

	while (low << octaves <= high)
		octaves++;
	do {
		from = low << rng_below(rng, octaves);
		value = from + rng_below(rng, from);
	} while (value > high);
	return value;
}

/* The n-th core of the set. */
static int core_at(const cpu_set_t *cores, unsigned int n)
{
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, cores) && n-- == 0)
			return core;
	return -1;
}

void chaos_draw(unsigned int knobs, uint64_t seed, enum observer observer, const cpu_set_t *cores,
		struct chaos *ret)
{
	int count = CPU_COUNT(cores);
	struct rng rng;

	if (observer < OBSERVE_CRASH)
		knobs &= CHAOS_PAD | CHAOS_PIN;
	rng_init(&rng, seed);
	*ret = (struct chaos){ .knobs = knobs, .seed = seed };
	ret->pad_bytes = 1 + rng_below(&rng, PAD_MOST);
	ret->gap_bytes = PAGE * draw_wide(&rng, 1, GAP_PAGES_MOST);
	ret->heap_bytes = 16 * rng_below(&rng, HEAP_STEPS);
	ret->core =
		rng_below(&rng, 2) == 0
			? -1
			: core_at(cores,
				  (unsigned int)rng_below(&rng, count > 0 ? (uint64_t)count : 1));
	ret->hold_weight = draw_wide(&rng, HOLD_WEIGHT_LEAST, HOLD_WEIGHT_MOST);
	ret->arm_us = draw_wide(&rng, 1, ARM_US_MOST);
	if (!(knobs & CHAOS_PAD))
		ret->pad_bytes = 0;
	if (!(knobs & CHAOS_GAP))
		ret->gap_bytes = ret->heap_bytes = 0;
	if (!(knobs & CHAOS_PIN))
		ret->core = -1;
	if (!(knobs & CHAOS_STARVE))
		ret->hold_weight = 0;
	if (!(knobs & CHAOS_ARM))
		ret->arm_us = 0;
}

void chaos_plan_item(const struct chaos *chaos, struct strbuf *items)
{
	struct plan_chaos item = {
		.item = { .type = PLAN_ITEM_CHAOS, .bytes = sizeof(item) },
		.seed = chaos->seed,
		.gap_bytes = chaos->gap_bytes,
		.heap_bytes = (uint32_t)chaos->heap_bytes,
		.hold_weight = (uint32_t)chaos->hold_weight,
		.hold_share = PLAN_CHAOS_SHARE,
		.arm_us = (uint32_t)chaos->arm_us,
	};

	if (chaos->knobs & (CHAOS_GAP | CHAOS_STARVE | CHAOS_ARM))
		strbuf_add(items, &item, sizeof(item));
}

void chaos_environment(const struct chaos *chaos, struct strv *env)
{
	AUTO(mem_freep) char *padding = NULL;

	if (!(chaos->knobs & CHAOS_PAD))
		return;
	padding = mem_alloc(chaos->pad_bytes + 1);
	memset(padding, 'x', chaos->pad_bytes);
	strv_setenv(env, CHAOS_PAD_VARIABLE, padding);
}

/* A core that has been taken away meanwhile is no reason not to run. */
void chaos_pin(const struct chaos *chaos, cpu_set_t *ret_before)
{
	cpu_set_t one;

	CPU_ZERO(ret_before);
	if (chaos->knobs == 0 || chaos->core < 0)
		return;
	(void)sched_getaffinity(0, sizeof(*ret_before), ret_before);
	CPU_ZERO(&one);
	CPU_SET(chaos->core, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

void chaos_unpin(const struct chaos *chaos, const cpu_set_t *before)
{
	if (chaos->knobs != 0 && chaos->core >= 0)
		(void)sched_setaffinity(0, sizeof(*before), before);
}
