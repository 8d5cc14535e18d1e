/*
 * Blocks after their end: written to, used, freed again, still pointed to.
 */
#include "verdict_stories.h"

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
void after_free_inferred(struct evidence_list *l)
{
	after_free(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			made_traits(e->write, MADE_FREE_INFERRED);
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

/* The place was another's before. */
static void freed_in_a_shared_place(struct evidence_list *l)
{
	freed_used(l);
	VEC_FOREACH (&l->list, e)
		e->freed_use->place_reused = true;
}

static void written_in_a_shared_place(struct evidence_list *l)
{
	crash_writes_freed(l);
	VEC_FOREACH (&l->list, e)
		e->freed_use->place_reused = true;
}

/* With guards no place is given out again so soon. */
static void shared_in_one_trial_only(struct evidence_list *l)
{
	freed_in_a_shared_place(l);
	l->list.items[1].freed_use->place_reused = false;
}

static void freed_in_the_crash(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_crash(i, FAULT_FREED));

		e->crash->blocks.items[0].state = BLOCK_FREED;
		made_stack(&e->crash->blocks.items[0].freed, "object_free", 77);
	}
}

/* What small blocks left was one large block later; the pointer may be older than that. */
static void deep_in_a_freed_block(struct evidence_list *l)
{
	freed_in_the_crash(l);
	VEC_FOREACH (&l->list, e) {
		struct block_life *block = &e->crash->blocks.items[0];

		block->size = 11472;
		block->value = block->start + 10704;
	}
}

/* Its pool gives the place out again at once. */
static void freed_object_in_the_crash(struct evidence_list *l)
{
	freed_in_the_crash(l);
	VEC_FOREACH (&l->list, e)
		e->crash->blocks.items[0].python = true;
}

/* With guards it is not given out again. */
static void poisoned_object_in_the_crash(struct evidence_list *l)
{
	freed_object_in_the_crash(l);
	VEC_FOREACH (&l->list, e)
		e->crash->blocks.items[0].poison = true;
}

/* A pointer that ran over the end of a block. */
static void behind_a_freed_block(struct evidence_list *l)
{
	freed_in_the_crash(l);
	VEC_FOREACH (&l->list, e)
		e->crash->blocks.items[0].beyond = true;
}

static void double_free(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_DOUBLE));
}

/* To an allocator of the program's own. */
static void given_back_twice(struct evidence_list *l)
{
	double_free(l);
	l->list.items[0].bad_free->named = true;
}

static void interior_free(struct evidence_list *l)
{
	add(l, made_bad_free(1, BAD_FREE_INTERIOR));
}

void dangling(struct evidence_list *l)
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

/* It failed before anybody knew what to watch: those trials could not show who holds the pointer.
 */
