/*
 * The verdict rules: for each class evidence that fires it, and evidence that nearly does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/verdict/verdict.h"
#include "evidence_fixture.h"

/* Adds it with the next id, as the case would. */
static struct evidence *add(struct evidence_list *list, struct evidence e)
{
	e.id = list->list.count + 1;
	VEC_PUSH(&list->list, e);
	return &list->list.items[list->list.count - 1];
}

/* The same writer in `count` failing trials, each with its watch and its crash. */
static void caught(struct evidence_list *list, struct made_write made, unsigned int count)
{
	for (unsigned int i = 1; i <= count; i++) {
		made.trial = i;
		add(list, made_crash(i, FAULT_NULL));
		add(list, made_watch(i, 3));
		add(list, made_write(made));
	}
	list->trials = 41;
	list->failed = 9;
}

/* ---- evidence that fires ---- */

static void narrow(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 3);
}

static void narrow_in_a_pool(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .flags = WRITE_FREE_UNKNOWN }, 3);
}

static void narrow_native(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "tag_clear", .width = 8 }, 2);
}

static void wide(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 8, .start = -4 }, 3);
}

/* What was left there leads to a live block: nobody did wrong. */
static void pointer_to_a_live_block(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "list_add", .width = 8, .flags = WRITE_SOUND }, 3);
}

/* A vector store of the C library's, through a pointer that had come to the block by then. */
static void piece_of_a_copy(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "title_set", .width = 16, .start = -8 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			struct frame strcpy_frame = { .function = (char *)"strcpy",
						      .module = (char *)"/lib/libc.so.6",
						      .kind = FRAME_NATIVE };

			(void)stack_insert(&e->write->writer, 0, &strcpy_frame);
			mem_free(e->write->instruction);
			e->write->instruction = mem_strdup("movups [rdi], xmm0");
		}
}

static void make_base(struct evidence *e, int64_t start_offset, uint64_t size)
{
	block_life_free(e->write->base);
	e->write->base = made_block(5, MADE_BLOCK + (uint64_t)start_offset, size, BLOCK_LIVE);
}

static void beside(struct evidence_list *l, int64_t base_offset, uint64_t size)
{
	caught(l, (struct made_write){ .writer = "fill", .width = 8 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			make_base(e, base_offset, size);
}

static void overflow(struct evidence_list *l)
{
	beside(l, -64, 48);
}

/* A pointer to a live block, but it was not meant for this one. */
static void pointer_behind_its_block(struct evidence_list *l)
{
	beside(l, -64, 48);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->flags |= WRITE_SOUND;
}

static void overflow_from_inside(struct evidence_list *l)
{
	/* A long copy that begins in its own block and runs into the field. */
	beside(l, -64, 80);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->store_start = MADE_BLOCK - 60;
			e->write->store_len = 100;
			e->write->fit = FIT_WIDE;
		}
}

static void underflow(struct evidence_list *l)
{
	beside(l, 96, 48);
}

static void canary_watched(struct evidence_list *l, int64_t offset)
{
	caught(l, (struct made_write){ .writer = "fill", .width = 1 }, 2);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->home.offset = offset;
		else if (e->kind == EVIDENCE_WATCH)
			e->watch->home.offset = offset;
}

static void overflow_of_a_canary(struct evidence_list *l)
{
	canary_watched(l, 56);
}

static void underflow_of_a_canary(struct evidence_list *l)
{
	canary_watched(l, -1);
}

/* The canary behind one block was watched; the pointer that hit it is to the next block, whose start
 * lies 40 bytes on, or has left whatever it was of. */
static void between_two_blocks(struct evidence_list *l, bool beyond)
{
	canary_watched(l, 56);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			make_base(e, 96, 256);
			e->write->base->beyond = beyond;
			e->write->store_start = MADE_BLOCK + 56;
		}
}

static void underflow_onto_another_canary(struct evidence_list *l)
{
	between_two_blocks(l, false);
}

static void a_pointer_that_left_its_block(struct evidence_list *l)
{
	between_two_blocks(l, true);
}

/* One byte of a pointer, through a pointer into the middle of the block: text that runs. */
static void part_of_a_field_in_passing(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "trim", .width = 1, .start = 6 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->base->value = MADE_BLOCK + 30;
}

static void after_free(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "late_store" }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			block_life_free(e->write->base);
			e->write->base = made_block(4, MADE_BLOCK, 56, BLOCK_FREED);
			e->write->base->former = true;
		}
}

/* Nobody said that it is an allocator: both classes stay. */
static void after_free_inferred(struct evidence_list *l)
{
	after_free(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->flags |= WRITE_FREE_INFERRED;
}

static void crash_writes_freed(struct evidence_list *l)
{
	add(l, made_freed_use(1, true));
	add(l, made_freed_use(2, true));
}

static void freed_used(struct evidence_list *l)
{
	add(l, made_freed_use(1, false));
	add(l, made_freed_use(2, false));
}

static void freed_in_the_crash(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_crash(i, FAULT_FREED));

		e->crash->blocks.items[0].state = BLOCK_FREED;
		made_stack(&e->crash->blocks.items[0].freed, "object_free", 77);
	}
}

static void double_free(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_DOUBLE));
}

static void interior_free(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_INTERIOR));
}

static void dangling(struct evidence_list *l)
{
	add(l, made_freed_use(1, false));
	add(l, made_holder(1, true));
	add(l, made_freed_use(2, false));
	add(l, made_holder(2, true));
}

