/*
 * Verdicts about homes that are no fields of blocks, and about writes that meant the field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "evidence_fixture.h"
#include "judge/judge.h"
#include "says.h"

static struct evidence *add(struct evidence_list *list, struct evidence e)
{
	e.id = list->list.count + 1;
	VEC_PUSH(&list->list, e);
	return &list->list.items[list->list.count - 1];
}

/* The same write in three failing trials. */
static void caught(struct evidence_list *list, struct made_write made)
{
	for (unsigned int i = 1; i <= 3; i++) {
		made.trial = i;
		add(list, made_crash(i, FAULT_NULL));
		add(list, made_watch(i, 3));
		add(list, made_write(made));
	}
	list->trials = 20;
}

/* All homes of the list are words of a function's frame. */
static void move_to_frame(struct evidence_list *list, const char *field)
{
	VEC_FOREACH (&list->list, e) {
		struct home *home = e->kind == EVIDENCE_WRITE	? &e->write->home
				    : e->kind == EVIDENCE_WATCH ? &e->watch->home
								: NULL;

		if (!home)
			continue;
		home_deinit(home);
		*home = (struct home){ .kind = HOME_STACK,
				       .name = mem_strdup("parse"),
				       .field = field ? mem_strdup(field) : NULL,
				       .offset = -8,
				       .len = 8,
				       .address = MADE_FIELD };
		if (e->kind != EVIDENCE_WRITE)
			continue;
		block_life_free(e->write->victim);
		block_life_free(e->write->base);
		e->write->victim = e->write->base = NULL;
	}
}

static bool among_open(const struct verdict *v, const char *text)
{
	VEC_FOREACH (&v->open.list, open)
		if (says(open, text))
			return true;
	return false;
}

static const struct made_write clears = {
	.writer = "connection_close", .width = 8, .old = 0x555500001000, .traits = MADE_NAMED
};

static void who_clears_a_field_by_name_is_not_accused(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	caught(&list, clears);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_NOT_CAUGHT);
	assert_int_equal(v.writer.count, 0);
	assert_int_equal(v.watched, 3);
	assert_true(among_open(&v, "connection_close"));
	assert_true(among_open(&v, "cleared the whole field"));
}

/* By an index, by half, or out of what was there: any of these may be a slip. */
static void who_clears_it_in_another_way_may_be(void **state)
{
	const struct made_write slips[] = {
		{ .writer = "row_set", .width = 8, .old = 0x555500001000 },
		{ .writer = "row_set",
		  .width = 4,
		  .old = 0x555500001000,
		  .new = 0x1000,
		  .traits = MADE_NAMED },
		{ .writer = "row_mask",
		  .width = 8,
		  .old = 0x555500001000,
		  .flags = WRITE_UPDATE,
		  .traits = MADE_NAMED },
		{ .writer = "row_set",
		  .width = 8,
		  .old = 0x555500001000,
		  .new = 0x4242,
		  .traits = MADE_NAMED },
	};

	for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };

		caught(&list, slips[i]);
		judge_evidence(&list, &v);
		if (v.class != VERDICT_NARROW_WRITE)
			fail_msg("slip %zu: %s", i, sentence_of(&v.sentence));
	}
}

/* Whoever reads it may have a pointer to the block that was there before. */
static void who_fills_a_block_in_a_place_of_anothers(void **state)
{
	static const struct {
		unsigned int traits, flags;
		uint64_t age;
		enum verdict_class class;
		bool firm;
	} made[] = {
		{ MADE_RECYCLED, 0, 0, VERDICT_NOT_CAUGHT, false },
		{ MADE_RECYCLED, 0, 7, VERDICT_NARROW_WRITE, false },
		{ 0, 0, 0, VERDICT_NARROW_WRITE, true },
		{ MADE_RECYCLED, WRITE_UPDATE, 0, VERDICT_NARROW_WRITE, false },
	};

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };

		caught(&list, (struct made_write){ .writer = "text_fill",
						   .width = 8,
						   .new = 0x7878787878787878,
						   .traits = made[i].traits,
						   .flags = made[i].flags });
		VEC_FOREACH (&list.list, e)
			if (e->kind == EVIDENCE_WRITE)
				e->write->age = made[i].age;
		judge_evidence(&list, &v);
		if (v.class != made[i].class || v.firm != made[i].firm)
			fail_msg("%zu: %s", i, sentence_of(&v.sentence));
		assert_true(v.class != VERDICT_NOT_CAUGHT || among_open(&v, "its own new block"));
	}
}

