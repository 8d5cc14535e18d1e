/*
 * run/chaos_draw.h and model/chaos_knobs.h: what a seed means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "in_range.h"
#include "run/chaos_draw.h"
#include "wire/plan.h"

#define SEEDS 4000u

static cpu_set_t cores_of(int first, int count)
{
	cpu_set_t cores;

	CPU_ZERO(&cores);
	for (int i = 0; i < count; i++)
		CPU_SET(first + i, &cores);
	return cores;
}

static void the_same_seed_is_the_same_draw(void **state)
{
	cpu_set_t cores = cores_of(0, 8);
	struct chaos a, b;

	for (uint64_t seed = 0; seed < 50; seed++) {
		chaos_draw(CHAOS_ALL, seed, OBSERVE_CRASH, &cores, &a);
		chaos_draw(CHAOS_ALL, seed, OBSERVE_IDS, &cores, &b);
		assert_memory_equal(&a, &b, sizeof(a));
		chaos_draw(CHAOS_ALL, seed + 1, OBSERVE_CRASH, &cores, &b);
		assert_memory_not_equal(&a, &b, sizeof(a));
	}
}

/* Part of the contract: a seed that `show` printed must mean the same in the next redhand. */
static void a_seed_keeps_its_meaning(void **state)
{
	cpu_set_t cores = cores_of(0, 4);
	struct chaos chaos;

	chaos_draw(CHAOS_ALL, 1, OBSERVE_CRASH, &cores, &chaos);
	assert_int_equal(chaos.pad_bytes, 4294);
	assert_int_equal(chaos.gap_bytes, 606208);
	assert_int_equal(chaos.heap_bytes, 2672);
	assert_int_equal(chaos.core, 2);
	assert_int_equal(chaos.hold_weight, 29);
	assert_int_equal(chaos.arm_us, 2);
}

static void a_knob_has_the_same_value_beside_any_others(void **state)
{
	cpu_set_t cores = cores_of(0, 8);
	struct chaos all, one;

	for (uint64_t seed = 0; seed < 50; seed++) {
		chaos_draw(CHAOS_ALL, seed, OBSERVE_CRASH, &cores, &all);
		chaos_draw(CHAOS_PIN, seed, OBSERVE_CRASH, &cores, &one);
		assert_int_equal(one.core, all.core);
		assert_true(one.pad_bytes == 0 && one.gap_bytes == 0 && one.heap_bytes == 0 &&
			    one.hold_weight == 0 && one.arm_us == 0);
		chaos_draw(CHAOS_STARVE | CHAOS_PAD, seed, OBSERVE_CRASH, &cores, &one);
		assert_int_equal(one.hold_weight, all.hold_weight);
		assert_int_equal(one.pad_bytes, all.pad_bytes);
		assert_int_equal(one.core, -1);
	}
}

static void draws_stay_in_their_ranges_and_use_them(void **state)
{
	cpu_set_t cores = cores_of(3, 4);
	uint64_t pad_most = 0, gap_least = UINT64_MAX, gap_most = 0;
	unsigned int unpinned = 0, pinned[8] = { 0 }, weak = 0;
	struct chaos chaos;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		chaos_draw(CHAOS_ALL, seed, OBSERVE_CRASH, &cores, &chaos);
		assert_uint_in_range(chaos.pad_bytes, 1, 8192);
		assert_uint_in_range(chaos.gap_bytes, 4096, 64u << 20);
		assert_int_equal(chaos.gap_bytes % 4096, 0);
		assert_uint_in_range(chaos.heap_bytes, 0, 4080);
		assert_int_equal(chaos.heap_bytes % 16, 0);
		assert_uint_in_range(chaos.hold_weight, 4, 128);
		assert_uint_in_range(chaos.arm_us, 1, 1000);
		pad_most = chaos.pad_bytes > pad_most ? chaos.pad_bytes : pad_most;
		gap_least = chaos.gap_bytes < gap_least ? chaos.gap_bytes : gap_least;
		gap_most = chaos.gap_bytes > gap_most ? chaos.gap_bytes : gap_most;
		weak += chaos.hold_weight < 22; /* the middle of the range, by factors */
		if (chaos.core < 0) {
			unpinned++;
		} else {
			assert_uint_in_range(chaos.core, 3, 6);
			pinned[chaos.core]++;
		}
	}
	assert_true(pad_most > 8000 && gap_least < 16384 && gap_most > 32u << 20);
	/* The seeds are fixed: these either hold or do not. */
	assert_uint_in_range(unpinned, SEEDS * 45 / 100, SEEDS * 55 / 100);
	assert_uint_in_range(weak, SEEDS * 40 / 100, SEEDS * 60 / 100);
	for (int core = 3; core < 7; core++)
		assert_uint_in_range(pinned[core], SEEDS / 10, SEEDS * 15 / 100);
}