/* The last write was right when it happened: its block was freed only later. */
static void dangling_by_write(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "rehome" }, 2);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->target = made_block(9000, 0x900000, 200, BLOCK_LIVE);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_freed_use(i, false));

		e->freed_use->block->id = 9000;
	}
}

static void conflated(struct evidence_list *l)
{
	add(l, made_conflation(1, 10, 11));
	add(l, made_conflation(2, 20, 21));
}

static void conflated_by_inference(struct evidence_list *l)
{
	conflated(l);
	VEC_FOREACH (&l->list, e)
		e->note = mem_strdup("that they are two objects is inferred");
}

static void make_slot(struct home *home)
{
	home_deinit(home);
	*home = (struct home){ .kind = HOME_GLOBAL,
			       .name = mem_strdup("no_grad_type"),
			       .field = mem_strdup("no_grad_type.cache.slot"),
			       .offset = 32,
			       .len = 8 };
}

/* The store is right, and so is its load; the slot was half written by another thread. */
static void cached_chain(struct evidence_list *l, enum source_state state, enum store_fit fit)
{
	caught(l, (struct made_write){ 0 }, 2);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->flags |= WRITE_COPIED;
			e->write->source_state = state;
			make_slot(&e->write->source);
		}
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e =
			add(l, made_write((struct made_write){
				       .trial = i, .writer = "type_cache_open", .tid = 101 }));

		make_slot(&e->write->home);
		e->write->fit = fit;
		e->write->when_ns = 4000000;
		block_life_free(e->write->victim);
		block_life_free(e->write->base);
		e->write->victim = e->write->base = NULL;
	}
}

static void cached_torn(struct evidence_list *l)
{
	cached_chain(l, SOURCE_TORN, FIT_EXACT);
}

/* The same half value stood in the slot in a trial that passed: nobody copied it there. */
static void add_quiet_half(struct evidence_list *l)
{
	struct evidence *e = add(l, made_write((struct made_write){ .trial = 3,
								    .passing = true,
								    .writer = "type_cache_open" }));

	make_slot(&e->write->home);
}

static void cached_torn_and_quiet(struct evidence_list *l)
{
	cached_torn(l);
	add_quiet_half(l);
}

static void cached_half_written(struct evidence_list *l)
{
	cached_chain(l, SOURCE_SAME, FIT_NARROW);
}

static void cached_replaced_after(struct evidence_list *l)
{
	cached_chain(l, SOURCE_SAME, FIT_EXACT);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_write((struct made_write){
						    .trial = i,
						    .writer = "type_cache_refresh",
						    .old = 1,
						    .new = 2,
						    .not_flags = WRITE_LAST | WRITE_FOUND }));

		make_slot(&e->write->home);
		e->write->when_ns = 9000000;
	}
}

static void race(struct evidence_list *l)
{
	add(l, made_race(1, true));
	add(l, made_race(2, true));
}

/* A count was lost, and the block was freed while somebody still pointed to it. */
static void race_and_a_free(struct evidence_list *l)
{
	dangling(l);
	race(l);
}

/* Two threads that write in turns are no reason to forget what was seen. */
static void turns_and_a_free(struct evidence_list *l)
{
	dangling(l);
	add(l, made_race(1, false));
	add(l, made_race(2, false));
}

static void race_in_one_of_five(struct evidence_list *l)
{
	struct evidence *hop;

	add(l, made_race(1, true));
	add(l, made_race(2, true));
	hop = add(l, made_hop(2, 2, 5, 41));
	home_deinit(&hop->hop->home);
	hop->hop->home = (struct home){ 0 };
	made_home(&hop->hop->home, 1001);
}

static void overflow_of_its_own_block(struct evidence_list *l)
{
	/* From the block's start to behind its end: 64 bytes into 56. */
	caught(l, (struct made_write){ .writer = "reset", .width = 64 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->store_start = MADE_BLOCK;
			e->write->store_len = 64;
			e->write->fit = FIT_WIDE;
		}
}

static void mapping(struct evidence_list *l)
{
	add(l, made_mapping(1, true));
}

static void outside(struct evidence_list *l)
{
	add(l, made_outside(1, 0x97, 0x1234));
	add(l, made_outside(2, 0x97, 0x5678));
}

/* calloc() put it there, for all that is known. */
static void zero_from_birth_on(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++)
		add(l, made_watch(i, 0))->watch->value_known = true;
}

static void nothing_mapped(struct evidence_list *l, uint64_t value)
{
	caught(l, (struct made_write){ .writer = "view_open", .width = 8, .old = 0, .new = value },
	       2);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_CRASH) {
			e->crash->fault = FAULT_UNMAPPED;
			e->crash->address = value + 8;
		}
}

/* Whether it was there when the pointer was stored is not known. */
static void unmapped_since(struct evidence_list *l)
{
	nothing_mapped(l, 0x7f1234560000);
}

static void never_an_address(struct evidence_list *l)
{
	nothing_mapped(l, 0x74561000);
}

/* Of a local variable that is gone, perhaps. */
static void a_readable_address(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "job_new", .width = 8, .flags = WRITE_READABLE },
	       3);
}

static void set_to_null(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "conn_close", .width = 8, .old = 0x7f0000000097, .new = 0 },
	       3);
}

/* Half of it: that is no way to be done with a pointer. */
static void half_set_to_null(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "conn_close", .width = 4, .old = 0x97, .new = 0 },
	       3);
}

static void uninitialised(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_watch(i, 0));

		e->watch->value_known = true;
		e->watch->value = e->watch->birth_value = 0xdead;
	}
}

static void bad_memory(struct evidence_list *l)
{
	struct evidence *e = add(l, made_host());

	e->host->memory_tested = true;
	e->host->memory_errors = 3;
	e->host->memory_seconds = 2.5;
}