static void an_address_that_may_have_been_right_is_no_proof(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	caught(&list, (struct made_write){ .writer = "view_open",
					   .width = 8,
					   .new = 0x7f0000200000,
					   .traits = MADE_NAMED });
	VEC_FOREACH (&list.list, e)
		if (e->kind == EVIDENCE_CRASH) {
			e->crash->fault = FAULT_UNMAPPED;
			e->crash->address = 0x7f0000200010;
		}
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_NOT_CAUGHT);
	assert_true(among_open(&v, "view_open"));
}

static void a_function_sets_its_own_variable(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	caught(&list, (struct made_write){ .writer = "parse", .width = 8, .new = 5 });
	move_to_frame(&list, NULL);
	VEC_FOREACH (&list.list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_NAMED);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_NOT_CAUGHT);
}

static void somebody_else_sets_it(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	caught(&list, (struct made_write){ .writer = "label_make", .width = 1 });
	move_to_frame(&list, NULL);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_NARROW_WRITE);
	assert_true(v.firm);
	assert_true(says(&v.sentence, "stack of parse"));
}

static void a_return_address_is_run_over(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	caught(&list, (struct made_write){ .writer = "text_copy", .width = 8 });
	move_to_frame(&list, "the return address");
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_OVERFLOW);
	assert_true(v.firm);
	assert_true(says(&v.sentence, "the return address (stack of parse"));
	assert_string_equal(v.writer.frames[0].function, "text_copy");
}

/* Trial by trial: what the crash went through had been stored when that function ran. */
static void held(struct evidence_list *list, unsigned int trials)
{
	for (unsigned int i = 1; i <= trials; i++) {
		struct evidence e = evidence_new(EVIDENCE_HOLDER, i, true);

		add(list, made_crash(i, FAULT_UNMAPPED));
		made_home(&e.holder->home, i);
		e.holder->target = mem_alloc(sizeof(*e.holder->target));
		e.holder->target->state = BLOCK_FREED;
		e.holder->target->start = 0x7ffd00001000;
		e.holder->target->size = 64;
		made_stack(&e.holder->target->allocated, "options_extra", 12);
		made_stack(&e.holder->written_by, "option_register", 8);
		e.holder->used = e.holder->exact = e.holder->frame = true;
		add(list, e);
	}
	list->trials = 20;
}

static void a_pointer_that_outlived_a_frame(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	held(&list, 3);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_DANGLING_HOLDER);
	assert_true(v.firm);
	assert_null(v.victim);
	assert_int_equal(v.freed_by.count, 0);
	assert_string_equal(v.writer.frames[0].function, "option_register");
	assert_string_equal(v.other.frames[0].function, "options_extra");
	assert_true(says(&v.sentence, "a variable of options_extra"));
}

/* One failing trial is a story, no proof. */
static void one_trial_is_not_enough(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	held(&list, 1);
	judge_evidence(&list, &v);
	assert_false(v.firm);
}

static void a_frame_is_packed_and_unpacked(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct evidence back = { 0 };

	held(&list, 1);
	evidence_pack(&list.list.items[1], &sb);
	assert_int_equal(evidence_unpack(sb.data, sb.len, &back, NULL), 0);
	assert_true(back.holder->frame);
	evidence_deinit(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_clears_a_field_by_name_is_not_accused),
		cmocka_unit_test(who_clears_it_in_another_way_may_be),
		cmocka_unit_test(who_fills_a_block_in_a_place_of_anothers),
		cmocka_unit_test(an_address_that_may_have_been_right_is_no_proof),
		cmocka_unit_test(a_function_sets_its_own_variable),
		cmocka_unit_test(somebody_else_sets_it),
		cmocka_unit_test(a_return_address_is_run_over),
		cmocka_unit_test(a_pointer_that_outlived_a_frame),
		cmocka_unit_test(one_trial_is_not_enough),
		cmocka_unit_test(a_frame_is_packed_and_unpacked),
	};

	return cmocka_run_group_tests_name("verdict_homes", tests, NULL, NULL);
}
