#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "in_range.h"
#include "wire/fence_turn.h"
#include "wire/guard_word.h"
#include "wire/plan.h"

static size_t sealed(struct plan_header *plan, unsigned items, void *out, size_t cap)
{
	struct plan_hook hooks[4];
	unsigned i;

	memset(hooks, 0, sizeof(hooks));
	for (i = 0; i < items; i++) {
		hooks[i].item.type = PLAN_ITEM_HOOK;
		hooks[i].item.bytes = sizeof(hooks[i]);
		hooks[i].place.offset = 0x1000 + i;
	}
	return plan_seal(plan, hooks, items * sizeof(hooks[0]), out, cap);
}

static void test_round_trip(void **state)
{
	_Alignas(8) unsigned char bytes[8192];
	const struct plan_item *item = NULL;
	struct plan_header plan, read;
	unsigned seen = 0;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	plan.ring_records = 1024;
	len = sealed(&plan, 3, bytes, sizeof(bytes));
	assert_int_equal(len, sizeof(plan) + 3 * sizeof(struct plan_hook));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	assert_int_equal(read.observer, PLAN_OBSERVE_IDS);
	assert_int_equal(read.ring_records, 1024);
	while ((item = plan_next(bytes, item)))
		assert_int_equal(((const struct plan_hook *)item)->place.offset, 0x1000 + seen++);
	assert_int_equal(seen, 3);
}

static void test_holders_are_whole(void **state)
{
	_Alignas(8) unsigned char bytes[1024];
	struct plan_holders holders = { .item = { PLAN_ITEM_HOLDERS, 0, sizeof(holders) },
					.after_lines = 7,
					.count = 1,
					.stack_hashes = { 0x1234 } };
	const struct plan_item *item;
	struct plan_header plan, read;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	len = plan_seal(&plan, &holders, sizeof(holders), bytes, sizeof(bytes));
	assert_int_equal(len, sizeof(plan) + sizeof(holders));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	item = plan_next(bytes, NULL);
	assert_non_null(item);
	assert_int_equal(((const struct plan_holders *)item)->stack_hashes[0], 0x1234);
	/* One that is too short for its type would be read beyond its end. */
	holders.item.bytes = 64;
	assert_int_equal(plan_seal(&plan, &holders, 64, bytes, sizeof(bytes)), 0);
}

static void test_chaos_is_whole(void **state)
{
	_Alignas(8) unsigned char bytes[256];
	struct plan_chaos chaos = { .item = { PLAN_ITEM_CHAOS, 0, sizeof(chaos) },
				    .seed = 1ull << 40,
				    .gap_bytes = 1ull << 33,
				    .hold_share = PLAN_CHAOS_SHARE };
	struct plan_header plan, read;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_CRASH);
	len = plan_seal(&plan, &chaos, sizeof(chaos), bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	assert_memory_equal(plan_next(bytes, NULL), &chaos, sizeof(chaos));
	chaos.item.bytes = 32;
	assert_int_equal(plan_seal(&plan, &chaos, 32, bytes, sizeof(bytes)), 0);
}