static void machine_signs(struct evidence_list *l)
{
	struct evidence *e = add(l, made_host());

	e->host->bit_flips = 4;
	e->host->flip_homes = 4;
	e->host->flip_bits = 3;
	e->host->core = 3;
	e->host->core_p = 0.00001;
}

static void growth(struct evidence_list *l)
{
	add(l, made_growth());
}

static void plain(struct evidence_list *l)
{
	add(l, made_plain(true));
}

/* ---- evidence that nearly does ---- */

static void nothing(struct evidence_list *l)
{
}

static void only_in_passing_trials(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 5; i++)
		add(l, made_write((struct made_write){ .trial = i, .passing = true, .width = 1 }));
	add(l, made_crash(9, FAULT_NULL));
}

static void imprecise(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .flags = WRITE_ASYNC }, 3);
}

static void same_value(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .old = 5, .new = 5 }, 3);
}

static void one_of_five(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 1);
	for (unsigned int i = 2; i <= 5; i++)
		add(l, made_watch(i, 0));
}

static void a_hop_that_says_nine_were_watched(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 2);
	add(l, made_hop(1, 2, 9, 100));
}

static void not_the_last(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .not_flags = WRITE_LAST }, 3);
}

static void no_fit(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->fit = FIT_UNKNOWN;
}

static void another_block_watched(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 3; i++) {
		struct evidence *e = add(l, made_watch(i, 0));

		e->watch->value_known = true;
		e->watch->victim_watched = false;
	}
}

static void once_only(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 1);
}

static void two_of_three(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 2);
	add(l, made_watch(3, 0));
}

/* The same instruction clears the same bit in objects that come to no harm. */
static void rightful_elsewhere(struct evidence_list *l)
{
	narrow(l);
	add(l, made_write((struct made_write){ .trial = 7, .passing = true, .width = 1 }));
}

static void rightful_in_another_block(struct evidence_list *l)
{
	struct evidence *e;

	narrow(l);
	e = add(l, made_write((struct made_write){
			   .trial = 2, .width = 1, .not_flags = WRITE_LAST | WRITE_FOUND }));
	e->write->home.block_id = 777;
}

static void value_not_seen(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .not_flags = WRITE_FOUND }, 3);
}

static void constructor(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "dict_new", .old = 7, .new = 0, .flags = WRITE_FIRST },
	       3);
}

static void only_copied(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "clone", .flags = WRITE_COPIED }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			make_slot(&e->write->source);
			e->write->source_state = SOURCE_SAME;
		}
}

static void another_thread_too(struct evidence_list *l)
{
	narrow(l);
	add(l, made_race(2, false));
}

/* Another function did other things to the field, harmlessly: no reason to doubt the culprit. */
static void others_are_no_excuse(struct evidence_list *l)
{
	narrow(l);
	add(l, made_write((struct made_write){
		       .trial = 8, .passing = true, .writer = "tag_set", .width = 1 }));
	add(l, made_write((struct made_write){
		       .trial = 8, .passing = true, .width = 1, .old = 0x96, .new = 0x97 }));
}

/* The last store repeats the value; the one before it brought it. */
static void repeated(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(
			l,
			made_write((struct made_write){
				.trial = i, .width = 1, .not_flags = WRITE_LAST | WRITE_FOUND }));

		e->write->when_ns = 1000;
		add(l, made_write((struct made_write){ .trial = i,
						       .writer = "touch",
						       .old = 0x7f0000000096,
						       .new = 0x7f0000000096 }));
	}
}

static void far_away(struct evidence_list *l)
{
	beside(l, -0x200000, 48);
}

static void damage_only(struct evidence_list *l)
{
	add(l, made_canary(1, CANARY_AFTER));
	add(l, made_canary(2, CANARY_AFTER));
}

static void damage_not_adjacent(struct evidence_list *l)
{
	damage_only(l);
	VEC_FOREACH (&l->list, e)
		e->canary->adjacent = false;
}

static void damage_before(struct evidence_list *l)
{
	add(l, made_canary(1, CANARY_BEFORE));
}

static void poison_damaged(struct evidence_list *l)
{
	add(l, made_canary(1, CANARY_FREED));
}

static void freed_used_once(struct evidence_list *l)
{
	add(l, made_freed_use(1, false));
}

static void recycled_only(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_crash(i, FAULT_RECYCLED));

		e->crash->blocks.items[0].former = true;
	}
}

/* Each place belonged to somebody before; that alone says nothing. */
static void a_former_block(struct evidence_list *l)
{
	recycled_only(l);
	VEC_FOREACH (&l->list, e)
		e->crash->fault = FAULT_NULL;
}

static void a_freed_block_nearby(struct evidence_list *l)
{
	freed_in_the_crash(l);
	VEC_FOREACH (&l->list, e)
		e->crash->blocks.items[0].telling = false;
}

static void holder_never_used(struct evidence_list *l)
{
	add(l, made_holder(1, false));
	add(l, made_holder(2, false));
}

static void holder_of_a_live_block(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->target->state = BLOCK_LIVE;
}

static void holder_with_gaps(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			stack_deinit(&e->holder->written_by);
}

static void held_on_a_stack(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER) {
			home_deinit(&e->holder->home);
			e->holder->home = (struct home){ .kind = HOME_STACK };
		}
}

/* Two pointers, each seen once. */
static void held_on_a_stack_to_two_kinds(struct evidence_list *l)
{
	held_on_a_stack(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER && e->trial == 2) {
			mem_free(e->holder->target->key);
			e->holder->target->key = mem_strdup("00000000000000aa#1");
		}
}

