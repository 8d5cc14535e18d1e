/*
 * Pairs of stories for the considerations (judge/considerations.c): the first fires one, the second
 * differs from it in one fact. Here are the halves that no other file tells anyway.
 */
#include "verdict_stories.h"

#define EACH_WRITE(story, e)            \
	VEC_FOREACH (&(story)->list, e) \
		if (e->kind == EVIDENCE_WRITE)

/* ---- a caught store ---- */

/* The bad value stood in other places, too; the code says that it was read from this one. */
static void read_from_here(struct evidence_list *l)
{
	tell_story(l, "one_of_twins");
	EACH_WRITE (l, e)
		e->write->found.other_places = 0;
}

/* The field had a value when the constructor's function came to it again. */
static void set_up_again(struct evidence_list *l)
{
	tell_story(l, "constructor");
	EACH_WRITE (l, e)
		e->write->nth_of_object = 2;
}

/* What the address leads to is not known: it may never have been one. */
static void leads_who_knows_where(struct evidence_list *l)
{
	tell_story(l, "a_readable_address");
	EACH_WRITE (l, e)
		e->write->found.leads = LEADS_UNKNOWN;
}

/* An element of four bytes, as in element_in_passing; no loop is around the store. */
static void element_without_a_loop(struct evidence_list *l)
{
	tell_story(l, "element_in_passing");
	EACH_WRITE (l, e)
		e->write->code.motion = 0;
}

/* One byte of a pointer; the writer's pointer is to the object's start. */
static void part_of_a_field_by_its_object(struct evidence_list *l)
{
	tell_story(l, "part_of_a_field_in_passing");
	EACH_WRITE (l, e)
		e->write->base->value = MADE_BLOCK;
}

/* All of the object but its last byte. */
static void nearly_the_whole_object(struct evidence_list *l)
{
	tell_story(l, "whole_object");
	EACH_WRITE (l, e)
		e->write->store_len = 55;
}

/* The program copies with a vector store of its own. */
static void a_copy_of_its_own(struct evidence_list *l)
{
	tell_story(l, "piece_of_a_copy");
	EACH_WRITE (l, e) {
		mem_free(e->write->writer.frames[0].module);
		e->write->writer.frames[0].module = mem_strdup("/opt/app/bin/app");
	}
}

/* The allocator that was not followed has a name. */
static void narrow_in_a_named_pool(struct evidence_list *l)
{
	tell_story(l, "narrow_in_a_pool");
	EACH_WRITE (l, e)
		said_as_text(&e->note, "pool_get may deal out pieces of it");
}

/* The freed block was used in a trial of which the caught store says nothing. */
static void freed_block_in_another_trial(struct evidence_list *l)
{
	tell_story(l, "freed_block_besides");
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_FREED_USE)
			e->trial = 9;
}

/* The other thread held the same lock. */
static void another_thread_under_a_lock(struct evidence_list *l)
{
	tell_story(l, "another_thread_too");
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_RACE)
			e->race->locked = true;
}

/* The slot's value was replaced before the copy of it was used, and the slot's writer is known. */
static void cached_and_replaced(struct evidence_list *l)
{
	tell_story(l, "cached_torn");
	EACH_WRITE (l, e)
		if (e->write->source_state == SOURCE_TORN)
			e->write->source_state = SOURCE_CHANGED;
}

/* A vector store that reaches over the end of its own block; which of its elements it wrote is
 * known. */
static void masked_over_its_block(struct evidence_list *l)
{
	tell_story(l, "overflow_of_its_own_block");
	EACH_WRITE (l, e)
		e->write->flags |= WRITE_MASKED;
}

/* The same, and the mask was not recorded: perhaps only elements inside the block were written. */
static void masked_over_its_block_perhaps(struct evidence_list *l)
{
	tell_story(l, "overflow_of_its_own_block");
	EACH_WRITE (l, e) {
		e->write->flags |= WRITE_AT_MOST;
		e->write->fit = FIT_UNKNOWN;
	}
}

/* The field that was hit is another block's: whatever the mask was, the store left its own. */
static void masked_into_another_block(struct evidence_list *l)
{
	tell_story(l, "overflow_from_inside");
	EACH_WRITE (l, e) {
		e->write->flags |= WRITE_AT_MOST;
		e->write->fit = FIT_UNKNOWN;
	}
}

