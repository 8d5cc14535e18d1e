/*
 * From findings of the heap observer to evidence, and what the verdict makes of it: whose overflow
 * it was, which trials count, who held the pointer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "evidence_fixture.h"
#include "in_range.h"
#include "judge/judge.h"
#include "read/damage_runs.h"
#include "search/stats/rng.h"
#include "studies/heap/chance.h"
#include "studies/heap/heap_evidence.h"
#include "wire/guard_word.h"

#define PLACE 0x500000ull

/* ---- runs ---- */

static struct heap_finding damage(enum heap_kind kind, uint64_t id, uint64_t address, uint64_t size,
				  int64_t offset, uint64_t length)
{
	return (struct heap_finding){ .kind = kind,
				      .id = id,
				      .address = address,
				      .size = size,
				      .offset = offset,
				      .length = length };
}

static void an_overflow_goes_on_over_the_next_blocks(void **state)
{
	/* 104 bytes and 16 of guard, libc's word, 16 of guard, 32 bytes, 8 of guard, and so on. */
	struct heap_finding run[] = {
		damage(HEAP_UNDERFLOW, 3, PLACE + 144 + 64, 40, -16, 16),
		damage(HEAP_OVERFLOW, 2, PLACE + 144, 32, 32, 8),
		damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16),
		damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16),
	};

	(void)state;
	runs_mark(run, ARRAY_SIZE(run));
	assert_true(run[0].continued && run[1].continued && run[2].continued);
	assert_false(run[3].continued);
}

/* Out of block 2 at both ends, or over it: the same damage. */
static void a_block_left_at_both_ends_may_be_the_one(void **state)
{
	struct heap_finding run[] = {
		damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16),
		damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16),
		damage(HEAP_OVERFLOW, 2, PLACE + 144, 32, 32, 8),
		damage(HEAP_WRITE_AFTER_FREE, 3, PLACE + 500, 104, 90, 14),
		damage(HEAP_UNDERFLOW, 4, PLACE + 500 + 130, 32, -16, 16),
		damage(HEAP_OVERFLOW, 5, PLACE + 900, 104, 104, 16),
		damage(HEAP_UNDERFLOW, 6, PLACE + 900 + 144, 32, -16, 8),
	};

	(void)state;
	run[1].context = (char *)"two";
	run[4].context = (char *)"four";
	run[6].context = (char *)"six";
	runs_mark(run, ARRAY_SIZE(run));
	assert_string_equal(run[0].through, "two");
	assert_string_equal(run[3].through, "four");
	assert_null(run[5].through);
	mem_free(run[0].through);
	mem_free(run[3].through);
}

static void an_overflow_into_a_freed_block_is_no_write_after_free(void **state)
{
	struct heap_finding run[] = {
		damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16),
		damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16),
		damage(HEAP_WRITE_AFTER_FREE, 2, PLACE + 144, 32, 0, 24),
	};

	(void)state;
	runs_mark(run, ARRAY_SIZE(run));
	assert_false(run[0].continued);
	assert_true(run[1].continued && run[2].continued);
}

static void an_underflow_reaches_back(void **state)
{
	/* It begins in the middle of the guard before. */
	struct heap_finding run[] = {
		damage(HEAP_OVERFLOW, 1, PLACE, 104, 112, 8),
		damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16),
	};

	(void)state;
	runs_mark(run, ARRAY_SIZE(run));
	assert_true(run[0].continued);
	assert_false(run[1].continued);
}

static struct heap_finding of_context(struct heap_finding finding, const char *context)
{
	finding.context = (char *)context;
	return finding;
}

/* From the end of one block to the start of another: in a trial with a gap it fits only one of
 * them. */
static void a_run_that_fits_both_ends_is_settled_by_other_trials(void **state)
{
	struct heap_finding all[] = {
		of_context(damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16), "a"),
		of_context(damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16), "b"),
		/* another trial: 16 bytes more between the blocks, and it begins in the gap */
		of_context(damage(HEAP_UNDERFLOW, 2, PLACE + 4096, 32, -16, 16), "b"),
	};

	(void)state;
	runs_mark(all, 2);
	runs_mark(all + 2, 1);
	assert_false(all[0].continued);
	assert_string_equal(all[0].rival, "b");
	assert_true(all[1].continued);
	runs_settle(all, 2);
	assert_false(all[0].continued);
	runs_settle(all, ARRAY_SIZE(all));
	assert_true(all[0].continued);
	assert_false(all[1].continued);
	assert_false(all[2].continued);
	mem_free(all[0].rival);
}