static void double_free_of_what_is_held(struct evidence_list *l)
{
	dangling(l);
	double_free(l);
}

/* What was written through the pointer may have been the pointer that was freed. */
static void double_free_of_another(struct evidence_list *l)
{
	double_free_of_what_is_held(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_BAD_FREE) {
			mem_free(e->bad_free->block->key);
			e->bad_free->block->key = mem_strdup("00000000000000aa#1");
		}
}

/* A number that only looks like a pointer into the block. */
static void holder_by_looks(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->exact = false;
}

static void free_in_a_passing_trial(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_DOUBLE))->failing = false;
}

static void mismatched(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_MISMATCHED));
}

static void mismatched_beside_damage(struct evidence_list *l)
{
	mismatched(l);
	damage_only(l);
}

static void mismatched_beside_a_wrong_pointer(struct evidence_list *l)
{
	struct evidence *e;

	mismatched(l);
	e = add(l, made_bad_free(2, BAD_FREE_INTERIOR));
	stack_deinit(&e->bad_free->second);
	made_stack(&e->bad_free->second, "line_drop", 56);
}

static void foreign(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_FOREIGN));
}

static void one_id_at_one_address(struct evidence_list *l)
{
	add(l, made_conflation(1, 10, 10));
	add(l, made_conflation(2, 20, 20));
}

static void conflation_unwatched(struct evidence_list *l)
{
	conflated(l);
	VEC_FOREACH (&l->list, e)
		e->conflation->watched = false;
}

static void conflation_and_a_write(struct evidence_list *l)
{
	struct evidence *e;

	add(l, made_conflation(1, 10, 1001));
	e = add(l, made_write((struct made_write){
			   .trial = 1, .width = 1, .not_flags = WRITE_LAST | WRITE_FOUND }));
	assert_int_equal(e->write->home.block_id, 1001);
	e->write->new = 0x96;
}

/* The second object was written for other reasons; the value that was seen is its first. */
static void conflation_and_other_writes(struct evidence_list *l)
{
	conflated(l);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(
			l,
			made_write((struct made_write){
				.trial = i, .width = 1, .not_flags = WRITE_LAST | WRITE_FOUND }));

		e->write->home.block_id = l->list.items[i - 1].conflation->second_id;
	}
}

/* A reset of the whole object, not a store that is too wide. */
static void whole_object(struct evidence_list *l)
{
	wide(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->store_start = MADE_BLOCK;
			e->write->store_len = 56;
		}
}

/* The pointer was right; nobody looked up what it pointed to, but its value says it. */
static void dangling_by_value(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "rehome", .old = 1, .new = 0x900008 }, 2);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_freed_use(i, false));

		e->freed_use->block->start = 0x900000;
	}
}

/* The place has another owner: the pointer may be that one's. */
static void pointer_to_a_recycled_place(struct evidence_list *l)
{
	dangling_by_value(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_FREED_USE)
			e->freed_use->block->former = true;
}

static void freed_block_besides(struct evidence_list *l)
{
	narrow(l);
	add(l, made_freed_use(1, false));
}

/* Two watched blocks of one trial are one witness. */
static void twice_in_one_trial(struct evidence_list *l)
{
	once_only(l);
	add(l, made_write((struct made_write){ .trial = 1, .width = 1 }))->write->home.block_id = 5;
}

/* Somebody at the source, but in one of three: the copy is all that is sure. */
static void source_now_and_then(struct evidence_list *l)
{
	struct evidence *e;

	only_copied(l);
	e = add(l, made_write((struct made_write){ .trial = 1, .writer = "slot_fill" }));
	make_slot(&e->write->home);
	for (unsigned int i = 2; i <= 3; i++) {
		e = add(l, made_watch(i, 0));
		make_slot(&e->watch->home);
	}
}

/* A constructor's NULL is no defect of the word; the two objects are the answer. */
static void conflation_and_a_constructor(struct evidence_list *l)
{
	constructor(l);
	conflated(l);
}

static void source_whole(struct evidence_list *l)
{
	cached_chain(l, SOURCE_SAME, FIT_EXACT);
}

/* Not seen to be half a value: what does no harm elsewhere may do none here. */
static void cached_changed_and_quiet(struct evidence_list *l)
{
	cached_chain(l, SOURCE_CHANGED, FIT_EXACT);
	add_quiet_half(l);
}

static void cached_slot_unknown(struct evidence_list *l)
{
	caught(l, (struct made_write){ .flags = WRITE_COPIED }, 2);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			make_slot(&e->write->source);
			e->write->source_state = SOURCE_CHANGED;
		}
}

static void race_nothing_lost(struct evidence_list *l)
{
	add(l, made_race(1, false));
	add(l, made_race(2, false));
}

static void race_locked(struct evidence_list *l)
{
	race(l);
	VEC_FOREACH (&l->list, e)
		e->race->locked = true;
}

static void race_of_one_thread(struct evidence_list *l)
{
	race(l);
	VEC_FOREACH (&l->list, e)
		e->race->second->tid = e->race->first->tid;
}

static void mapping_whole(struct evidence_list *l)
{
	add(l, made_mapping(1, true))->mapping->present = 8192;
}

static void mapping_by_nobody(struct evidence_list *l)
{
	add(l, made_mapping(1, false));
}

static void outside_with_a_gap(struct evidence_list *l)
{
	outside(l);
	VEC_FOREACH (&l->list, e)
		e->outside->gap = true;
}

