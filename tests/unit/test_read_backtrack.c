/*
 * The way back from a fault: which home the bad value was loaded from, and the homes of the
 * pointers that led there. What is expected follows from the victims' sources and what is in their
 * registers.
 */
#include "corpus.h"

struct expected {
	enum home_kind kind;
	const char *name; /* of a global, or of the function of a frame */
	int64_t offset;
	bool by_value; /* found standing there, not by the code */
	bool former;   /* another block had the place before */
};

static const struct {
	const char *name;
	bool is_write, executes;
	uint64_t value; /* of the first step; 0: another in every run */
	size_t count;
	struct expected steps[4];
} ways[] = {
	/* node->next, whose upper half was cleared: the code has moved on to the next node. */
	{ "chase-mask-watched", .count = 1,
	  .steps = { { HOME_BLOCK, NULL, 8, .by_value = true } } },
	{ "chase-memcpy", .is_write = true, .value = 0x6a69686766656463, .count = 2,
	  .steps = { { HOME_BLOCK, NULL, 0 }, { HOME_GLOBAL, "queue", 0 } } },
	{ "chase-pop", .count = 1, .steps = { { HOME_GLOBAL, "head", 0 } } },
	{ "chase-dangling-global", .is_write = true, .value = 0x206f742077656e20, .count = 2,
	  .steps = { { HOME_BLOCK, NULL, 16, .former = true }, { HOME_GLOBAL, "current", 0 } } },
	{ "chase-dangling-block", .count = 4,
	  .steps = { { HOME_BLOCK, NULL, 0 },
		     { HOME_BLOCK, NULL, 0 },
		     { HOME_BLOCK, NULL, 8 },
		     { HOME_GLOBAL, "panels", 32 } } },
	{ "chase-dangling-stack", .count = 2,
	  .steps = { { HOME_BLOCK, NULL, 8, .former = true }, { HOME_STACK, "worker", -152 } } },
	{ "chase-thread", .value = 0x515100005151, .count = 1,
	  .steps = { { HOME_THREAD, NULL, -8 } } },
	{ "chase-frame-guard", .value = 0x7171717171717171, .count = 1,
	  .steps = { { HOME_STACK, "message_sum", -24 } } },
	{ "chase-frame-overflow", .is_write = true, .value = 0x302f676e696f67, .count = 1,
	  .steps = { { HOME_STACK, "table_print", -48 } } },
	{ "chase-frame-unset", .count = 1, .steps = { { HOME_STACK, "order_price", -24 } } },
	{ "chase-uninitialised", .count = 2,
	  .steps = { { HOME_BLOCK, NULL, 16, .former = true }, { HOME_GLOBAL, "entries", 0 } } },
	{ "chase-unmapped", .count = 1, .steps = { { HOME_GLOBAL, "view", 0 } } },
	{ "chase-own-pool", .is_write = true, .count = 1, .steps = { { HOME_BLOCK, NULL, 8 } } },
	{ "fault-freed-ago-ids", .count = 1, .steps = { { HOME_STACK, "die_freed_ago", -24 } } },
	{ "fault-freed-since-ids", .value = 0x123456789000, .count = 1,
	  .steps = { { HOME_BLOCK, NULL, 16 } } },
	{ "fault-call-recycled-ids", .executes = true, .value = 0x4141414141414141, .count = 1,
	  .steps = { { HOME_BLOCK, NULL, 8, .former = true } } },
	{ "fault-jump-recycled-ids", .executes = true, .value = 0x123456789000, .count = 1,
	  .steps = { { HOME_BLOCK, NULL, 8, .former = true } } },
};

static void check_step(const char *name, const struct backtrack_step *step,
		       const struct expected *wanted)
{
	if (step->home.kind != wanted->kind || step->home.offset != wanted->offset)
		fail_msg("%s: kind %d, offset %lld", name, step->home.kind,
			 (long long)step->home.offset);
	if (wanted->name)
		assert_string_equal(step->home.name, wanted->name);
	assert_int_equal(step->width, 8);
	assert_int_equal(step->by_value, wanted->by_value);
	assert_int_equal(step->in_former, wanted->former);
	assert_int_equal(step->in.id != 0, wanted->kind == HOME_BLOCK);
	if (wanted->kind == HOME_BLOCK)
		assert_non_null(step->home.key);
}

