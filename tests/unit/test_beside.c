/*
 * A block in a failing run beside the same block in runs that passed: which moments, which
 * differences.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "evidence_fixture.h"
#include "model/beside.h"

#define POINTER 0x7f0000000097ull

struct asked {
	struct investigation inv;
	struct beside beside;
};

static void tell(struct asked *a, struct made_write made)
{
	VEC_PUSH(&a->inv.evidence.list, made_write(made));
}

/* What failed: its second store, one bit. */
static void begin(struct asked *a)
{
	*a = (struct asked){ 0 };
	made_home(&a->inv.verdict.home, 1001);
	tell(a, (struct made_write){ .trial = 1, .width = 1, .nth = 2 });
}

static void end(struct asked *a)
{
	beside_deinit(&a->beside);
	evidence_list_deinit(&a->inv.evidence);
	home_deinit(&a->inv.verdict.home);
}

static enum beside_difference at(const struct asked *a, int64_t offset)
{
	VEC_FOREACH (&a->beside.rows, row)
		if (row->offset == offset)
			return row->difference;
	fail();
	return BESIDE_DIFFERENCES;
}

static void without_a_run_that_passed_there_is_nothing(void **state)
{
	struct asked a;

	(void)state;
	begin(&a);
	assert_false(beside_find(&a.inv, &a.beside));
	/* Nor where nobody wrote the bytes down. */
	tell(&a, (struct made_write){ .trial = 2, .passing = true, .width = 1 });
	assert_false(beside_find(&a.inv, &a.beside));
	end(&a);
}

static void the_store_by_the_same_code_is_compared(void **state)
{
	struct asked a;

	(void)state;
	begin(&a);
	tell(&a, (struct made_write){ .trial = 2, .passing = true, .writer = "set", .nth = 1 });
	tell(&a, (struct made_write){ .trial = 2, .passing = true, .width = 1, .nth = 2 });
	tell(&a, (struct made_write){ .trial = 2, .passing = true, .writer = "clear", .nth = 3 });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(a.beside.passed.count, 1);
	assert_int_equal(a.beside.passed.items[0].moment, BESIDE_SAME);
	assert_int_equal(a.beside.passed.items[0].piece->write->block.nth, 2);
	assert_int_equal(a.beside.rows.count, 7);
	VEC_FOREACH (&a.beside.rows, row)
		assert_int_equal(row->difference, BESIDE_ALIKE);
	end(&a);
}

/* Not the one that clears the field at its end. */
static void else_the_one_before(void **state)
{
	struct asked a;

	(void)state;
	begin(&a);
	tell(&a, (struct made_write){
			 .trial = 2, .passing = true, .writer = "clear", .nth = 2, .old = 1 });
	tell(&a, (struct made_write){
			 .trial = 2, .passing = true, .writer = "set", .nth = 1, .new = POINTER });
	tell(&a, (struct made_write){
			 .trial = 3, .passing = true, .writer = "clear", .nth = 5, .old = 1 });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(a.beside.passed.count, 2);
	assert_int_equal(a.beside.passed.items[0].moment, BESIDE_EARLIER);
	assert_int_equal(a.beside.passed.items[0].piece->write->new, POINTER);
	assert_int_equal(a.beside.passed.items[1].moment, BESIDE_LAST);
	end(&a);
}

static void differences_are_told_apart(void **state)
{
	struct asked a;
	const struct beside_row *row;

	(void)state;
	begin(&a);
	/* Addresses of each run's own, with a bit more than the failing one; a number that no two
	 * runs share. */
	for (uint64_t i = 2; i < 9; i++)
		tell(&a, (struct made_write){ .trial = i,
					      .passing = true,
					      .writer = "set",
					      .new = POINTER + (i << 20),
					      .nth = 1,
					      .behind = (uint8_t)i });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(a.beside.passed.count, BESIDE_RUNS);
	assert_int_equal(at(&a, 0), BESIDE_ALIKE);
	assert_int_equal(at(&a, 24), BESIDE_DIFFERS);
	assert_int_equal(at(&a, 48), BESIDE_VARIES);
	row = &a.beside.rows.items[3];
	assert_true(row->watched && beside_odd(&a.beside, row, 0));
	assert_false(beside_odd(&a.beside, row, 1) || beside_odd(&a.beside, row, 2));
	end(&a);
}

/* What a passing run has at another store to the field. */
static void no_difference_of_another_moment(void **state)
{
	struct asked a;

	(void)state;
	begin(&a);
	tell(&a, (struct made_write){
			 .trial = 2, .passing = true, .writer = "set", .nth = 1, .behind = 3 });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(at(&a, 48), BESIDE_DIFFERS);
	beside_deinit(&a.beside);
	tell(&a, (struct made_write){
			 .trial = 2, .passing = true, .writer = "clear", .nth = 5, .old = 1 });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(a.beside.passed.items[0].piece->write->block.nth, 1);
	assert_int_equal(at(&a, 48), BESIDE_VARIES);
	end(&a);
}