/* ---- a guard before a block ---- */

static void guard_before_in_a_loop(struct evidence_list *l)
{
	tell_story(l, "underflow_of_a_canary");
	EACH_WRITE (l, e)
		made_traits(e->write, MADE_LOOP);
}

/* The pointer ran up onto the guard: out of the block before it. */
static void guard_before_from_below(struct evidence_list *l)
{
	tell_story(l, "underflow_of_a_canary");
	EACH_WRITE (l, e)
		made_traits(e->write, MADE_LOOP_UP);
}

/* ---- the field's owner ---- */

/* The block's place was another kind's before, and its pointer was never stored in its life. */
static void place_of_another_kind(struct evidence_list *l)
{
	caught(l,
	       (struct made_write){
		       .writer = "text_fill", .new = 0x7878787878787878, .traits = MADE_RECYCLED },
	       3);
}

/* The reader can have come by the new block's own pointer. */
static void place_reached_by_its_owner(struct evidence_list *l)
{
	place_of_another_kind(l);
	EACH_WRITE (l, e)
		e->write->found.owner_reached = true;
}

/* It was the first thing that was done with the new block. */
static void fills_a_place_of_another_kind(struct evidence_list *l)
{
	place_of_another_kind(l);
	EACH_WRITE (l, e)
		e->write->age = 0;
}

/* As field_in_parts, and somebody else writes all of the field. */
static void field_in_parts_and_whole(struct evidence_list *l)
{
	tell_story(l, "field_in_parts");
	EACH_WRITE (l, e)
		e->write->parts.whole = 1;
}

/* As set_to_null, at a place that is fixed in the code, from the object's start. */
static void set_to_null_by_name(struct evidence_list *l)
{
	tell_story(l, "set_to_null");
	EACH_WRITE (l, e)
		made_traits(e->write, MADE_NAMED);
}

/* As unmapped_since: the store means the field. */
static void unmapped_since_by_name(struct evidence_list *l)
{
	tell_story(l, "unmapped_since");
	EACH_WRITE (l, e)
		made_traits(e->write, MADE_NAMED);
}

/* The block that the pointer leads to had been freed by the time of the failure. */
static void pointer_to_a_freed_block(struct evidence_list *l)
{
	tell_story(l, "pointer_to_a_live_block");
	EACH_WRITE (l, e)
		e->write->found.leads = LEADS_TO_FREED;
}

static void on_the_stack_of_parse(struct home *home)
{
	home_deinit(home);
	*home = (struct home){ .kind = HOME_STACK,
			       .name = mem_strdup("parse"),
			       .offset = -24,
			       .len = 8,
			       .address = MADE_FIELD };
}

/* Somebody's store into a variable of parse(), through a pointer. */
static void variable_set_through_a_pointer(struct evidence_list *l)
{
	caught(l, (struct made_write){ .writer = "label_make", .new = 5 }, 3);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WATCH)
			on_the_stack_of_parse(&e->watch->home);
	EACH_WRITE (l, e) {
		on_the_stack_of_parse(&e->write->home);
		block_life_free(e->write->victim);
		block_life_free(e->write->base);
		e->write->victim = e->write->base = NULL;
	}
}

/* The same, counted from the function's own stack pointer. */
static void variable_set_by_its_function(struct evidence_list *l)
{
	variable_set_through_a_pointer(l);
	EACH_WRITE (l, e)
		made_traits(e->write, MADE_NAMED);
}

/* The failure read that variable in its own function. */
static void variable_read_in_its_function(struct evidence_list *l)
{
	variable_set_by_its_function(l);
	EACH_WRITE (l, e)
		e->write->found = (struct value_found){ .known = true, .steps = 1 };
}

/* A constant, at a fixed distance from a pointer into the block. */
static void constant_inside_the_block(struct evidence_list *l)
{
	tell_story(l, "object_inside_the_block");
	EACH_WRITE (l, e) {
		e->write->code.immediate = true;
		e->write->code.source = POINTER_UNKNOWN;
	}
}

/* The pointer was computed: it may run through the block. */
static void constant_where_a_pointer_runs(struct evidence_list *l)
{
	constant_inside_the_block(l);
	EACH_WRITE (l, e)
		e->write->code.changed = true;
}