static void outside_one_bit(struct evidence_list *l)
{
	add(l, made_outside(1, 0x97, 0x96));
	add(l, made_outside(2, 0x97, 0x96));
}

static void outside_without_syscalls(struct evidence_list *l)
{
	outside(l);
	VEC_FOREACH (&l->list, e)
		e->outside->kernel_writes = false;
}

static void outside_but_caught(struct evidence_list *l)
{
	narrow(l);
	add(l, made_outside(1, 0x97, 0x1234));
	add(l, made_outside(2, 0x97, 0x1234));
}

static void written_after_all(struct evidence_list *l)
{
	uninitialised(l);
	VEC_FOREACH (&l->list, e)
		e->watch->hits = 1;
}

static void watched_too_late(struct evidence_list *l)
{
	uninitialised(l);
	VEC_FOREACH (&l->list, e)
		e->watch->since_birth = false;
}

static void the_same_bit_every_time(struct evidence_list *l)
{
	machine_signs(l);
	l->list.items[0].host->flip_homes = l->list.items[0].host->flip_bits = 1;
}

static void one_sign(struct evidence_list *l)
{
	machine_signs(l);
	l->list.items[0].host->core = -1;
}

static void memory_test_clean(struct evidence_list *l)
{
	bad_memory(l);
	l->list.items[0].host->memory_errors = 0;
}

static void signs_but_a_writer(struct evidence_list *l)
{
	narrow(l);
	machine_signs(l);
	*l->list.items[l->list.count - 1].host =
		(struct host_signs){ .bit_flips = 4, .flip_homes = 4, .core = 1, .core_p = 1e-9 };
}

static void growth_in_some_trials(struct evidence_list *l)
{
	add(l, made_growth())->growth->trials = 2;
}

static void growth_by_chance(struct evidence_list *l)
{
	add(l, made_growth())->growth->p = 0.02;
}

static void plain_now_and_then(struct evidence_list *l)
{
	add(l, made_plain(false));
}

static void plain_beside_a_crash(struct evidence_list *l)
{
	plain(l);
	add(l, made_crash(4, FAULT_NULL));
}

static void growth_beside_a_writer(struct evidence_list *l)
{
	narrow(l);
	growth(l);
}

#define FIRM true
#define DOUBTED false

