/*
 * What no single bad write explains: blocks taken for others, cached values, races, files cut
 * short, writers from outside, the machine.
 */
#include "verdict_stories.h"

static void conflated(struct evidence_list *l)
{
	add(l, made_conflation(1, 10, 11));
	add(l, made_conflation(2, 20, 21));
}

static void conflated_by_inference(struct evidence_list *l)
{
	conflated(l);
	VEC_FOREACH (&l->list, e)
		said_as_text(&e->note, "that they are two objects is inferred");
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
	struct evidence *e =
		add(l, made_write((struct made_write){
			       .trial = 3, .passing = true, .writer = "type_cache_open" }));

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
void zero_from_birth_on(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++)
		add(l, made_watch(i, 0))->watch->value_known = true;
}

static void zero_on_the_stack(struct evidence_list *l, int64_t offset)
{
	zero_from_birth_on(l);
	VEC_FOREACH (&l->list, e) {
		home_deinit(&e->watch->home);
		e->watch->home = (struct home){
			.kind = HOME_STACK, .name = mem_strdup("price"), .offset = offset, .len = 8
		};
		block_life_free(e->watch->victim);
		e->watch->victim = NULL;
	}
}

/* Nobody clears frames: zero is what an earlier call left there. */
static void zero_in_a_variable(struct evidence_list *l)
{
	zero_on_the_stack(l, -24);
}

/* What the caller passed was written before the call. */
static void zero_in_an_argument(struct evidence_list *l)
{
	zero_on_the_stack(l, 8);
}

static void uninitialised(struct evidence_list *l)
{
	for (unsigned int i = 1; i <= 2; i++) {
		struct evidence *e = add(l, made_watch(i, 0));

		e->watch->value_known = true;
		e->watch->value = e->watch->birth_value = 0xdead;
	}
}

/* What new blocks hold decides it; which word of them, where that was found. */
static void uninitialised_by_the_odds(struct evidence_list *l)
{
	(void)add(l, made_odds(1, 0));
	(void)add(l, made_odds(1, 8));
}

/* One in 140 such findings is chance. */
static void uninitialised_or_by_chance(struct evidence_list *l)
{
	uninitialised_by_the_odds(l);
	VEC_FOREACH (&l->list, e)
		e->odds->p = 0.0071;
}

static void uninitialised_somewhere(struct evidence_list *l)
{
	(void)add(l, made_odds(1, 0));
}

static void bad_memory(struct evidence_list *l)
{
	struct evidence *e = add(l, made_host());

	e->host->memory_tested = true;
	e->host->memory_errors = 3;
	e->host->memory_seconds = 2.5;
}

void machine_signs(struct evidence_list *l)
{
	struct evidence *e = add(l, made_host());

	e->host->bit_flips = 4;
	e->host->flip_homes = 4;
	e->host->flip_bits = 3;
	e->host->core = 3;
	e->host->core_p = 0.00001;
}

void growth(struct evidence_list *l)
{
	add(l, made_growth());
}

static void plain(struct evidence_list *l)
{
	add(l, made_experiment(EXPERIMENT_GUARDS, 6));
	add(l, made_experiment(EXPERIMENT_FILL_FREED, 20));
	add(l, made_experiment(EXPERIMENT_FILL_FRESH, 20));
	add(l, made_failure(true));
}

/* An exit status alone says nothing about memory. */
static void plain_unlooked(struct evidence_list *l)
{
	add(l, made_failure(true));
}

static void plain_looked_at_too_little(struct evidence_list *l)
{
	plain(l);
	l->list.items[0].experiment->telling = 4;
}

/* Where every run fails, what stands in freed blocks cannot matter: that tells nothing. */
static void plain_reads_untold(struct evidence_list *l)
{
	plain(l);
	l->list.items[1].experiment->coverage = 0;
}

/* Guards around one block in four. */
static void plain_half_covered(struct evidence_list *l)
{
	plain(l);
	l->list.items[0].experiment->coverage = 0.25;
}