static void addresses_alike_but_for_the_run(void **state)
{
	struct asked a;

	(void)state;
	begin(&a);
	tell(&a, (struct made_write){ .trial = 2,
				      .passing = true,
				      .writer = "set",
				      .new = 0x7fff12340096,
				      .nth = 1 });
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(at(&a, 24), BESIDE_ADDRESS);
	/* A number where another run has an address is a difference. */
	a.beside.failed.piece->write->block.bytes.data[31] = 1;
	beside_deinit(&a.beside);
	assert_true(beside_find(&a.inv, &a.beside));
	assert_int_equal(at(&a, 24), BESIDE_DIFFERS);
	end(&a);
}

static void fields_have_their_names(void **state)
{
	struct asked a;
	struct block_layout *layout = &a.inv.layout;

	(void)state;
	begin(&a);
	tell(&a, (struct made_write){ .trial = 2, .passing = true, .width = 1, .nth = 2 });
	VEC_PUSH(&layout->fields, ((struct layout_field){ 0, 4, mem_strdup("kind") }));
	VEC_PUSH(&layout->fields, ((struct layout_field){ 4, 2, mem_strdup("flags") }));
	VEC_PUSH(&layout->fields, ((struct layout_field){ 8, 16, mem_strdup("name") }));
	assert_true(beside_find(&a.inv, &a.beside));
	assert_string_equal(a.beside.rows.items[0].name, "kind");
	assert_int_equal(a.beside.rows.items[0].len, 4);
	assert_string_equal(a.beside.rows.items[1].name, "flags");
	assert_int_equal(a.beside.rows.items[1].len, 2);
	assert_null(a.beside.rows.items[2].name); /* padding */
	assert_string_equal(a.beside.rows.items[3].name, "name");
	assert_null(a.beside.rows.items[4].name);
	assert_int_equal(a.beside.rows.items[4].offset, 16);
	block_layout_deinit(layout);
	end(&a);
}

/* The C library's own mutexes, as they are in memory. */
static void a_mutex_in_the_block_says_who_held_it(void **state)
{
	static const int kinds[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct evidence one = made_write((struct made_write){ .trial = 1, .width = 1 });
		struct evidence two = made_write((struct made_write){ .trial = 1, .width = 1 });
		struct {
			uint64_t before[3];
			pthread_mutex_t mutex;
		} block = { .before = { 1, (uint64_t)gettid(), 1 } };
		pthread_mutexattr_t attributes;

		assert_int_equal(pthread_mutexattr_init(&attributes), 0);
		assert_int_equal(pthread_mutexattr_settype(&attributes, kinds[i]), 0);
		assert_int_equal(pthread_mutexattr_setprotocol(&attributes,
							       i % 2 ? PTHREAD_PRIO_INHERIT
								     : PTHREAD_PRIO_NONE),
				 0);
		assert_int_equal(pthread_mutex_init(&block.mutex, &attributes), 0);
		one.write->tid = gettid();
		two.write->tid = gettid() + 1;
		/* Free, and the numbers before it are none. */
		strbuf_clear(&one.write->block.bytes);
		strbuf_add(&one.write->block.bytes, &block, sizeof(block));
		assert_int_equal(write_mutex(one.write), -1);
		strbuf_clear(&two.write->block.bytes);
		strbuf_add(&two.write->block.bytes, &block, sizeof(block));
		assert_int_equal(pthread_mutex_lock(&block.mutex), 0);
		strbuf_clear(&one.write->block.bytes);
		strbuf_add(&one.write->block.bytes, &block, sizeof(block));
		one.write->block.offset = two.write->block.offset = 0;
		assert_int_equal(write_mutex(one.write), 24);
		/* The other one wrote without it; of bytes that end before it nobody knows. */
		assert_int_equal(write_shares_mutex(one.write, two.write), 0);
		assert_int_equal(write_shares_mutex(two.write, one.write), -1);
		two.write->block.bytes.len = 32;
		assert_int_equal(write_shares_mutex(one.write, two.write), -1);
		/* Where its thread waits for it, it is the first one's. */
		two.write->block.bytes.len = 0;
		strbuf_add(&two.write->block.bytes, &block, sizeof(block));
		assert_int_equal(write_mutex(two.write), -1);
		assert_int_equal(write_shares_mutex(one.write, two.write), 0);
		assert_int_equal(pthread_mutex_unlock(&block.mutex), 0);
		evidence_deinit(&one);
		evidence_deinit(&two);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_run_that_passed_there_is_nothing),
		cmocka_unit_test(the_store_by_the_same_code_is_compared),
		cmocka_unit_test(else_the_one_before),
		cmocka_unit_test(differences_are_told_apart),
		cmocka_unit_test(no_difference_of_another_moment),
		cmocka_unit_test(addresses_alike_but_for_the_run),
		cmocka_unit_test(fields_have_their_names),
		cmocka_unit_test(a_mutex_in_the_block_says_who_held_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