static const struct row {
	const char *name;
	void (*make)(struct evidence_list *list);
	enum verdict_class class;
	bool firm;
	const char *writer; /* function of the accused; NULL: nobody */
} rows[] = {
#define ROW(make, class, firm, writer)                     \
	{                                                  \
#make, make, VERDICT_##class, firm, writer \
	}
	ROW(narrow, NARROW_WRITE, FIRM, "jit_code"),
	ROW(narrow_native, NARROW_WRITE, FIRM, "tag_clear"),
	ROW(narrow_in_a_pool, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(repeated, NARROW_WRITE, FIRM, "jit_code"),
	ROW(others_are_no_excuse, NARROW_WRITE, FIRM, "jit_code"),
	ROW(growth_beside_a_writer, NARROW_WRITE, FIRM, "jit_code"),
	ROW(outside_but_caught, NARROW_WRITE, FIRM, "jit_code"),
	ROW(signs_but_a_writer, NARROW_WRITE, FIRM, "jit_code"),
	ROW(only_in_passing_trials, NOT_CAUGHT, DOUBTED, NULL),
	ROW(imprecise, NOT_CAUGHT, DOUBTED, NULL),
	ROW(same_value, NOT_CAUGHT, DOUBTED, NULL),
	ROW(one_of_five, NOT_CAUGHT, DOUBTED, NULL),
	ROW(a_hop_that_says_nine_were_watched, NOT_CAUGHT, DOUBTED, NULL),
	ROW(not_the_last, NOT_CAUGHT, DOUBTED, NULL),
	ROW(no_fit, NOT_CAUGHT, DOUBTED, NULL),
	ROW(another_block_watched, NOT_CAUGHT, DOUBTED, NULL),
	ROW(once_only, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(two_of_three, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(rightful_elsewhere, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(rightful_in_another_block, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(value_not_seen, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(constructor, NARROW_WRITE, DOUBTED, "dict_new"),
	ROW(only_copied, NARROW_WRITE, DOUBTED, "clone"),
	ROW(unmapped_since, NARROW_WRITE, DOUBTED, "view_open"),
	ROW(never_an_address, NARROW_WRITE, FIRM, "view_open"),
	ROW(a_readable_address, NARROW_WRITE, DOUBTED, "job_new"),
	ROW(set_to_null, NARROW_WRITE, DOUBTED, "conn_close"),
	ROW(half_set_to_null, NARROW_WRITE, FIRM, "conn_close"),
	ROW(freed_block_besides, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(twice_in_one_trial, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(source_now_and_then, NARROW_WRITE, DOUBTED, "clone"),
	ROW(another_thread_too, NARROW_WRITE, DOUBTED, "jit_code"),

	ROW(wide, WIDE_WRITE, FIRM, "jit_code"),
	ROW(whole_object, WIDE_WRITE, DOUBTED, "jit_code"),
	ROW(piece_of_a_copy, WIDE_WRITE, DOUBTED, "title_set"),
	ROW(pointer_to_a_live_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(pointer_behind_its_block, OVERFLOW, FIRM, "fill"),

	ROW(overflow, OVERFLOW, FIRM, "fill"),
	ROW(overflow_from_inside, OVERFLOW, FIRM, "fill"),
	ROW(overflow_of_a_canary, OVERFLOW, FIRM, "fill"),
	ROW(far_away, OVERFLOW, DOUBTED, "fill"),
	ROW(damage_only, OVERFLOW, DOUBTED, NULL),
	ROW(damage_not_adjacent, NOT_CAUGHT, DOUBTED, NULL),
	ROW(underflow, UNDERFLOW, FIRM, "fill"),
	ROW(underflow_of_a_canary, UNDERFLOW, FIRM, "fill"),
	ROW(underflow_onto_another_canary, UNDERFLOW, FIRM, "fill"),
	ROW(a_pointer_that_left_its_block, OVERFLOW, FIRM, "fill"),
	ROW(part_of_a_field_in_passing, NARROW_WRITE, DOUBTED, "trim"),
	ROW(damage_before, UNDERFLOW, DOUBTED, NULL),

	ROW(after_free, WRITE_AFTER_FREE, FIRM, "late_store"),
	ROW(after_free_inferred, WRITE_AFTER_FREE, DOUBTED, "late_store"),
	ROW(crash_writes_freed, WRITE_AFTER_FREE, FIRM, "clone_statement"),
	ROW(poison_damaged, WRITE_AFTER_FREE, DOUBTED, NULL),

	ROW(freed_used, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_in_the_crash, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_used_once, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(recycled_only, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(a_former_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(a_freed_block_nearby, NOT_CAUGHT, DOUBTED, NULL),

	ROW(double_free, DOUBLE_FREE, FIRM, "cache_drop"),
	ROW(free_in_a_passing_trial, DOUBLE_FREE, DOUBTED, "cache_drop"),
	ROW(interior_free, INVALID_FREE, FIRM, "cache_drop"),
	ROW(mismatched, INVALID_FREE, DOUBTED, "cache_drop"),
	ROW(mismatched_beside_damage, OVERFLOW, DOUBTED, NULL),
	ROW(mismatched_beside_a_wrong_pointer, INVALID_FREE, FIRM, "line_drop"),
	ROW(foreign, INVALID_FREE, DOUBTED, "cache_drop"),

	ROW(dangling, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(dangling_by_write, DANGLING_HOLDER, FIRM, "rehome"),
	ROW(dangling_by_value, DANGLING_HOLDER, FIRM, "rehome"),
	ROW(pointer_to_a_recycled_place, USE_AFTER_FREE, FIRM, NULL),
	ROW(holder_with_gaps, DANGLING_HOLDER, FIRM, NULL),
	ROW(double_free_of_what_is_held, DOUBLE_FREE, FIRM, "cache_drop"),
	ROW(double_free_of_another, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(held_on_a_stack, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(held_on_a_stack_to_two_kinds, USE_AFTER_FREE, FIRM, NULL),
	ROW(holder_by_looks, USE_AFTER_FREE, FIRM, NULL),
	ROW(holder_never_used, NOT_CAUGHT, DOUBTED, NULL),
	ROW(holder_of_a_live_block, USE_AFTER_FREE, FIRM, NULL),

	ROW(conflated, INSTANCE_CONFLATION, FIRM, NULL),
	ROW(conflated_by_inference, INSTANCE_CONFLATION, DOUBTED, NULL),
	ROW(conflation_and_a_constructor, INSTANCE_CONFLATION, FIRM, NULL),
	ROW(conflation_and_other_writes, INSTANCE_CONFLATION, FIRM, NULL),
	ROW(conflation_unwatched, INSTANCE_CONFLATION, DOUBTED, NULL),
	ROW(one_id_at_one_address, NOT_CAUGHT, DOUBTED, NULL),
	ROW(conflation_and_a_write, NOT_CAUGHT, DOUBTED, NULL),

	ROW(cached_torn, STALE_CACHED_VALUE, FIRM, "type_cache_open"),
	ROW(cached_torn_and_quiet, STALE_CACHED_VALUE, FIRM, "type_cache_open"),
	ROW(cached_changed_and_quiet, STALE_CACHED_VALUE, DOUBTED, "type_cache_open"),
	ROW(cached_half_written, STALE_CACHED_VALUE, FIRM, "type_cache_open"),
	ROW(cached_replaced_after, STALE_CACHED_VALUE, FIRM, "type_cache_open"),
	ROW(cached_slot_unknown, STALE_CACHED_VALUE, DOUBTED, "jit_code"),
	ROW(source_whole, NARROW_WRITE, FIRM, "type_cache_open"),

	ROW(race, RACE, FIRM, "object_unref"),
	ROW(race_nothing_lost, RACE, DOUBTED, "object_unref"),
	ROW(race_and_a_free, RACE, FIRM, "object_unref"),
	ROW(turns_and_a_free, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(race_in_one_of_five, NOT_CAUGHT, DOUBTED, NULL),
	ROW(overflow_of_its_own_block, OVERFLOW, FIRM, "reset"),
	ROW(race_locked, NOT_CAUGHT, DOUBTED, NULL),
	ROW(race_of_one_thread, NOT_CAUGHT, DOUBTED, NULL),

	ROW(mapping, MAPPING_TRUNCATED, FIRM, "cache_store"),
	ROW(mapping_by_nobody, MAPPING_TRUNCATED, DOUBTED, NULL),
	ROW(mapping_whole, NOT_CAUGHT, DOUBTED, NULL),

	ROW(outside, OUTSIDE_WRITER, FIRM, NULL),
	ROW(outside_one_bit, OUTSIDE_WRITER, DOUBTED, NULL),
	ROW(outside_without_syscalls, OUTSIDE_WRITER, DOUBTED, NULL),
	ROW(outside_with_a_gap, NOT_CAUGHT, DOUBTED, NULL),

	ROW(uninitialised, UNINITIALISED, FIRM, NULL),
	ROW(zero_from_birth_on, NOT_CAUGHT, DOUBTED, NULL),
	ROW(written_after_all, NOT_CAUGHT, DOUBTED, NULL),
	ROW(watched_too_late, NOT_CAUGHT, DOUBTED, NULL),

	ROW(bad_memory, HOST_SUSPECTED, FIRM, NULL),
	ROW(machine_signs, HOST_SUSPECTED, DOUBTED, NULL),
	ROW(the_same_bit_every_time, NOT_CAUGHT, DOUBTED, NULL),
	ROW(one_sign, NOT_CAUGHT, DOUBTED, NULL),
	ROW(memory_test_clean, NOT_CAUGHT, DOUBTED, NULL),

	ROW(growth, LEAK_GROWTH, FIRM, "group_new"),
	ROW(growth_in_some_trials, NOT_CAUGHT, DOUBTED, NULL),
	ROW(growth_by_chance, NOT_CAUGHT, DOUBTED, NULL),

	ROW(plain, NOT_MEMORY, FIRM, NULL),
	ROW(plain_now_and_then, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_beside_a_crash, NOT_CAUGHT, DOUBTED, NULL),

	ROW(nothing, NOT_CAUGHT, DOUBTED, NULL),
#undef ROW
};

static void judge(void (*make)(struct evidence_list *), struct evidence_list *list,
		  struct verdict *ret)
{
	make(list);
	verdict_judge(list, ret);
}

/* Whatever it is: counts hold together, doubts go with doubt, nobody is accused without a class. */
static void check_sound(const char *name, const struct verdict *v)
{
	if (!v->sentence || v->sentence[0] == '\0')
		fail_msg("%s: no sentence", name);
	if (v->caught > v->watched)
		fail_msg("%s: caught %d of %d", name, (int)v->caught, (int)v->watched);
	if (v->class == VERDICT_NOT_CAUGHT) {
		if (v->writer.count > 0 || v->firm || !v->next || v->caught > 0)
			fail_msg("%s: not caught, and yet", name);
		return;
	}
	if (v->firm != (v->doubts.count == 0))
		fail_msg("%s: firm %d with %zu doubts", name, v->firm, v->doubts.count);
	if (v->evidence.count == 0)
		fail_msg("%s: a class without evidence", name);
	VEC_FOREACH (&v->hypotheses, h) {
		if ((h->status != HYPOTHESIS_OPEN) != (h->because != NULL))
			fail_msg("%s: %s was decided by nothing", name, h->id);
		if (h->status != HYPOTHESIS_OPEN && h->evidence.count == 0)
			fail_msg("%s: %s was decided without evidence", name, h->id);
	}
}

static void every_rule_fires_and_nearly_fires(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		const struct frame *site;
		const char *writer;

		judge(rows[i].make, &list, &v);
		site = stack_site(&v.writer) ?: v.writer.frames;
		writer = site ? site->function : NULL;
		if (v.class != rows[i].class || v.firm != rows[i].firm)
			fail_msg("%s: %s%s, wanted %s%s: %s %s", rows[i].name,
				 verdict_class_name(v.class), v.firm ? "" : " (doubted)",
				 verdict_class_name(rows[i].class),
				 rows[i].firm ? "" : " (doubted)", v.sentence,
				 v.doubts.count > 0 ? v.doubts.items[0] : "");
		if (!rows[i].writer != !writer || (writer && strcmp(writer, rows[i].writer) != 0))
			fail_msg("%s: accuses %s", rows[i].name, writer ? writer : "nobody");
		check_sound(rows[i].name, &v);
	}
}

/* Each class has a row that states it firmly and one that nearly does. */
static void no_class_is_left_out(void **state)
{
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++) {
		bool fires = class == VERDICT_NOT_CAUGHT;

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			fires = fires || (rows[i].class == class && rows[i].firm);
		if (!fires)
			fail_msg("nothing fires %s", verdict_class_name(class));
	}
}

static const struct verdict_hypothesis *hypothesis(const struct verdict *v, const char *id)
{
	VEC_FOREACH (&v->hypotheses, h)
		if (strcmp(h->id, id) == 0)
			return h;
	fail_msg("no hypothesis %s", id);
	return NULL;
}

/* Where two fit, both are shown. */
static void an_inferred_free_leaves_the_other_class(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	after_free_inferred(&list);
	verdict_judge(&list, &v);
	assert_int_equal(v.class, VERDICT_WRITE_AFTER_FREE);
	assert_int_equal(v.alternatives.count, 1);
	assert_int_equal(v.alternatives.items[0].class, VERDICT_NARROW_WRITE);
	assert_int_equal(hypothesis(&v, "narrow")->status, HYPOTHESIS_OPEN);
}

static void where_nothing_failed_no_trial_is_called_failing(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 }, found = { 0 };

	judge(overflow_of_a_canary, &list, &v);
	assert_non_null(strstr(v.sentence, "caught in 2 of 2 failing trials"));
	list.failed = 0;
	verdict_judge(&list, &found);
	assert_non_null(strstr(found.sentence, "caught in 2 of 2 trials"));
}

static void a_firm_verdict_decides_the_others(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(narrow, &list, &v);
	assert_int_equal(hypothesis(&v, "narrow")->status, HYPOTHESIS_CONFIRMED);
	assert_int_equal(hypothesis(&v, "wide")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "conflated")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "cached")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "stale")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "host")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "race")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "plain")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "growth")->status, HYPOTHESIS_OPEN);
	/* The observation that did it has its number. */
	assert_int_equal(list.list.items[hypothesis(&v, "wide")->evidence.items[0] - 1].kind,
			 EVIDENCE_WRITE);
	assert_int_equal(list.list.items[hypothesis(&v, "race")->evidence.items[0] - 1].kind,
			 EVIDENCE_WATCH);
	assert_int_equal(v.caught, 3);
	assert_int_equal(v.watched, 3);
	assert_int_equal(v.trials, 41);
	assert_non_null(strstr(v.sentence, "caught in 3 of 3 failing trials"));
	assert_non_null(strstr(v.sentence, "41 trials run"));
	assert_null(v.next);
	assert_int_equal(list.list.items[v.crash - 1].kind, EVIDENCE_CRASH);
	assert_int_equal(v.steps.count, 3); /* allocated, written, failed */
}

static void a_doubted_verdict_decides_little(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(once_only, &list, &v);
	assert_int_equal(hypothesis(&v, "narrow")->status, HYPOTHESIS_OPEN);
	assert_int_equal(hypothesis(&v, "wide")->status, HYPOTHESIS_OPEN);
	assert_int_equal(hypothesis(&v, "race")->status, HYPOTHESIS_OPEN);
	/* But the very block was seen to be written: that was no mix-up. */
	assert_int_equal(hypothesis(&v, "conflated")->status, HYPOTHESIS_FALSIFIED);
	assert_non_null(v.next);
}

static void two_that_fit_are_both_shown(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	race_nothing_lost(&list);
	damage_only(&list);
	verdict_judge(&list, &v);
	assert_int_equal(v.class, VERDICT_OVERFLOW);
	assert_int_equal(v.alternatives.count, 1);
	assert_int_equal(v.alternatives.items[0].class, VERDICT_RACE);
	assert_true(strlen(v.alternatives.items[0].tell_apart) > 20);
	assert_true(v.alternatives.items[0].evidence.count > 0);
}

/* A holder says all that a use says, and more: it is no rival. */
static void what_is_covered_is_no_rival(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(dangling, &list, &v);
	assert_int_equal(v.alternatives.count, 0);
	assert_int_equal(list.list.items[v.holder - 1].kind, EVIDENCE_HOLDER);
	assert_int_equal(v.steps.count, 3); /* allocated, stored, freed */
	assert_string_equal(v.steps.items[1].what, "the pointer is stored here");
	assert_string_equal(v.steps.items[2].what, "it is freed here");
}

/* Nobody was seen storing the pointer: a bad write may have done it. */
static void an_unknown_writer_leaves_more_open(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(holder_with_gaps, &list, &v);
	assert_int_equal(hypothesis(&v, "dangling")->status, HYPOTHESIS_CONFIRMED);
	assert_int_equal(hypothesis(&v, "conflated")->status, HYPOTHESIS_FALSIFIED);
	assert_int_equal(hypothesis(&v, "narrow")->status, HYPOTHESIS_OPEN);
}

static void what_is_left_open_is_told(void **state)
{
	static const struct {
		void (*make)(struct evidence_list *);
		const char *next, *open;
	} cases[] = {
		{ nothing, "redhand repro", "narrow: " },
		{ imprecise, "--mode pages", "came in late" },
		{ one_of_five, "--mode pages", "1 of 5 failing trials" },
		{ outside_with_a_gap, "from its birth", "outside: " },
		{ zero_from_birth_on, "--mode pages",
		  "2 failing trials: a value that was never set" },
		{ plain_beside_a_crash, "redhand chase --from 4", "race: " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		bool found = false;

		judge(cases[i].make, &list, &v);
		for (size_t k = 0; k < v.open.count; k++)
			found = found || strstr(v.open.items[k], cases[i].open);
		if (!found || !strstr(v.next, cases[i].next))
			fail_msg("case %zu: %s", i, v.next);
	}
}

/* Any subset of any evidence gives a sound verdict, in any order. */
static void nonsense_is_judged_soundly(void **state)
{
	uint64_t random = 4711; /* the seed */

	for (unsigned int round = 0; round < 400; round++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		char name[32];

		for (unsigned int i = 0; i < 24; i++) {
			struct evidence *e;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			e = add(&list, made_any((unsigned int)(random >> 40) % EVIDENCE_KINDS));
			e->trial = (random >> 33) % 4;
			e->failing = (random >> 32) % 4 != 0;
			if (e->kind == EVIDENCE_WRITE && (random >> 50) % 2) {
				e->write->flags = (unsigned int)(random >> 20) % 128;
				block_life_free(e->write->base);
				e->write->base = NULL;
			}
			if (e->kind == EVIDENCE_CANARY && (random >> 51) % 2) {
				block_life_free(e->canary->block);
				e->canary->block = NULL;
			}
		}
		verdict_judge(&list, &v);
		(void)snprintf(name, sizeof(name), "round %u", round);
		check_sound(name, &v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_fires_and_nearly_fires),
		cmocka_unit_test(no_class_is_left_out),
		cmocka_unit_test(an_inferred_free_leaves_the_other_class),
		cmocka_unit_test(where_nothing_failed_no_trial_is_called_failing),
		cmocka_unit_test(a_firm_verdict_decides_the_others),
		cmocka_unit_test(a_doubted_verdict_decides_little),
		cmocka_unit_test(two_that_fit_are_both_shown),
		cmocka_unit_test(what_is_covered_is_no_rival),
		cmocka_unit_test(an_unknown_writer_leaves_more_open),
		cmocka_unit_test(what_is_left_open_is_told),
		cmocka_unit_test(nonsense_is_judged_soundly),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