static void test_fence_is_whole(void **state)
{
	_Alignas(8) unsigned char bytes[256];
	struct plan_fence fence = { .item = { PLAN_ITEM_FENCE, PLAN_FENCE_FRONT, sizeof(fence) },
				    .turn = 7,
				    .level = 3,
				    .time_percent = 60 };
	struct plan_header plan, read;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	len = plan_seal(&plan, &fence, sizeof(fence), bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	assert_memory_equal(plan_next(bytes, NULL), &fence, sizeof(fence));
	fence.item.bytes = 16;
	assert_int_equal(plan_seal(&plan, &fence, 16, bytes, sizeof(bytes)), 0);
}

/* At level n each context has its turn exactly once in any 2^n trials one after the other. */
static void test_fence_turns(void **state)
{
	uint64_t hash = 0x9e3779b97f4a7c15ull;
	uint32_t level, first, turn, i;

	(void)state;
	for (level = 0; level <= FENCE_LEVELS; level++)
		for (first = 0; first < 300; first += 37)
			for (i = 0; i < 1000; i++) {
				unsigned taken = 0;

				hash = hash * 6364136223846793005ull + 1442695040888963407ull;
				for (turn = first; turn < first + (1u << level); turn++)
					taken += fence_turn_takes(hash, turn, level);
				assert_int_equal(taken, 1);
			}
}

static void test_heap_is_whole(void **state)
{
	_Alignas(8) unsigned char bytes[1024];
	struct plan_heap heap = { .item = { PLAN_ITEM_CANARY, 0, sizeof(heap) },
				  .seed = 99,
				  .quarantine_mib = 64,
				  .sweep_hashes = { 0x1234 } };
	const struct plan_item *item;
	struct plan_header plan, read;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	len = plan_seal(&plan, &heap, sizeof(heap), bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	item = plan_next(bytes, NULL);
	assert_non_null(item);
	assert_int_equal(((const struct plan_heap *)item)->seed, 99);
	heap.item.bytes = 64;
	assert_int_equal(plan_seal(&plan, &heap, 64, bytes, sizeof(bytes)), 0);
}

/* Every guard and every poison names its block, and no other seed's or kind's word does. */
static void test_canary_words(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull, start, found;
	unsigned i, k, chosen = 0;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint64_t word;

		start = (seed * (i + 1)) >> 17 & ~15ull;
		word = canary_word(seed + i, start, CANARY_POISON);
		assert_true(canary_poison_of(canary_word(seed + i, start, CANARY_GUARD)) == word);
		for (k = 0; k < 8; k++)
			assert_uint_in_range(word >> (8 * k) & 255, 0x80, 0xbf);
		assert_true(canary_decode(seed + i, word, CANARY_POISON, &found));
		assert_int_equal(found, start);
		assert_false(canary_decode(seed + i, word, CANARY_GUARD, &found));
		assert_false(canary_decode(seed + i, start, CANARY_POISON, &found));
		chosen += canary_chance(i, start, 500000);
		/* The address of a field behind it is the poison of no neighbour. */
		for (k = 8; i % 64 == 0 && k < 4096; k += 8)
			if (canary_decode(seed + i, word + k, CANARY_POISON, &found))
				assert_false(found + (1ull << 30) - start < 2ull << 30);
	}
	/* Six standard deviations. */
	assert_uint_in_range(chosen, 50000 - 950, 50000 + 950);
}

/* A guard that was moved by one word, two or three is another guard in every byte. */
static void test_canary_guard_has_no_period(void **state)
{
	uint64_t guard = canary_word(0x1234567, 0x7f0012345670ull, CANARY_GUARD), at, i;
	unsigned shift, k;

	(void)state;
	for (i = 0; i < 100000; i++) {
		at = (i * 0x9e3779b97f4a7c15ull >> 17) & ~7ull;
		for (k = 0; k < 64; k += 8)
			assert_uint_in_range(canary_guard_at(guard, at) >> k & 255, 0x80, 0xbf);
		for (shift = 8; shift <= 24; shift += 8) {
			uint64_t differs =
				canary_guard_at(guard, at) ^ canary_guard_at(guard, at + shift);

			for (k = 0; k < 64; k += 8)
				assert_int_not_equal(differs >> k & 255, 0);
		}
	}
}

static void test_every_damaged_byte_is_refused(void **state)
{
	_Alignas(8) unsigned char bytes[2048];
	struct plan_header plan, read;
	size_t len, i;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_CRASH);
	len = sealed(&plan, 1, bytes, sizeof(bytes));
	for (i = 0; i < len; i++) {
		bytes[i] ^= 0x10;
		assert_int_not_equal(plan_check(bytes, len, &read), PLAN_OK);
		bytes[i] ^= 0x10;
		assert_int_not_equal(plan_check(bytes, i, &read), PLAN_OK);
	}
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
}

static void test_values_out_of_range(void **state)
{
	_Alignas(8) unsigned char bytes[256];
	struct plan_header plan, read;
	size_t len;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	plan.ring_records = 1000; /* not a power of two */
	len = sealed(&plan, 0, bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_BAD_VALUE);
	plan_init(&plan, (enum plan_observer)7);
	len = sealed(&plan, 0, bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_BAD_VALUE);
	plan_init(&plan, PLAN_OBSERVE_IDS);
	plan.ring_records = 0; /* zero asks for the default */
	len = sealed(&plan, 0, bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	assert_int_equal(read.ring_records, PLAN_RING_RECORDS);
}

static void test_seal_needs_room_and_sound_items(void **state)
{
	struct plan_item item = { .type = PLAN_ITEM_HOOK, .bytes = 4 };
	_Alignas(8) unsigned char bytes[256];
	struct plan_header plan;

	(void)state;
	plan_init(&plan, PLAN_OBSERVE_IDS);
	assert_int_equal(plan_seal(&plan, NULL, 0, bytes, 10), 0);
	assert_int_equal(plan_seal(&plan, &item, sizeof(item), bytes, sizeof(bytes)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_holders_are_whole),
		cmocka_unit_test(test_chaos_is_whole),
		cmocka_unit_test(test_heap_is_whole),
		cmocka_unit_test(test_fence_is_whole),
		cmocka_unit_test(test_fence_turns),
		cmocka_unit_test(test_canary_words),
		cmocka_unit_test(test_canary_guard_has_no_period),
		cmocka_unit_test(test_every_damaged_byte_is_refused),
		cmocka_unit_test(test_values_out_of_range),
		cmocka_unit_test(test_seal_needs_room_and_sound_items),
	};

	return cmocka_run_group_tests_name("wire_plan", tests, NULL, NULL);
}