/* Now behind this block, now behind that: what they have in common is whom it ends at. */
static void the_block_that_all_runs_end_at_is_the_one(void **state)
{
	struct heap_finding all[] = {
		of_context(damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16), "a"),
		of_context(damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16), "b"),
		of_context(damage(HEAP_OVERFLOW, 3, PLACE + 4096, 24, 24, 8), "c"),
		of_context(damage(HEAP_UNDERFLOW, 4, PLACE + 4096 + 56 + 16, 32, -16, 16), "b"),
	};

	(void)state;
	all[2].gap = all[3].gap = 16;
	runs_mark(all, 2);
	runs_mark(all + 2, 2);
	runs_settle(all, ARRAY_SIZE(all));
	assert_true(all[0].continued && all[2].continued);
	assert_false(all[1].continued || all[3].continued);
	mem_free(all[0].rival);
	mem_free(all[2].rival);
}

/* What begins with the guard itself may come from a block before it that has none. */
static void where_not_all_have_guards_the_one_before_may_have_done_it(void **state)
{
	struct heap_finding whole = damage(HEAP_UNDERFLOW, 1, PLACE, 32, -16, 16);
	struct heap_finding near = damage(HEAP_UNDERFLOW, 1, PLACE, 32, -8, 8);
	struct heap_finding own[] = {
		damage(HEAP_OVERFLOW, 1, PLACE, 104, 104, 16),
		damage(HEAP_UNDERFLOW, 2, PLACE + 144, 32, -16, 16),
	};

	(void)state;
	runs_mark(&whole, 1);
	assert_false(whole.continued);
	whole.sampled = near.sampled = own[0].sampled = own[1].sampled = true;
	runs_mark(&whole, 1);
	assert_true(whole.continued);
	runs_mark(&near, 1);
	assert_false(near.continued);
	runs_mark(own, ARRAY_SIZE(own));
	assert_false(own[0].continued);
	assert_true(own[1].continued);
}

static void damages_apart_are_each_their_own(void **state)
{
	struct heap_finding apart[] = {
		damage(HEAP_OVERFLOW, 1, PLACE, 24, 24, 1),
		damage(HEAP_OVERFLOW, 2, PLACE + 64, 24, 24, 1),
		/* the place has a new owner */
		damage(HEAP_OVERFLOW, 7, PLACE + 64, 24, 24, 1),
		damage(HEAP_UNDERFLOW, 3, PLACE + 512, 112, -16, 8),
	};

	(void)state;
	runs_mark(apart, 0);
	runs_mark(apart, ARRAY_SIZE(apart));
	for (size_t i = 0; i < ARRAY_SIZE(apart); i++)
		assert_false(apart[i].continued);
}

/* ---- evidence ---- */

/* Seen in trials 3 and 5. */
static void find(struct heap_report *report, enum heap_kind kind, int64_t offset, bool failed)
{
	struct heap_finding f = { .kind = kind,
				  .trial = 3,
				  .key = mem_strdup("c0ffee#9"),
				  .context = mem_strdup("c0ffee"),
				  .id = 1003,
				  .size = 56,
				  .address = PLACE,
				  .live = kind == HEAP_OVERFLOW || kind == HEAP_UNDERFLOW ||
					  kind == HEAP_INTERIOR_FREE,
				  .offset = offset,
				  .length = 8,
				  .expected = { 0xa1, 0xa2 },
				  .found = { 1, 2 },
				  .bytes = 2,
				  .allocated_by = "new[]",
				  .freed_by = "free",
				  .trials = 2 };

	f.when.after = mem_strdup("ok 1");
	f.when.before = mem_strdup("ok 2");
	made_stack(&f.allocated, "object_new", 40);
	if (!f.live)
		made_stack(&f.freed, "object_free", 77);
	made_stack(&f.seen_at, "object_use", 90);
	VEC_PUSH(&f.seen, ((struct heap_sighting){ 3, failed, 1003, 56, PLACE, offset, 8 }));
	VEC_PUSH(&f.seen, ((struct heap_sighting){ 5, failed, 1005, 56, PLACE + 4096, offset, 8 }));
	VEC_PUSH(&report->findings, f);
	report->heap.trials = 6;
	report->heap.failed = failed ? 2 : 0;
}