static void dangling_watched_later(struct evidence_list *l)
{
	dangling_by_write(l);
	add(l, made_freed_use(3, false));
	add(l, made_freed_use(4, false));
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

void holder_with_gaps(struct evidence_list *l)
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

/* A pointer into the middle of the block: it was seen being stored when that was right. */
static void held_in_the_middle(struct evidence_list *l)
{
	dangling(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			e->holder->exact = false;
}

/* Nobody saw it being stored: some other pointer, damaged, would lead there as well. */
static void holder_by_looks_only(struct evidence_list *l)
{
	held_in_the_middle(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_HOLDER)
			stack_deinit(&e->holder->written_by);
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

/* The pointer that was freed is what the store left. */
static void freed_from_field(struct evidence_list *l, uint64_t old, unsigned int width,
			     uint64_t owners)
{
	caught(l,
	       (struct made_write){
		       .writer = "skip", .width = width, .old = old, .new = MADE_BLOCK + 2 },
	       3);
	for (unsigned int i = 1; i <= 3; i++) {
		struct evidence *e = add(l, made_bad_free(i, BAD_FREE_INTERIOR));

		e->bad_free->pointer = MADE_BLOCK + 2;
		e->bad_free->owners = owners;
	}
}

static void moved_and_freed(struct evidence_list *l)
{
	freed_from_field(l, MADE_BLOCK, 8, 0);
}

/* By a byte that was meant for something else. */
static void bent_and_freed(struct evidence_list *l)
{
	freed_from_field(l, MADE_BLOCK, 1, 0);
}

/* Somebody else keeps the block's own address: this one may be moved. */
static void cursor_freed(struct evidence_list *l)
{
	freed_from_field(l, MADE_BLOCK, 8, 1);
}

/* It never led to a block, as far as anybody saw. */
static void cursor_of_nobody_freed(struct evidence_list *l)
{
	freed_from_field(l, MADE_BLOCK, 8, 0);
	VEC_FOREACH (&l->list, e) {
		if (e->kind != EVIDENCE_BAD_FREE)
			continue;
		e->bad_free->kind = BAD_FREE_FOREIGN;
		block_life_deinit(e->bad_free->block);
		mem_free(e->bad_free->block);
		e->bad_free->block = NULL;
	}
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->flags |= WRITE_UPDATE;
}

/* Out of the block that it had been stored for. */
static void moved_out_and_freed(struct evidence_list *l)
{
	cursor_of_nobody_freed(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			e->write->flags |= WRITE_LEFT_BLOCK;
}

static void freed_as_it_was_stored(struct evidence_list *l)
{
	freed_from_field(l, 0, 8, 0);
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

/* The store that put the pointer there was seen as well. */
static void holder_and_its_store(struct evidence_list *l)
{
	dangling(l);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_write((struct made_write){
						    .trial = i,
						    .writer = "container_swap",
						    .line = 70,
						    .not_flags = WRITE_LAST | WRITE_FOUND }));

		home_deinit(&e->write->home);
		home_copy(&e->write->home, &l->list.items[1].holder->home);
	}
}

/* The sweep does not know who put the pointer there; the watchpoint does. */
static void holder_with_gaps_watched(struct evidence_list *l)
{
	holder_with_gaps(l);
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_write((struct made_write){
						    .trial = i, .writer = "container_put" }));

		home_deinit(&e->write->home);
		home_copy(&e->write->home, &l->list.items[1].holder->home);
		e->write->target = made_block(1000 + i, MADE_BLOCK, 56, BLOCK_LIVE);
	}
}

/* The crash tells of the freed block, and so does the observer of the heap. */
static void freed_in_the_crash_and_used(struct evidence_list *l)
{
	freed_in_the_crash(l);
	freed_used(l);
}

/* Fences saw it, and nothing fails: the read itself is what was looked for. */
static void read_behind(struct evidence_list *l)
{
	add(l, made_over_read(1));
	add(l, made_over_read(2));
}

/* Right behind it, by a pointer that has run over its end. */
static void read_unpointed(struct evidence_list *l)
{
	read_behind(l);
	VEC_FOREACH (&l->list, e)
		e->freed_use->unpointed = true;
}

/* Far from it, by a pointer that was not the block's. */
static void read_far_behind(struct evidence_list *l)
{
	read_unpointed(l);
	VEC_FOREACH (&l->list, e)
		e->freed_use->offset += 64;
}

static void read_behind_once(struct evidence_list *l)
{
	add(l, made_over_read(1));
}

/* The same in trials that failed: the read was let through, and the failure came later. */
static void read_behind_and_failed(struct evidence_list *l)
{
	struct experiment_made made = {
		.kind = EXPERIMENT_FENCES, .trials = 2, .telling = 2, .shown = 2, .coverage = 1
	};

	read_behind(l);
	evidence_add_experiment(l, &made);
}

/* ... and the failure used a pointer that the same function had read outside of such a block. */
static void read_behind_and_used(struct evidence_list *l)
{
	struct evidence *e;

	read_behind_and_failed(l);
	e = add(l, made_crash(3, FAULT_NULL));
	stack_deinit(&e->crash->stack);
	e->crash->stack = (struct stack){ 0 };
	made_stack(&e->crash->stack, "row_sum", 71);
	e->crash->blocks.items[0].left = true;
}

/* ... another function had. */
static void read_behind_by_another(struct evidence_list *l)
{
	read_behind_and_failed(l);
	add(l, made_crash(3, FAULT_NULL))->crash->blocks.items[0].left = true;
}

/* A sanitizer in the program ended it: its report says what, who and where. */
static void reported_freed_write(struct evidence_list *l)
{
	add(l, made_reported(1, REPORTED_FREED_WRITE));
	add(l, made_reported(2, REPORTED_FREED_WRITE));
}

static void reported_read_past_the_end(struct evidence_list *l)
{
	add(l, made_reported(1, REPORTED_OVER_READ));
}

static void reported_twice_freed(struct evidence_list *l)
{
	add(l, made_reported(1, REPORTED_DOUBLE_FREE));
}

/* An overflow of a number is no memory error. */
static void reported_something_else(struct evidence_list *l)
{
	add(l, made_reported(1, REPORTED_OTHER));
}

static void reported_null(struct evidence_list *l)
{
	add(l, made_failure(true));
	add(l, made_reported(1, REPORTED_NULL));
}

/* Who put it there may be in a library that the sanitizer does not see. */
static void reported_null_now_and_then(struct evidence_list *l)
{
	add(l, made_failure(false));
	add(l, made_reported(1, REPORTED_NULL));
}

/* The same of a freed block that was read and let through. */
static void freed_used_at_a_fence(struct evidence_list *l)
{
	struct experiment_made made = {
		.kind = EXPERIMENT_FENCES, .trials = 2, .telling = 2, .shown = 2, .coverage = 1
	};

	freed_used(l);
	VEC_FOREACH (&l->list, e)
		e->freed_use->fenced = true;
	evidence_add_experiment(l, &made);
}

const struct story stories_free[] = {
	ROW(read_behind, OVER_READ, FIRM, NULL),
	ROW(read_unpointed, OVER_READ, FIRM, NULL),
	ROW(read_far_behind, OVER_READ, DOUBTED, NULL),
	ROW(read_behind_once, OVER_READ, DOUBTED, NULL),
	ROW(read_behind_and_failed, OVER_READ, DOUBTED, NULL),
	ROW(read_behind_and_used, OVER_READ, FIRM, NULL),
	ROW(read_behind_by_another, OVER_READ, DOUBTED, NULL),
	ROW(freed_used_at_a_fence, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(after_free, WRITE_AFTER_FREE, FIRM, "late_store"),
	ROW(after_free_inferred, WRITE_AFTER_FREE, DOUBTED, "late_store"),
	ROW(crash_writes_freed, WRITE_AFTER_FREE, FIRM, "clone_statement"),
	ROW(poison_damaged, WRITE_AFTER_FREE, DOUBTED, NULL),

	ROW(freed_used, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_in_the_crash, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_in_the_crash_and_used, USE_AFTER_FREE, FIRM, NULL),
	ROW(freed_used_once, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(freed_in_a_shared_place, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(deep_in_a_freed_block, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(freed_object_in_the_crash, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(poisoned_object_in_the_crash, USE_AFTER_FREE, FIRM, NULL),
	ROW(written_in_a_shared_place, WRITE_AFTER_FREE, DOUBTED, "clone_statement"),
	ROW(shared_in_one_trial_only, USE_AFTER_FREE, FIRM, NULL),
	ROW(behind_a_freed_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(recycled_only, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(a_former_block, NOT_CAUGHT, DOUBTED, NULL),
	ROW(a_freed_block_nearby, NOT_CAUGHT, DOUBTED, NULL),

	ROW(double_free, DOUBLE_FREE, FIRM, "cache_drop"),
	ROW(given_back_twice, DOUBLE_FREE, DOUBTED, "cache_drop"),
	ROW(free_in_a_passing_trial, DOUBLE_FREE, DOUBTED, "cache_drop"),
	ROW(interior_free, INVALID_FREE, FIRM, "cache_drop"),
	ROW(mismatched, INVALID_FREE, DOUBTED, "cache_drop"),
	ROW(mismatched_beside_damage, OVERFLOW, DOUBTED, NULL),
	ROW(mismatched_beside_a_wrong_pointer, INVALID_FREE, FIRM, "line_drop"),
	ROW(foreign, INVALID_FREE, DOUBTED, "cache_drop"),
	ROW(moved_and_freed, INVALID_FREE, FIRM, "skip"),
	ROW(bent_and_freed, NARROW_WRITE, FIRM, "skip"),
	ROW(cursor_freed, INVALID_FREE, FIRM, "cache_drop"),
	ROW(cursor_of_nobody_freed, INVALID_FREE, FIRM, "cache_drop"),
	ROW(moved_out_and_freed, INVALID_FREE, FIRM, "skip"),
	ROW(freed_as_it_was_stored, INVALID_FREE, FIRM, "cache_drop"),

	ROW(dangling, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(dangling_by_write, DANGLING_HOLDER, FIRM, "rehome"),
	ROW(dangling_watched_later, DANGLING_HOLDER, FIRM, "rehome"),
	ROW(dangling_by_value, DANGLING_HOLDER, FIRM, "rehome"),
	ROW(pointer_to_a_recycled_place, USE_AFTER_FREE, FIRM, NULL),
	ROW(holder_with_gaps, DANGLING_HOLDER, FIRM, NULL),
	ROW(holder_with_gaps_watched, DANGLING_HOLDER, FIRM, "container_put"),
	ROW(holder_and_its_store, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(double_free_of_what_is_held, DOUBLE_FREE, FIRM, "cache_drop"),
	ROW(double_free_of_another, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(held_on_a_stack, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(reported_freed_write, WRITE_AFTER_FREE, FIRM, "object_use"),
	ROW(reported_read_past_the_end, OVER_READ, FIRM, NULL),
	ROW(reported_twice_freed, DOUBLE_FREE, FIRM, "object_use"),
	ROW(reported_null, NULL_POINTER, FIRM, "object_use"),
	ROW(reported_null_now_and_then, NOT_CAUGHT, DOUBTED, NULL),
	ROW(reported_something_else, NOT_CAUGHT, DOUBTED, NULL),
	ROW(held_on_a_stack_to_two_kinds, USE_AFTER_FREE, FIRM, NULL),
	ROW(held_in_the_middle, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(holder_by_looks_only, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(holder_never_used, NOT_CAUGHT, DOUBTED, NULL),
	ROW(holder_of_a_live_block, USE_AFTER_FREE, FIRM, NULL),
};
const size_t stories_free_count = ARRAY_SIZE(stories_free);
