/*
 * Writes that should not be: narrow and wide ones, and those over the end of a block.
 */
#include "verdict_stories.h"

void narrow(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1 }, 3);
}

static void narrow_in_a_pool(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .traits = MADE_FREE_UNSEEN }, 3);
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
	caught(l, (struct made_write){ .writer = "list_add", .width = 8, .traits = MADE_SOUND }, 3);
}

/* A byte of a pointer was changed: that it leads to a live block now is chance. */
static void byte_of_a_pointer(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .traits = MADE_SOUND }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->old = 0x7f0000001078;
			e->write->new = 0x7f0000001038;
		}
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
			made_traits(e->write, MADE_SOUND);
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

/* Four bytes between the block and the damage are whole. */
static void apart_from_the_block(struct evidence_list *l)
{
	canary_watched(l, 60);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->base->beyond = true;
			e->write->store_start = MADE_BLOCK + 60;
		}
}

/* A store of four bytes right behind the block, of which the last one alone was another before. */
static void only_the_last_byte_changed(struct evidence_list *l)
{
	apart_from_the_block(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->store_start = MADE_BLOCK + 56;
			e->write->store_len = 8;
		}
}

/* The same with an index that went too far: the pointer is to the block. */
static void index_behind_the_block(struct evidence_list *l)
{
	canary_watched(l, 60);
}

static void underflow_of_a_canary(struct evidence_list *l)
{
	canary_watched(l, -1);
}

/* The canary behind one block was watched; the pointer that hit it is to the next block, whose
 * start lies 40 bytes on, or has left whatever it was of. */
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

/* std::sort with a comparison that is none: a whole element, moved up by a loop that did not stop.
 */
static void element_in_passing(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "sort", .width = 4, .start = 4, .traits = MADE_LOOP },
	       3);
}

/* Guards were around all blocks while it failed in the same way, and none was broken. */
static void part_of_a_field_with_whole_guards(struct evidence_list *l)
{
	part_of_a_field_in_passing(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 6));
}

static void element_with_whole_guards(struct evidence_list *l)
{
	element_in_passing(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 6));
}

/* They looked at too few failing trials, or one was broken. */
static void element_with_few_guards(struct evidence_list *l)
{
	element_in_passing(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 4));
}

static void element_with_a_broken_guard(struct evidence_list *l)
{
	element_with_whole_guards(l);
	add(l, made_canary(3, CANARY_AFTER));
}

static void wide_element_in_passing(struct evidence_list *l)
{
	wide(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_LOOP);
}

static void runs_all(struct evidence_list *l)
{
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_LOOP);
}

/* The pointer is in one block, what it hit in the other: it may have come either way. */
static void overflow_in_a_loop(struct evidence_list *l)
{
	overflow(l);
	runs_all(l);
}

/* A guard tells by itself. */
static void canary_in_a_loop(struct evidence_list *l)
{
	overflow_of_a_canary(l);
	runs_all(l);
}

/* It ran down onto the guard behind one block: out of the next. */
static void canary_from_above(struct evidence_list *l)
{
	canary_in_a_loop(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_LOOP_DOWN);
}

/* It came by there, and nobody kept a pointer to what was freed. */
static void out_of_a_freed_neighbour(struct evidence_list *l)
{
	overflow(l);
	runs_all(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->base->state = BLOCK_FREED;
}

void make_slot(struct home *home)
{
	home_deinit(home);
	*home = (struct home){ .kind = HOME_GLOBAL,
			       .name = mem_strdup("no_grad_type"),
			       .field = mem_strdup("no_grad_type.cache.slot"),
			       .offset = 32,
			       .len = 8 };
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
void a_readable_address(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "job_new", .width = 8, .traits = MADE_READABLE },
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

static void only_in_passing_trials(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 5; i++)
		add(l, made_write((struct made_write){ .trial = i, .passing = true, .width = 1 }));
	add(l, made_crash(9, FAULT_NULL));
}

void imprecise(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .flags = WRITE_ASYNC }, 3);
}