static enum verdict_class judged(struct heap_report *report, struct evidence_list *ret)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	heap_evidence(report, ret);
	for (size_t i = 0; i < ret->list.count; i++)
		ret->list.items[i].id = i + 1;
	judge_evidence(ret, &verdict);
	return verdict.class;
}

static void every_kind_has_its_class(void **state)
{
	static const struct {
		enum heap_kind kind;
		int64_t offset;
		enum evidence_kind evidence;
		enum verdict_class class;
	} rows[] = {
		{ HEAP_OVERFLOW, 56, EVIDENCE_CANARY, VERDICT_OVERFLOW },
		{ HEAP_OVERFLOW, 64, EVIDENCE_CANARY, VERDICT_OVERFLOW },
		{ HEAP_UNDERFLOW, -16, EVIDENCE_CANARY, VERDICT_UNDERFLOW },
		{ HEAP_WRITE_AFTER_FREE, 8, EVIDENCE_CANARY, VERDICT_WRITE_AFTER_FREE },
		{ HEAP_DOUBLE_FREE, 0, EVIDENCE_BAD_FREE, VERDICT_DOUBLE_FREE },
		{ HEAP_INTERIOR_FREE, 4, EVIDENCE_BAD_FREE, VERDICT_INVALID_FREE },
		{ HEAP_INVALID_FREE, 0, EVIDENCE_BAD_FREE, VERDICT_INVALID_FREE },
		{ HEAP_MISMATCHED_FREE, 0, EVIDENCE_BAD_FREE, VERDICT_INVALID_FREE },
		{ HEAP_USE_AFTER_FREE, 0, EVIDENCE_FREED_USE, VERDICT_USE_AFTER_FREE },
		{ HEAP_OVER_READ, 56, EVIDENCE_OVER_READ, VERDICT_OVER_READ },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(heap_report_deinit) struct heap_report report = { 0 };
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };

		find(&report, rows[i].kind, rows[i].offset, true);
		assert_int_equal(judged(&report, &list), rows[i].class);
		assert_int_equal(list.list.count, 2);
		assert_int_equal(list.list.items[0].kind, rows[i].evidence);
		assert_int_equal(list.list.items[1].trial, 5);
		assert_true(list.list.items[1].failing);
	}
}

static void each_trial_has_its_own_block(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	const struct canary_broken *first, *second;

	(void)state;
	find(&report, HEAP_OVERFLOW, 56, true);
	heap_evidence(&report, &list);
	first = list.list.items[0].canary;
	second = list.list.items[1].canary;
	assert_string_equal(first->block->key, "c0ffee#9");
	assert_string_equal(second->block->key, "c0ffee");
	assert_int_equal(first->block->start, PLACE);
	assert_int_equal(second->block->start, PLACE + 4096);
	assert_int_equal(first->found.len, 2);
	assert_int_equal(second->found.len, 0);
	assert_string_equal(first->last_whole, "ok 1");
	assert_string_equal(first->first_broken, "ok 2");
	assert_null(second->last_whole);
}

/* Guards keep the harm away: damage counts where nothing failed, a bad free does not. */
static void where_nothing_failed_damage_is_what_is_chased(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 }, frees = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 }, other = { 0 };

	(void)state;
	find(&report, HEAP_OVERFLOW, 56, false);
	assert_int_equal(judged(&report, &list), VERDICT_OVERFLOW);
	assert_string_equal(list.list.items[0].note.id, "noted:heap");
	assert_int_equal(list.list.items[0].note.values.items[1].kind, SAID_NUMBER);
	find(&frees, HEAP_DOUBLE_FREE, 0, false);
	heap_evidence(&frees, &other);
	assert_false(other.list.items[0].failing);
}

/* Other trials failed, those with this damage did not: another matter. */
static void damage_in_passing_trials_is_not_accused(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };

	(void)state;
	find(&report, HEAP_OVERFLOW, 56, false);
	report.heap.failed = 3;
	assert_int_equal(judged(&report, &list), VERDICT_NOT_CAUGHT);
}

