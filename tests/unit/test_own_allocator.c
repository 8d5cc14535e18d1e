/*
 * Which function hands objects out and which takes them back, from who was seen with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hunt/observations/own_allocator.h"
#include "wire/log_format.h"

enum { ALLOC, NEW, MAKERS, USE = MAKERS, DROP, FREE, RESET };

struct story {
	VEC(struct object_trace) list;
};

static void see(struct story *story, uint64_t object, uint32_t function, uint8_t argument,
		uint8_t inside)
{
	VEC_PUSH(&story->list, ((struct object_trace){ .object = object,
						       .start = object,
						       .size = 32,
						       .function = function,
						       .argument = argument,
						       .inside = inside }));
}

static void hand_out(struct story *story, uint64_t object)
{
	see(story, object, ALLOC, LOG_SIGHT_RESULT, 1 << NEW);
	see(story, object, NEW, LOG_SIGHT_RESULT, 0);
}

static void give_back(struct story *story, uint64_t object)
{
	see(story, object, DROP, 0, 0);
	see(story, object, FREE, 1, 0);
}

/* Four objects, one after the other, six times. */
static void pool(struct story *story)
{
	for (unsigned int round = 0; round < 6; round++)
		for (uint64_t object = 0x1000; object < 0x1080; object += 32) {
			hand_out(story, object);
			see(story, object, USE, 0, 0);
			see(story, object, USE, 0, 0);
			give_back(story, object);
		}
}

static int judge(const struct story *story, uint32_t *taker, unsigned int *argument, size_t *times)
{
	return allocator_probe_judge(story->list.items, story->list.count, MAKERS, taker, argument,
				     times);
}

static int judged(struct story *story)
{
	unsigned int argument;
	uint32_t taker;
	size_t times;
	int maker = judge(story, &taker, &argument, &times);

	VEC_DEINIT(&story->list);
	return maker;
}

static void a_pool_is_recognised(void **state)
{
	struct story story = { 0 };
	unsigned int argument;
	uint32_t taker;
	size_t times;

	pool(&story);
	assert_int_equal(judge(&story, &taker, &argument, &times), ALLOC);
	assert_int_equal(taker, FREE);
	assert_int_equal(argument, 1);
	assert_int_equal(times, 20);
	VEC_DEINIT(&story.list);
}

/* What the allocator itself calls with the object, before it hands it out, is no end of it. */
static void what_it_does_itself_does_not_count(void **state)
{
	struct story story = { 0 };
	unsigned int argument;
	uint32_t taker;
	size_t times;

	for (unsigned int round = 0; round < 6; round++)
		for (uint64_t object = 0x1000; object < 0x1080; object += 32) {
			see(&story, object, RESET, 0, 1 << ALLOC | 1 << NEW);
			hand_out(&story, object);
			give_back(&story, object);
		}
	assert_int_equal(judge(&story, &taker, &argument, &times), ALLOC);
	assert_int_equal(taker, FREE);
	VEC_DEINIT(&story.list);
}

/* Registers keep what was in them: who is called next seems to be given the object, now and then.
 */
static void what_registers_kept_does_not_matter(void **state)
{
	struct story story = { 0 };
	unsigned int argument;
	uint32_t taker;
	size_t times;

	pool(&story);
	see(&story, 0x1000, ALLOC, 2, 1 << NEW);
	see(&story, 0x1000, RESET, 0, 0);
	hand_out(&story, 0x1000);
	assert_int_equal(judge(&story, &taker, &argument, &times), ALLOC);
	assert_int_equal(taker, FREE);
	VEC_DEINIT(&story.list);
}

static void objects_that_never_come_back_are_no_pool(void **state)
{
	struct story story = { 0 };

	for (uint64_t object = 0x1000; object < 0x1800; object += 32) {
		hand_out(&story, object);
		give_back(&story, object);
	}
	assert_int_equal(judged(&story), -1);
}

/* A look-up: handed out again while whoever had it still has it. */
static void a_getter_is_no_allocator(void **state)
{
	struct story story = { 0 };

	pool(&story);
	hand_out(&story, 0x1000);
	hand_out(&story, 0x1000);
	assert_int_equal(judged(&story), -1);
}

/* Now one function had it last, now another. */
static void two_ends_are_none(void **state)
{
	struct story story = { 0 };

	pool(&story);
	hand_out(&story, 0x1000);
	see(&story, 0x1000, USE, 0, 0);
	hand_out(&story, 0x1000);
	assert_int_equal(judged(&story), -1);
}

/* Last each time, but not only last: it uses the object. */
static void what_is_called_twice_does_not_take_back(void **state)
{
	struct story story = { 0 };

	for (unsigned int round = 0; round < 12; round++)
		for (uint64_t object = 0x1000; object < 0x1080; object += 32) {
			hand_out(&story, object);
			see(&story, object, USE, 0, 0);
			see(&story, object, USE, 0, 0);
		}
	assert_int_equal(judged(&story), -1);
}

/* A singleton. */
static void one_object_is_no_pool(void **state)
{
	struct story story = { 0 };

	for (unsigned int round = 0; round < 50; round++) {
		hand_out(&story, 0x1000);
		give_back(&story, 0x1000);
	}
	assert_int_equal(judged(&story), -1);
}

static void a_few_times_are_too_few(void **state)
{
	struct story story = { 0 };

	for (unsigned int round = 0; round < 2; round++)
		for (uint64_t object = 0x1000; object < 0x1080; object += 32) {
			hand_out(&story, object);
			give_back(&story, object);
		}
	assert_int_equal(judged(&story), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_is_recognised),
		cmocka_unit_test(what_it_does_itself_does_not_count),
		cmocka_unit_test(what_registers_kept_does_not_matter),
		cmocka_unit_test(objects_that_never_come_back_are_no_pool),
		cmocka_unit_test(a_getter_is_no_allocator),
		cmocka_unit_test(two_ends_are_none),
		cmocka_unit_test(what_is_called_twice_does_not_take_back),
		cmocka_unit_test(one_object_is_no_pool),
		cmocka_unit_test(a_few_times_are_too_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