static void same_value(struct evidence_list *l)
{
	caught(l, (struct made_write){ .width = 1, .old = 5, .new = 5 }, 3);
}

void one_of_five(struct evidence_list *l)
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

void once_only(struct evidence_list *l)
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

void constructor(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "dict_new", .old = 7, .new = 0, .traits = MADE_FIRST },
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

void damage_only(struct evidence_list *l)
{
	add(l, made_canary(1, CANARY_AFTER));
	add(l, made_canary(2, CANARY_AFTER));
}

static void damage_before(struct evidence_list *l)
{
	add(l, made_canary(1, CANARY_BEFORE));
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

static void outside_but_caught(struct evidence_list *l)
{
	narrow(l);
	add(l, made_outside(1, 0x97, 0x1234));
	add(l, made_outside(2, 0x97, 0x1234));
}

static void signs_but_a_writer(struct evidence_list *l)
{
	narrow(l);
	machine_signs(l);
	*l->list.items[l->list.count - 1].host =
		(struct host_signs){ .bit_flips = 4, .flip_homes = 4, .core = 1, .core_p = 1e-9 };
}

static void growth_beside_a_writer(struct evidence_list *l)
{
	narrow(l);
	growth(l);
}

/* The decoder did not say how many bytes were written. */
static void width_unknown(struct evidence_list *l)
{
	narrow(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->width = 0;
}

/* A field of four bytes; what differs lies behind them. */
static void changed_beyond_the_field(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "count_up", .width = 4, .old = 0x100000005, .new = 0x200000005 },
	       3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->value_len = 4;
}

/* A program without symbols: the place in the file tells one writer from another. */
static void writer_without_a_name(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "stripped", .width = 1 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			stack_deinit(&e->write->writer);
			made_frame(&e->write->writer, NULL, NULL, 31, FRAME_NATIVE);
		}
}

/* One function, and in one of three trials its store was another, wider one. */
static void written_in_two_ways(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "pack", .width = 8 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE && e->trial == 3) {
			e->write->store_start -= 4;
			e->write->fit = FIT_WIDE;
		}
}

/* The block that was watched had been freed; whose pointer it was is not known. */
static void into_a_block_that_is_gone(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "late_store" }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			block_life_free(e->write->victim);
			e->write->victim = made_block(4, MADE_BLOCK, 56, BLOCK_FREED);
			block_life_free(e->write->base);
			e->write->base = NULL;
		}
}

#define A_POINTER 0x7f0000000040
#define A_NUMBER 0x70010000000020c3

/* An arena: what it leaves is no address, and so it was when nothing failed. */
static void lays_it_out_anew(struct evidence_list *l, unsigned int times, uint64_t left)
{
	caught(l, (struct made_write){ .writer = "lex", .old = A_POINTER, .new = 0xa26 }, 3);
	for (unsigned int i = 0; i < times; i++)
		add(l, made_write((struct made_write){ .trial = 8 + i,
						       .passing = true,
						       .writer = "lex",
						       .old = A_POINTER + 64 * i,
						       .new = left + 8 * i }));
}

static void another_kind_of_object(struct evidence_list *l)
{
	lays_it_out_anew(l, 3, 0x2ca);
}

static void such_a_value_twice(struct evidence_list *l)
{
	lays_it_out_anew(l, 2, 0x2ca);
}

/* Out of another block it is no habit, however often it did no harm. */
static void runs_over_often(struct evidence_list *l)
{
	lays_it_out_anew(l, 3, 0x2ca);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			block_life_free(e->write->base);
			e->write->base = made_block(7, MADE_BLOCK - 48, 48, BLOCK_LIVE);
		}
}

/* What stood there before was no address either. */
static void number_over_number(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "timer_arm", .old = A_NUMBER, .new = A_NUMBER + 77 },
	       3);
}