static void what_ran_on_is_no_evidence(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };

	(void)state;
	find(&report, HEAP_WRITE_AFTER_FREE, 0, true);
	report.findings.items[0].continued = true;
	find(&report, HEAP_OVERFLOW, 56, true);
	assert_int_equal(judged(&report, &list), VERDICT_OVERFLOW);
	assert_int_equal(list.list.count, 2);
}

/* ---- holders ---- */

static void hold(struct heap_dangling *dangling, const char *kind, const char *name, bool at_crash)
{
	struct heap_holder holder = { .kind = mem_strdup(kind),
				      .name = name ? mem_strdup(name) : NULL,
				      .name_offset = 16,
				      .offset = 24,
				      .lane = -1,
				      .used = true,
				      .count = 2,
				      .trials = 2,
				      .last_trial = 5 };

	if (strcmp(kind, "block") == 0)
		holder.key = mem_strdup("beef");
	if (at_crash) {
		VEC_PUSH(&holder.used_in.list, 3);
		VEC_PUSH(&holder.used_in.list, 5);
	}
	VEC_PUSH(&dangling->holders, holder);
}

static struct heap_dangling *dangle(struct heap_report *report)
{
	struct heap_dangling dangling = { .context = mem_strdup("c0ffee"),
					  .key = mem_strdup("c0ffee#9"),
					  .size = 56,
					  .trial = 3,
					  .blocks = 4,
					  .used = true };

	find(report, HEAP_USE_AFTER_FREE, 0, true);
	made_stack(&dangling.allocated, "object_new", 40);
	made_stack(&dangling.freed, "object_free", 77);
	VEC_PUSH(&report->dangling, dangling);
	return &report->dangling.items[report->dangling.count - 1];
}

static void the_one_that_still_held_it_is_the_holder(void **state)
{
	static const char *const kinds[] = { "global", "block" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		AUTO(heap_report_deinit) struct heap_report report = { 0 };
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		struct heap_dangling *dangling = dangle(&report);
		const struct holder_seen *seen;

		hold(dangling, "block", NULL, false); /* only when it was freed */
		hold(dangling, kinds[i], i == 0 ? "current" : NULL, true);
		hold(dangling, "register", "rdi", true);
		assert_int_equal(judged(&report, &list), VERDICT_DANGLING_HOLDER);
		assert_int_equal(list.list.count, 4);
		assert_int_equal(list.list.items[2].kind, EVIDENCE_HOLDER);
		assert_int_equal(list.list.items[3].trial, 5);
		seen = list.list.items[2].holder;
		assert_int_equal(seen->home.kind, i == 0 ? HOME_GLOBAL : HOME_BLOCK);
		assert_int_equal(seen->home.offset, i == 0 ? 16 : 24);
		assert_true(seen->used && seen->exact);
	}
}

static void of_two_that_held_it_nobody_is_accused(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	struct heap_dangling *dangling = dangle(&report);

	(void)state;
	hold(dangling, "block", NULL, true);
	hold(dangling, "global", "current", true);
	assert_int_equal(judged(&report, &list), VERDICT_USE_AFTER_FREE);
	assert_int_equal(list.list.count, 2);
}

/* Whoever is given a pointer saves it there. */
static void a_stack_that_held_it_too_is_a_doubt(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	struct heap_dangling *dangling = dangle(&report);

	(void)state;
	hold(dangling, "block", NULL, true);
	hold(dangling, "stack", NULL, true);
	(void)judged(&report, &list);
	assert_int_equal(list.list.count, 4);
	assert_int_equal(list.list.items[2].kind, EVIDENCE_HOLDER);
	assert_int_equal(list.list.items[2].holder->home.kind, HOME_BLOCK);
	assert_true(list.list.items[2].holder->on_stack_too);
}

/* The crash has what was read from the block, and by which pointer it came is gone. */
static void the_only_one_that_lasts_is_the_holder(void **state)
{
	(void)state;
	for (size_t lasting = 1; lasting <= 2; lasting++) {
		AUTO(heap_report_deinit) struct heap_report report = { 0 };
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		struct heap_dangling *dangling = dangle(&report);

		hold(dangling, "block", NULL, false);
		hold(dangling, "global", "current", false);
		hold(dangling, "stack", NULL, false);
		for (size_t i = 2 - lasting; i < 3; i++)
			VEC_PUSH(&dangling->holders.items[i].there_in.list, 4);
		(void)judged(&report, &list);
		assert_int_equal(list.list.count, lasting == 1 ? 3 : 2);
		if (lasting == 2)
			continue;
		assert_int_equal(list.list.items[2].holder->home.kind, HOME_GLOBAL);
		assert_true(list.list.items[2].holder->on_stack_too);
	}
}