void nothing(struct evidence_list *l)
{
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

void race_nothing_lost(struct evidence_list *l)
{
	add(l, made_race(1, false));
	add(l, made_race(2, false));
}

/* Long enough for a lock to be given on in between. */
static void race_in_turns(struct evidence_list *l)
{
	race_nothing_lost(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_RACE)
			e->race->gap_ns = 54910;
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

/* Only guards were on when it died of that. */
static void mapping_under_guards(struct evidence_list *l)
{
	SAY(&add(l, made_mapping(1, true))->note, "noted:observed");
}

/* … and it died of it once without them. */
static void mapping_without_guards_too(struct evidence_list *l)
{
	mapping_under_guards(l);
	add(l, made_mapping(2, true));
}

static void mapping_by_nobody(struct evidence_list *l)
{
	add(l, made_mapping(1, false));
}

void outside_with_a_gap(struct evidence_list *l)
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
	add(l, made_failure(false));
}

void plain_beside_a_crash(struct evidence_list *l)
{
	add(l, made_failure(true));
	add(l, made_crash(4, FAULT_NULL));
}

const struct story stories_value[] = {
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
	ROW(race_in_turns, NOT_CAUGHT, DOUBTED, NULL),
	ROW(race_nothing_lost, RACE, DOUBTED, "object_unref"),
	ROW(race_and_a_free, RACE, FIRM, "object_unref"),
	ROW(turns_and_a_free, DANGLING_HOLDER, FIRM, "container_swap"),
	ROW(race_in_one_of_five, NOT_CAUGHT, DOUBTED, NULL),
	ROW(overflow_of_its_own_block, OVERFLOW, FIRM, "reset"),
	ROW(race_locked, NOT_CAUGHT, DOUBTED, NULL),
	ROW(race_of_one_thread, NOT_CAUGHT, DOUBTED, NULL),

	ROW(mapping, MAPPING_TRUNCATED, FIRM, "cache_store"),
	ROW(mapping_under_guards, MAPPING_TRUNCATED, DOUBTED, "cache_store"),
	ROW(mapping_without_guards_too, MAPPING_TRUNCATED, FIRM, "cache_store"),
	ROW(mapping_by_nobody, MAPPING_TRUNCATED, DOUBTED, NULL),
	ROW(mapping_whole, NOT_CAUGHT, DOUBTED, NULL),

	ROW(outside, OUTSIDE_WRITER, FIRM, NULL),
	ROW(outside_one_bit, OUTSIDE_WRITER, DOUBTED, NULL),
	ROW(outside_without_syscalls, OUTSIDE_WRITER, DOUBTED, NULL),
	ROW(outside_with_a_gap, NOT_CAUGHT, DOUBTED, NULL),

	ROW(uninitialised, UNINITIALISED, FIRM, NULL),
	ROW(uninitialised_by_the_odds, UNINITIALISED, FIRM, NULL),
	ROW(uninitialised_or_by_chance, UNINITIALISED, DOUBTED, NULL),
	ROW(uninitialised_somewhere, UNINITIALISED, DOUBTED, NULL),
	ROW(zero_from_birth_on, NOT_CAUGHT, DOUBTED, NULL),
	ROW(zero_in_a_variable, UNINITIALISED, FIRM, NULL),
	ROW(zero_in_an_argument, NOT_CAUGHT, DOUBTED, NULL),
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

	ROW(plain, NOT_MEMORY, DOUBTED, NULL),
	ROW(plain_unlooked, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_looked_at_too_little, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_reads_untold, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_half_covered, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_now_and_then, NOT_CAUGHT, DOUBTED, NULL),
	ROW(plain_beside_a_crash, NOT_CAUGHT, DOUBTED, NULL),

	ROW(nothing, NOT_CAUGHT, DOUBTED, NULL),

};
const size_t stories_value_count = ARRAY_SIZE(stories_value);