static void passing_writes(struct evidence_list *l, const char *writer, uint64_t old)
{
	for (unsigned int i = 0; i < 3; i++)
		add(l, made_write((struct made_write){ .trial = 8 + i,
						       .passing = true,
						       .writer = writer,
						       .old = old,
						       .new = A_NUMBER + 500 + i }));
}

/* … nor was it in trials that passed: whoever reads it takes the object for another. */
void numbers_all_the_time(struct evidence_list *l)
{
	number_over_number(l);
	passing_writes(l, "timer_arm", A_NUMBER - 5);
}

/* … but an address had stood there before, which it replaced itself. */
static void number_over_its_own(struct evidence_list *l)
{
	number_over_number(l);
	for (unsigned int i = 1; i <= 3; i++)
		add(l, made_write((struct made_write){ .trial = i,
						       .writer = "timer_arm",
						       .old = A_POINTER,
						       .new = A_NUMBER,
						       .not_flags = WRITE_LAST | WRITE_FOUND }));
}

/* Numbers in place of numbers are no harm; in place of an address this one was. */
static void number_over_an_address(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "rescale", .old = A_POINTER, .new = A_NUMBER }, 3);
	passing_writes(l, "rescale", A_NUMBER - 5);
}

/* A mark for 'deleted': the reader may have to know it. */
static void marked_as_gone(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "table_del", .old = A_POINTER, .new = UINT64_MAX },
	       3);
}

static void marked_by_name(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "table_del",
				    .old = A_POINTER,
				    .new = UINT64_MAX,
				    .traits = MADE_NAMED },
	       3);
}

/* The bad value stood elsewhere, too, and nobody saw from where it was read. */
static void one_of_twins(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "ticket_note",
				    .old = A_POINTER,
				    .new = 0x7300000000000000,
				    .traits = MADE_TWIN },
	       3);
}

static void passing_number(struct evidence_list *l, uint64_t trial)
{
	add(l, made_write((struct made_write){ .trial = trial,
					       .passing = true,
					       .writer = "ticket_note",
					       .new = 0x7300000000000000 + trial }));
}

/* … and what is put here is a number in trials that pass, too. */
static void twin_of_numbers(struct evidence_list *l)
{
	one_of_twins(l);
	passing_number(l, 8);
	passing_number(l, 9);
}

/* … in one: it may be the same slip, which did no harm there. */
static void twin_of_a_number(struct evidence_list *l)
{
	one_of_twins(l);
	passing_number(l, 8);
}

/* … an address: nothing speaks against the place. */
static void twin_of_addresses(struct evidence_list *l)
{
	one_of_twins(l);
	add(l,
	    made_write((struct made_write){
		    .trial = 8, .passing = true, .writer = "ticket_note", .new = A_POINTER + 64 }));
}

/* It wrote there before, and what belongs there. */
static void right_before(struct evidence_list *l)
{
	lays_it_out_anew(l, 5, A_POINTER + 8);
}

static void address_of_a_block(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "queue_pop",
				    .old = A_POINTER,
				    .new = A_POINTER + 64,
				    .traits = MADE_NAMED | MADE_POINTER },
	       3);
}

/* A pointer that runs over fields: it may be anything's address. */
static void address_of_a_block_unnamed(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "copy_row",
				    .old = A_POINTER,
				    .new = A_POINTER + 64,
				    .traits = MADE_POINTER },
	       3);
}

/* Two numbers, which somebody reads as one pointer. */
static void field_in_parts(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "fraction_reduce",
				    .start = 4,
				    .width = 4,
				    .old = 9,
				    .new = 0x800000009,
				    .traits = MADE_PARTS },
	       3);
}

static void object_inside_the_block(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "measure",
				    .old = A_POINTER,
				    .new = 0x4012000000000000,
				    .traits = MADE_PIECE },
	       3);
}

/* The first one lies at the block's start, and is named. */
static void first_object_of_an_arena(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){ .writer = "measure",
				    .old = A_POINTER,
				    .new = 0x4012000000000000,
				    .traits = MADE_NAMED },
	       3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->victim->size = e->write->base->size = 4096;
}