/* Somebody still points to it, and nobody went there: that is how many programs are. */
static void a_pointer_that_is_not_used_is_no_evidence(void **state)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	struct heap_dangling dangling = { .context = mem_strdup("c0ffee"), .size = 56 };

	(void)state;
	hold(&dangling, "global", "last_seen", false);
	dangling.holders.items[0].used = false;
	VEC_PUSH(&report.dangling, dangling);
	assert_int_equal(judged(&report, &list), VERDICT_NOT_CAUGHT);
	assert_int_equal(list.list.count, 0);
}

/* ---- coins ---- */

#define FAIR 500000u
#define INNOCENT 20u

static void toss(struct chance_context *context, bool poisoned, bool failed)
{
	*(poisoned ? &context->poisoned : &context->clear) += 1;
	*(poisoned ? &context->poisoned_failed : &context->clear_failed) += failed;
}

/* Trials that fail by the coin of the last context, or by chance; each context's coin is tossed in
 * each. Returns after how many somebody was suspected, looking after every one; 0: nobody was. */
static unsigned int tosses(struct rng *rng, bool by_coin, unsigned int most, size_t *ret_who)
{
	struct chance chance = { 0 };
	unsigned int told = 0;

	for (size_t i = 0; i <= INNOCENT; i++)
		VEC_PUSH(&chance.contexts, ((struct chance_context){ .stack_hash = i + 1 }));
	for (unsigned int trial = 1; trial <= most && told == 0; trial++) {
		bool coins[INNOCENT + 1], failed;

		for (size_t i = 0; i <= INNOCENT; i++)
			coins[i] = rng_below(rng, 2) == 1;
		failed = by_coin ? coins[INNOCENT] : rng_below(rng, 3) == 0;
		for (size_t i = 0; i <= INNOCENT; i++)
			toss(&chance.contexts.items[i], coins[i], failed);
		told = chance_told(&chance, FAIR, 0.01) ? trial : 0;
	}
	for (size_t i = 0; told > 0 && i <= INNOCENT; i++)
		if (chance.contexts.items[i].clear_failed == 0 &&
		    chance.contexts.items[i].poisoned_failed == chance.contexts.items[i].poisoned)
			*ret_who = i;
	VEC_DEINIT(&chance.contexts);
	return told;
}

static void coins_tell_soon_who_it_is(void **state)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (int i = 0; i < 100; i++) {
		size_t who = 0;
		unsigned int told = tosses(&rng, true, 40, &who);

		assert_uint_in_range(told, 10, 30);
		assert_int_equal(who, INNOCENT);
	}
}

/* Who looks after each of 100 trials is wrong with 1 % at most, half of which is kept for the end:
 * 5 of 1,000 are to be expected at most, and more than 21 once in sixty million. */
static void coins_that_know_nothing_accuse_nobody(void **state)
{
	struct rng rng;
	unsigned int wrong = 0;
	size_t who;

	rng_init(&rng, 2);
	for (int i = 0; i < 1000; i++)
		wrong += tosses(&rng, false, 100, &who) > 0;
	assert_true(wrong <= 21);
}

#define WORDS 6u
#define WORD 3u

/* The same for words of new blocks: the last context's third one decides it, or chance. Returns
 * after how many trials somebody was suspected; 0: nobody was. */
static unsigned int words_told(struct rng *rng, bool by_word, unsigned int most,
			       struct heap_report *ret)
{
	struct chance chance = { 0 };
	unsigned int told = 0;