/* The store is right; the reader's index had left its own array and came upon it. */
static void reader_gone_astray(struct evidence_list *l)
{
	tell_story(l, "pointer_to_a_freed_block");
	EACH_WRITE (l, e)
		e->write->found.strayed = true;
}

/* Another function than the one that failed leaves a block. */
static void another_has_left(struct evidence_list *l)
{
	tell_story(l, "leads_who_knows_where");
	add(l, made_over_read(4));
	add(l, made_over_read(5));
	add(l, made_crash(4, FAULT_NON_CANONICAL));
}

/* Where the failing function had no right to read; at fences it is seen to leave a block. */
static void read_by_one_who_left(struct evidence_list *l)
{
	struct evidence *e;

	another_has_left(l);
	e = &l->list.items[l->list.count - 1];
	stack_deinit(&e->crash->stack);
	e->crash->stack = (struct stack){ 0 };
	made_stack(&e->crash->stack, "row_sum", 71);
}

/* ---- blocks after their end ---- */

/* Nothing but the poison in the freed block gave the use away. */
static void used_by_poison_alone(struct evidence_list *l)
{
	tell_story(l, "freed_used");
	VEC_FOREACH (&l->list, e)
		e->freed_use->poison = true;
}

/* One of two trials failed over the freed block by itself. */
static void used_by_poison_once(struct evidence_list *l)
{
	used_by_poison_alone(l);
	l->list.items[1].freed_use->poison = false;
}

/* What stood in such a block came out of a trial that passed, too: printing it does no harm. */
static void read_and_passed(struct evidence_list *l)
{
	struct evidence e = evidence_new(EVIDENCE_FREED_USE, 90, false);

	used_by_poison_once(l);
	e.freed_use->poison = true;
	e.freed_use->block = block_life_dup(l->list.items[0].freed_use->block);
	VEC_PUSH(&l->list, e);
}

/* Of blocks that somebody else allocates, that is. */
static void another_read_and_passed(struct evidence_list *l)
{
	struct block_life *block;

	read_and_passed(l);
	block = l->list.items[l->list.count - 1].freed_use->block;
	mem_free(block->key);
	block->key = mem_strdup("00000000000000ab#1");
}

/* A stack held the same pointer. */
static void held_on_a_stack_as_well(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->on_stack_too = true;
}

/* Who freed the block is not known. */
static void freed_by_who_knows_whom(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			stack_deinit(&e->holder->target->freed);
}

/* A reference was taken for the pointer when it was stored. */
static void held_and_counted(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->counted = true;
}

/* An object of Python's, and nobody saw who put the pointer there. */
static void held_and_never_stored(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER) {
			e->holder->target->python = true;
			stack_deinit(&e->holder->written_by);
		}
}

/* A list of the interpreter's still points to its items: it may have ended with them. */
static void held_by_a_list(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER) {
			struct stack *made = &e->holder->holder->allocated;

			stack_deinit(made);
			(void)stack_push(
				made, &(struct frame){ .function = (char *)"PyList_New",
						       .module = (char *)"/usr/bin/python3.11" });
			stack_deinit(&e->holder->written_by);
		}
}

/* … and whoever touched the object first after its end was seen. */
static void counted_and_touched(struct evidence_list *l)
{
	held_and_counted(l);
	add(l, made_freed_use(1, true))->freed_use->first = true;
}