static void update_in_an_arena(struct evidence_list *l)
{
	first_object_of_an_arena(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->flags |= WRITE_UPDATE;
}

/* A wrong mask has nothing to do with whose place it is. */
static void update_inside_the_block(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "flags_drop", .flags = WRITE_UPDATE, .traits = MADE_PIECE },
	       3);
}

/* The owner of a new block sets all of it. */
static void new_block_filled(struct evidence_list *l)
{
	whole_object(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->age = 0;
			made_traits(e->write, MADE_OPENS);
		}
}

/* It had been set up before. */
static void new_block_reset(struct evidence_list *l)
{
	new_block_filled(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->nth_of_block = 2;
}

/* A copy that runs over the end of its block, into one that was freed. */
static void runs_into_freed(struct evidence_list *l)
{
	canary_watched(l, 56);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			e->write->store_start = MADE_BLOCK + 56;
			block_life_free(e->write->base);
			e->write->base = made_block(9, MADE_BLOCK + 96, 160, BLOCK_FREED);
		}
}

/* The run of damage begins at one block's end and ends at the next one's start. */
static void contested_canary(struct evidence_list *l)
{
	a_pointer_that_left_its_block(l);
	add(l, made_canary(1, CANARY_AFTER))->canary->goes_on_at = mem_strdup("beef");
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			struct block_life *block = l->list.items[l->list.count - 1].canary->block;

			mem_free(block->key);
			block->key = mem_strdup(e->write->home.key);
		}
}

/* … and the pointer says which was meant. */
static void contested_but_meant(struct evidence_list *l)
{
	contested_canary(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE) {
			make_base(e, 0, 56);
			e->write->base->beyond = false;
		}
}

/* … which says nothing in a loop. */
static void contested_by_a_runner(struct evidence_list *l)
{
	contested_but_meant(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_LOOP);
}

static void contested_damage(struct evidence_list *l)
{
	damage_only(l);
	VEC_FOREACH (&l->list, e)
		e->canary->goes_on_at = mem_strdup("beef");
}