	for (size_t i = 0; i <= INNOCENT; i++)
		VEC_PUSH(&chance.contexts,
			 ((struct chance_context){ .stack_hash = i + 1, .words = WORDS }));
	for (unsigned int trial = 1; trial <= most && told == 0; trial++) {
		uint64_t seed = rng_next(rng), word = canary_word_hash(INNOCENT + 1, WORD);
		bool failed = by_word ? canary_chance(seed, INNOCENT + 1, FAIR) &&
						canary_chance(seed, word, FAIR)
				      : rng_below(rng, 3) == 0;

		VEC_PUSH(&chance.trials, ((struct chance_trial){ trial, seed, failed }));
		for (size_t i = 0; i <= INNOCENT; i++) {
			struct chance_context *c = &chance.contexts.items[i];

			toss(c, canary_chance(seed, c->stack_hash, FAIR), failed);
			c->seen[(trial - 1) / 64] |= 1ull << (trial - 1) % 64;
		}
		told = chance_told(&chance, FAIR, 0.01) ? trial : 0;
	}
	chance_conclude(&chance, FAIR, true, ret);
	chance_deinit(&chance);
	return told;
}

/* Two bits for each trial that fails and a bit for every other two: with 147 coins in less than 60,
 * unless hardly any of them fails: ten or less of 60, at one in four, once in 60 of such series,
 * and the seed is fixed. */
static void coins_tell_the_word(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (int i = 0; i < 50; i++) {
		AUTO(heap_report_deinit) struct heap_report report = { 0 };

		assert_uint_in_range(words_told(&rng, true, 60, &report), 10, 60);
		assert_true(report.suspects.count > 0);
		assert_string_equal(report.suspects.items[0].context, "0000000000000015");
		assert_int_equal(report.suspects.items[0].word, WORD);
		assert_int_equal(report.suspects.items[0].clear.failed, 0);
	}
}

/* Wrong with half of 1 % at most: 1.5 of 300 are to be expected, more than 11 once in ten million.
 */
static void words_that_do_not_matter_are_not_accused(void **state)
{
	struct rng rng;
	unsigned int wrong = 0;

	(void)state;
	rng_init(&rng, 4);
	for (int i = 0; i < 300; i++) {
		AUTO(heap_report_deinit) struct heap_report report = { 0 };

		wrong += words_told(&rng, false, 40, &report) > 0;
	}
	assert_uint_in_range(wrong, 0, 11);
}

/* Where all fail, no coin decides it; where none does, something else might have. */
static void coins_that_cannot_tell_are_given_up(void **state)
{
	(void)state;
	assert_false(chance_idle(&(struct chance){ .read = 7, .failed = 7 }, false));
	assert_true(chance_idle(&(struct chance){ .read = 8, .failed = 8 }, false));
	assert_false(chance_idle(&(struct chance){ .read = 40, .failed = 39 }, true));
	assert_false(chance_idle(&(struct chance){ .read = 40 }, false));
	assert_true(chance_idle(&(struct chance){ .read = 16 }, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_overflow_goes_on_over_the_next_blocks),
		cmocka_unit_test(a_block_left_at_both_ends_may_be_the_one),
		cmocka_unit_test(an_overflow_into_a_freed_block_is_no_write_after_free),
		cmocka_unit_test(an_underflow_reaches_back),
		cmocka_unit_test(a_run_that_fits_both_ends_is_settled_by_other_trials),
		cmocka_unit_test(the_block_that_all_runs_end_at_is_the_one),
		cmocka_unit_test(where_not_all_have_guards_the_one_before_may_have_done_it),
		cmocka_unit_test(damages_apart_are_each_their_own),
		cmocka_unit_test(every_kind_has_its_class),
		cmocka_unit_test(each_trial_has_its_own_block),
		cmocka_unit_test(where_nothing_failed_damage_is_what_is_chased),
		cmocka_unit_test(damage_in_passing_trials_is_not_accused),
		cmocka_unit_test(what_ran_on_is_no_evidence),
		cmocka_unit_test(the_one_that_still_held_it_is_the_holder),
		cmocka_unit_test(of_two_that_held_it_nobody_is_accused),
		cmocka_unit_test(a_stack_that_held_it_too_is_a_doubt),
		cmocka_unit_test(the_only_one_that_lasts_is_the_holder),
		cmocka_unit_test(a_pointer_that_is_not_used_is_no_evidence),
		cmocka_unit_test(coins_tell_soon_who_it_is),
		cmocka_unit_test(coins_that_know_nothing_accuse_nobody),
		cmocka_unit_test(coins_tell_the_word),
		cmocka_unit_test(words_that_do_not_matter_are_not_accused),
		cmocka_unit_test(coins_that_cannot_tell_are_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