/* Nobody frees the frame of a function that returns. */
static void held_frame(struct evidence_list *l)
{
	freed_by_who_knows_whom(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->frame = true;
}

/* The free of that pointer killed the program: the allocator did not know it either. */
static void foreign_and_a_crash(struct evidence_list *l)
{
	tell_story(l, "foreign");
	add(l, made_crash(1, FAULT_NULL));
}

/* A freed block was read in that trial, by another function. */
static void foreign_beside_a_freed_block(struct evidence_list *l)
{
	tell_story(l, "foreign_and_a_crash");
	add(l, made_freed_use(1, false));
}

/* The pointer was read there. */
static void foreign_out_of_a_freed_block(struct evidence_list *l)
{
	struct evidence *e;

	tell_story(l, "foreign_and_a_crash");
	e = add(l, made_freed_use(1, false));
	stack_deinit(&e->freed_use->user);
	made_stack(&e->freed_use->user, "cache_drop", 54);
}

/* ---- damage beside a failure that is no fault ---- */

/* Guards show damage in four of six failing trials. */
static void damage_in_some_failures(struct evidence_list *l)
{
	damage_only(l);
	add(l, made_failure(false));
	add(l, made_experiment(EXPERIMENT_GUARDS, 6))->experiment->shown = 4;
}

/* … in all six, and in none that passed. */
static void damage_in_every_failure(struct evidence_list *l)
{
	damage_in_some_failures(l);
	l->list.items[l->list.count - 1].experiment->shown = 6;
}

/* … and in one that passed, too. */
static void damage_in_a_success(struct evidence_list *l)
{
	damage_in_every_failure(l);
	l->list.items[l->list.count - 1].experiment->shown_passing = 1;
}

/* Every run fails, none with guards does, and each of those had its guards damaged. */
static void guards_take_the_damage(struct evidence_list *l)
{
	struct experiment_made *guards;

	damage_only(l);
	add(l, made_failure(true));
	guards = add(l, made_experiment(EXPERIMENT_GUARDS, 0))->experiment;
	guards->trials = guards->shown_passing = 6;
}

/* It fails with guards as it does without, though they take the damage. */
static void fails_whoever_takes_the_damage(struct evidence_list *l)
{
	struct experiment_made *guards;

	guards_take_the_damage(l);
	guards = l->list.items[l->list.count - 1].experiment;
	guards->telling = guards->shown = 6;
	guards->shown_passing = 0;
}

/* As damage_only; a fence saw the store in one of the trials. */
static void damage_seen_at_a_fence(struct evidence_list *l)
{
	damage_only(l);
	made_stack(&l->list.items[0].canary->writer, "reset", 12);
	l->list.items[0].canary->instruction = mem_strdup("mov [rdi+0x18], rax");
}

/* As canary_from_above: it is memcpy's own store, whose start is known. */
static void canary_by_a_copy(struct evidence_list *l)
{
	tell_story(l, "canary_from_above");
	EACH_WRITE (l, e)
		e->write->copy = true;
}

static void given_back_too_often(struct evidence_list *l)
{
	add(l, made_account(1));
	add(l, made_account(2));
}

/* Nobody's account is below zero: somebody kept a pointer that was not counted. */
static void all_accounts_even(struct evidence_list *l)
{
	given_back_too_often(l);
	VEC_FOREACH (&l->list, e)
		e->account->parties.items[1].taken = 2;
}

/* … but one alone has handled the object, beside the interpreter. */
static void counted_by_one_alone(struct evidence_list *l)
{
	all_accounts_even(l);
	VEC_FOREACH (&l->list, e)
		e->account->parties.items[1].alone = true;
}

/* Two have been at it: where it became too many is known, and no more. */
static void given_back_by_two(struct evidence_list *l)
{
	given_back_too_often(l);
	VEC_FOREACH (&l->list, e)
		e->account->parties.items[1].alone = true;
}

/* Two are: which of them is wrong is not told. */
static void two_gave_back_too_often(struct evidence_list *l)
{
	given_back_too_often(l);
	VEC_FOREACH (&l->list, e)
		e->account->parties.items[0].taken = 0;
}

static void growth_measured_once(struct evidence_list *l)
{
	growth(l);
	l->list.items[0].growth->trials = l->list.items[0].growth->usable = 1;
}

const struct story stories_pairs[] = {
	ROW(read_from_here, NARROW_WRITE, FIRM, "ticket_note"),
	ROW(set_up_again, NARROW_WRITE, DOUBTED, "dict_new"),
	ROW(leads_who_knows_where, NARROW_WRITE, FIRM, "job_new"),
	ROW(element_without_a_loop, NARROW_WRITE, FIRM, "sort"),
	ROW(part_of_a_field_by_its_object, NARROW_WRITE, FIRM, "trim"),
	ROW(nearly_the_whole_object, WIDE_WRITE, FIRM, "jit_code"),
	ROW(a_copy_of_its_own, WIDE_WRITE, FIRM, "strcpy"),
	ROW(narrow_in_a_named_pool, NARROW_WRITE, DOUBTED, "jit_code"),
	ROW(freed_block_in_another_trial, NARROW_WRITE, FIRM, "jit_code"),
	ROW(another_thread_under_a_lock, NARROW_WRITE, FIRM, "jit_code"),
	ROW(cached_and_replaced, STALE_CACHED_VALUE, FIRM, "type_cache_open"),

	ROW(masked_over_its_block, OVERFLOW, FIRM, "reset"),
	ROW(masked_over_its_block_perhaps, OVERFLOW, DOUBTED, "reset"),
	ROW(masked_into_another_block, OVERFLOW, FIRM, "fill"),

	ROW(guard_before_in_a_loop, UNDERFLOW, FIRM, "fill"),
	ROW(guard_before_from_below, UNDERFLOW, DOUBTED, "fill"),

	ROW(place_of_another_kind, NARROW_WRITE, DOUBTED, "text_fill"),
	ROW(place_reached_by_its_owner, NARROW_WRITE, FIRM, "text_fill"),
	ROW(fills_a_place_of_another_kind, NOT_CAUGHT, DOUBTED, NULL),
	ROW(field_in_parts_and_whole, NARROW_WRITE, FIRM, "fraction_reduce"),
	ROW(set_to_null_by_name, NOT_CAUGHT, DOUBTED, NULL),
	ROW(unmapped_since_by_name, NOT_CAUGHT, DOUBTED, NULL),
	ROW(pointer_to_a_freed_block, NARROW_WRITE, FIRM, "list_add"),
	ROW(variable_set_through_a_pointer, NARROW_WRITE, FIRM, "label_make"),
	ROW(variable_set_by_its_function, NOT_CAUGHT, DOUBTED, NULL),
	ROW(variable_read_in_its_function, NOT_CAUGHT, DOUBTED, NULL),
	ROW(constant_inside_the_block, NARROW_WRITE, DOUBTED, "measure"),
	ROW(constant_where_a_pointer_runs, NARROW_WRITE, FIRM, "measure"),
	ROW(reader_gone_astray, NOT_CAUGHT, DOUBTED, NULL),

	ROW(read_by_one_who_left, OVER_READ, DOUBTED, NULL),
	ROW(another_has_left, NARROW_WRITE, FIRM, "job_new"),

	ROW(used_by_poison_alone, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(used_by_poison_once, USE_AFTER_FREE, FIRM, NULL),
	ROW(read_and_passed, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(another_read_and_passed, USE_AFTER_FREE, FIRM, NULL),
	ROW(held_on_a_stack_as_well, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_by_who_knows_whom, USE_AFTER_FREE, FIRM, NULL),
	ROW(held_and_never_stored, USE_AFTER_FREE, FIRM, NULL),
	ROW(held_by_a_list, USE_AFTER_FREE, FIRM, NULL),
	ROW(held_and_counted, USE_AFTER_FREE, FIRM, NULL),
	ROW(counted_and_touched, DANGLING_HOLDER, DOUBTED, "container_swap"),
	ROW(held_frame, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(foreign_and_a_crash, INVALID_FREE, FIRM, "cache_drop"),
	ROW(foreign_beside_a_freed_block, INVALID_FREE, FIRM, "cache_drop"),
	ROW(foreign_out_of_a_freed_block, USE_AFTER_FREE, DOUBTED, NULL),

	ROW(damage_in_some_failures, OVERFLOW, DOUBTED, NULL),
	ROW(damage_in_every_failure, OVERFLOW, DOUBTED, NULL),
	ROW(damage_in_a_success, OVERFLOW, DOUBTED, NULL),
	ROW(guards_take_the_damage, OVERFLOW, DOUBTED, NULL),
	ROW(fails_whoever_takes_the_damage, OVERFLOW, DOUBTED, NULL),
	ROW(damage_seen_at_a_fence, OVERFLOW, FIRM, "reset"),
	ROW(canary_by_a_copy, OVERFLOW, FIRM, "fill"),
	ROW(given_back_too_often, OVER_RELEASE, FIRM, "get"),
	ROW(all_accounts_even, NOT_CAUGHT, DOUBTED, NULL),
	ROW(counted_by_one_alone, OVER_RELEASE, DOUBTED, "get"),
	ROW(given_back_by_two, OVER_RELEASE, DOUBTED, "get"),
	ROW(two_gave_back_too_often, NOT_CAUGHT, DOUBTED, NULL),
	ROW(growth_measured_once, LEAK_GROWTH, DOUBTED, "group_new"),
};
const size_t stories_pairs_count = ARRAY_SIZE(stories_pairs);