static void homes_are_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(ways[i].name);
		const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);
		const struct backtrack *way = &crashed->backtrack;

		if (!crashed->has_backtrack)
			fail_msg("%s: %s", ways[i].name, crashed->no_backtrack);
		if (way->steps.count != ways[i].count)
			fail_msg("%s: %zu steps", ways[i].name, way->steps.count);
		assert_int_equal(way->is_write, ways[i].is_write);
		assert_int_equal(way->executes, ways[i].executes);
		if (ways[i].value != 0)
			assert_int_equal(way->steps.items[0].value, ways[i].value);
		for (size_t k = 0; k < way->steps.count; k++)
			check_step(ways[i].name, &way->steps.items[k], &ways[i].steps[k]);
	}
}

/* The pointer of each step leads into the block that the home before it is in. */
static void each_step_leads_to_the_one_before(void **state)
{
	static const char *const names[] = { "chase-memcpy", "chase-dangling-global",
					     "chase-dangling-block", "chase-uninitialised" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(names[i]);
		const struct backtrack *way =
			&reading_backtrack(reading, THROUGH_OBJECTS)->backtrack;

		for (size_t k = 1; k < way->steps.count; k++) {
			assert_int_equal(way->steps.items[k].to.id, way->steps.items[k - 1].in.id);
			assert_true(way->steps.items[k].value >= way->steps.items[k].to.start);
		}
	}
}

static void a_freed_block_on_the_way_is_known(void **state)
{
	AUTO(reading_closep) struct reading *freed = corpus_read("fault-freed-ago-ids");
	AUTO(reading_closep) struct reading *live = corpus_read("chase-memcpy");
	const struct crash_reading *crashed = reading_backtrack(freed, THROUGH_OBJECTS);

	(void)state;
	assert_int_equal(crash_reading_freed_step(crashed), 0);
	crashed = reading_backtrack(live, THROUGH_OBJECTS);
	assert_int_equal(crash_reading_freed_step(crashed), -1);
}

static void where_nothing_can_be_read_back_it_is_said(void **state)
{
	static const char *const names[] = { "fault-abort", "fault-raise", "fault-null",
					     "chase-double-free", "chase-invalid-free" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(names[i]);
		const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);

		assert_true(crashed->has_record);
		assert_false(crashed->has_backtrack);
		assert_true(strlen(crashed->no_backtrack) > 10);
		assert_int_equal(crash_reading_freed_step(crashed), -1);
	}
}

/* Where no allocator was hooked, blocks are whole anyhow. */
static void whole_blocks_make_no_difference_without_hooks(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("chase-memcpy");
	const struct backtrack *a = &reading_backtrack(reading, THROUGH_OBJECTS)->backtrack;
	const struct backtrack *b = &reading_backtrack(reading, THROUGH_WHOLE_BLOCKS)->backtrack;

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_int_equal(a->steps.count, b->steps.count);
	for (size_t i = 0; i < a->steps.count; i++)
		assert_true(home_same(&a->steps.items[i].home, &b->steps.items[i].home));
}

/* Real programs, whose sources know nothing of redhand: specimens/NAME/TRUTH.md. */
static void specimens_are_read_back(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("specimen-fuser");
	const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);

	(void)state;
	assert_true(crashed->has_backtrack);
	assert_true(crashed->backtrack.steps.count >= 1);
	assert_int_equal(crashed->backtrack.steps.items[0].home.kind, HOME_BLOCK);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(homes_are_read_back),
	cmocka_unit_test(each_step_leads_to_the_one_before),
	cmocka_unit_test(a_freed_block_on_the_way_is_known),
	cmocka_unit_test(where_nothing_can_be_read_back_it_is_said),
	cmocka_unit_test(whole_blocks_make_no_difference_without_hooks),
	cmocka_unit_test(specimens_are_read_back),
};

CORPUS_MAIN(tests)