const struct story stories_write[] = {
	ROW(another_kind_of_object, NOT_CAUGHT, DOUBTED, NULL),
	ROW(such_a_value_twice, NARROW_WRITE, DOUBTED, "lex"),
	ROW(runs_over_often, OVERFLOW, FIRM, "lex"),
	ROW(right_before, NARROW_WRITE, FIRM, "lex"),
	ROW(address_of_a_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(address_of_a_block_unnamed, NARROW_WRITE, FIRM, "copy_row"),
	ROW(field_in_parts, NOT_CAUGHT, DOUBTED, NULL),
	ROW(object_inside_the_block, NARROW_WRITE, DOUBTED, "measure"),
	ROW(first_object_of_an_arena, NARROW_WRITE, DOUBTED, "measure"),
	ROW(update_in_an_arena, NARROW_WRITE, FIRM, "measure"),
	ROW(update_inside_the_block, NARROW_WRITE, FIRM, "flags_drop"),
	ROW(new_block_filled, NOT_CAUGHT, DOUBTED, NULL),
	ROW(new_block_reset, WIDE_WRITE, DOUBTED, "jit_code"),
	ROW(runs_into_freed, OVERFLOW, FIRM, "fill"),
	ROW(narrow, NARROW_WRITE, FIRM, "jit_code"),
	ROW(narrow_native, NARROW_WRITE, FIRM, "tag_clear"),
	ROW(width_unknown, NARROW_WRITE, FIRM, "jit_code"),
	ROW(changed_beyond_the_field, NOT_CAUGHT, DOUBTED, NULL),
	ROW(writer_without_a_name, NARROW_WRITE, FIRM, NULL),
	ROW(written_in_two_ways, NARROW_WRITE, DOUBTED, "pack"),
	ROW(into_a_block_that_is_gone, WRITE_AFTER_FREE, FIRM, "late_store"),
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

	ROW(number_over_number, NARROW_WRITE, DOUBTED, "timer_arm"),
	ROW(numbers_all_the_time, NOT_CAUGHT, DOUBTED, NULL),
	ROW(number_over_its_own, NARROW_WRITE, FIRM, "timer_arm"),
	ROW(number_over_an_address, NARROW_WRITE, FIRM, "rescale"),
	ROW(marked_as_gone, NARROW_WRITE, DOUBTED, "table_del"),
	ROW(marked_by_name, NOT_CAUGHT, DOUBTED, NULL),
	ROW(one_of_twins, NARROW_WRITE, DOUBTED, "ticket_note"),
	ROW(twin_of_numbers, NOT_CAUGHT, DOUBTED, NULL),
	ROW(twin_of_a_number, NARROW_WRITE, DOUBTED, "ticket_note"),
	ROW(twin_of_addresses, NARROW_WRITE, DOUBTED, "ticket_note"),

	ROW(wide, WIDE_WRITE, FIRM, "jit_code"),
	ROW(whole_object, WIDE_WRITE, DOUBTED, "jit_code"),
	ROW(piece_of_a_copy, WIDE_WRITE, DOUBTED, "title_set"),
	ROW(pointer_to_a_live_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(byte_of_a_pointer, NARROW_WRITE, FIRM, "jit_code"),
	ROW(pointer_behind_its_block, OVERFLOW, FIRM, "fill"),

	ROW(overflow, OVERFLOW, FIRM, "fill"),
	ROW(overflow_from_inside, OVERFLOW, FIRM, "fill"),
	ROW(overflow_of_a_canary, OVERFLOW, FIRM, "fill"),
	ROW(far_away, OVERFLOW, DOUBTED, "fill"),
	ROW(damage_only, OVERFLOW, DOUBTED, NULL),
	ROW(underflow, UNDERFLOW, FIRM, "fill"),
	ROW(index_behind_the_block, OVERFLOW, FIRM, "fill"),
	ROW(apart_from_the_block, OVERFLOW, DOUBTED, "fill"),
	ROW(only_the_last_byte_changed, OVERFLOW, FIRM, "fill"),
	ROW(underflow_of_a_canary, UNDERFLOW, FIRM, "fill"),
	ROW(underflow_onto_another_canary, UNDERFLOW, FIRM, "fill"),
	ROW(a_pointer_that_left_its_block, OVERFLOW, FIRM, "fill"),
	ROW(part_of_a_field_in_passing, NARROW_WRITE, DOUBTED, "trim"),
	ROW(contested_canary, OVERFLOW, DOUBTED, "fill"),
	ROW(contested_but_meant, OVERFLOW, FIRM, "fill"),
	ROW(contested_by_a_runner, OVERFLOW, DOUBTED, "fill"),
	ROW(contested_damage, OVERFLOW, DOUBTED, NULL),
	ROW(element_in_passing, NARROW_WRITE, DOUBTED, "sort"),
	ROW(part_of_a_field_with_whole_guards, NARROW_WRITE, FIRM, "trim"),
	ROW(element_with_whole_guards, NARROW_WRITE, FIRM, "sort"),
	ROW(element_with_few_guards, NARROW_WRITE, DOUBTED, "sort"),
	ROW(element_with_a_broken_guard, OVERFLOW, DOUBTED, NULL),
	ROW(wide_element_in_passing, WIDE_WRITE, DOUBTED, "jit_code"),
	ROW(overflow_in_a_loop, OVERFLOW, DOUBTED, "fill"),
	ROW(canary_in_a_loop, OVERFLOW, FIRM, "fill"),
	ROW(canary_from_above, OVERFLOW, DOUBTED, "fill"),
	ROW(out_of_a_freed_neighbour, NARROW_WRITE, DOUBTED, "fill"),
	ROW(damage_before, UNDERFLOW, DOUBTED, NULL),
};
const size_t stories_write_count = ARRAY_SIZE(stories_write);