static void without_the_agent_only_pad_and_pin_are_left(void **state)
{
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	cpu_set_t cores = cores_of(0, 2);
	struct chaos chaos;

	chaos_draw(CHAOS_ALL, 7, OBSERVE_NONE, &cores, &chaos);
	assert_int_equal(chaos.knobs, CHAOS_PAD | CHAOS_PIN);
	assert_true(chaos.gap_bytes == 0 && chaos.hold_weight == 0 && chaos.arm_us == 0);
	chaos_plan_item(&chaos, &items);
	assert_int_equal(items.len, 0);
	chaos_draw(CHAOS_STARVE, 7, OBSERVE_NONE, &cores, &chaos);
	assert_int_equal(chaos.knobs, 0);
}

static void the_plan_says_what_was_drawn(void **state)
{
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	cpu_set_t cores = cores_of(0, 2);
	struct plan_chaos item;
	struct chaos chaos;

	chaos_draw(CHAOS_ALL, 99, OBSERVE_CRASH, &cores, &chaos);
	chaos_plan_item(&chaos, &items);
	assert_int_equal(items.len, sizeof(item));
	memcpy(&item, items.data, sizeof(item));
	assert_int_equal(item.item.type, PLAN_ITEM_CHAOS);
	assert_int_equal(item.seed, 99);
	assert_int_equal(item.gap_bytes, chaos.gap_bytes);
	assert_int_equal(item.heap_bytes, chaos.heap_bytes);
	assert_int_equal(item.hold_weight, chaos.hold_weight);
	assert_int_equal(item.hold_share, 5);
	assert_int_equal(item.arm_us, chaos.arm_us);
}

static void the_padding_is_as_long_as_drawn(void **state)
{
	AUTO(strv_deinit) struct strv env = { 0 };
	struct chaos chaos = { .knobs = CHAOS_PAD, .pad_bytes = 321, .core = -1 };

	chaos_environment(&chaos, &env);
	assert_int_equal(env.count, 1);
	assert_int_equal(strlen(env.items[0]), strlen(CHAOS_PAD_VARIABLE "=") + 321);
}

static void pinning_is_taken_back(void **state)
{
	cpu_set_t before, saved, now;
	struct chaos chaos = { .knobs = CHAOS_PIN, .core = -1 };

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int core = 0; chaos.core < 0; core++)
		if (CPU_ISSET(core, &before))
			chaos.core = core;
	chaos_pin(&chaos, &saved);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_true(CPU_ISSET(chaos.core, &now));
	chaos_unpin(&chaos, &saved);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

static void knobs_are_read_and_written(void **state)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	struct err err = { 0 };
	unsigned int knobs = 0;

	assert_int_equal(chaos_parse("all", &knobs, &err), 0);
	assert_int_equal(knobs, CHAOS_ALL);
	assert_int_equal(chaos_parse("none", &knobs, &err), 0);
	assert_int_equal(knobs, 0);
	assert_int_equal(chaos_parse("arm,pad", &knobs, &err), 0);
	assert_int_equal(knobs, CHAOS_ARM | CHAOS_PAD);
	chaos_list(knobs, &text);
	assert_string_equal(strbuf_str(&text), "pad,arm");
	assert_int_equal(chaos_parse("pad,,pin", &knobs, &err), -EINVAL);
	assert_int_equal(chaos_parse("", &knobs, &err), -EINVAL);
	assert_int_equal(chaos_parse("all,pin", &knobs, &err), -EINVAL);
	assert_int_equal(chaos_parse("noise", &knobs, NULL), -EINVAL);
	assert_int_equal(knobs, CHAOS_ARM | CHAOS_PAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_is_the_same_draw),
		cmocka_unit_test(a_seed_keeps_its_meaning),
		cmocka_unit_test(a_knob_has_the_same_value_beside_any_others),
		cmocka_unit_test(draws_stay_in_their_ranges_and_use_them),
		cmocka_unit_test(without_the_agent_only_pad_and_pin_are_left),
		cmocka_unit_test(the_plan_says_what_was_drawn),
		cmocka_unit_test(the_padding_is_as_long_as_drawn),
		cmocka_unit_test(pinning_is_taken_back),
		cmocka_unit_test(knobs_are_read_and_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
