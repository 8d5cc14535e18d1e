/*
 * The minimiser in small: every promise of search/minimize/minimiser.h. The quality in
 * large numbers is minimize-sim's business (bench/). All seeds are fixed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/minimize/minimiser.h"

enum { TESTS_MOST = 64, RUNS_MOST = 20000 };

/* A world: all of `needed` (or, if `any` is set, that many tests of whatever name) in
 * any order, or in ascending order only. */
struct world {
	size_t n_tests;
	uint64_t needed;
	size_t any;
	bool ordered;
	double rate;
	uint64_t random;
};

struct record {
	uint32_t tests[TESTS_MOST];
	size_t count;
	enum minimiser_outcome outcome;
};

struct log {
	struct record *records;
	size_t count;
};

static double roll(struct world *w)
{
	uint64_t x = w->random += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static enum minimiser_outcome run(struct world *w, const uint32_t *tests, size_t count)
{
	uint64_t have = 0;
	bool ascending = true;

	for (size_t i = 0; i < count; i++) {
		have |= (uint64_t)1 << tests[i];
		ascending = ascending && (i == 0 || tests[i - 1] < tests[i]);
	}
	if ((have & w->needed) != w->needed || count < w->any || (w->ordered && !ascending))
		return MINIMISER_PASS;
	return roll(w) < w->rate ? MINIMISER_TARGET : MINIMISER_PASS;
}

static struct minimiser *make(const struct world *w, size_t victim, unsigned flags)
{
	struct minimiser_options options = {
		.n_tests = w->n_tests, .victim = victim, .seed = 42, .flags = flags
	};
	struct minimiser *m = NULL;

	assert_int_equal(minimiser_new(&options, &m), 0);
	return m;
}

static void report(struct minimiser *m, uint64_t id, const struct record *record)
{
	struct minimiser_report r = { .plan_id = id,
				      .tests = record->tests,
				      .count = record->count,
				      .outcome = record->outcome };

	assert_int_equal(minimiser_report(m, &r), 0);
}

static void record_plan(struct record *record, const struct minimiser_plan *plan, struct world *w)
{
	assert_true(plan->count <= TESTS_MOST);
	memcpy(record->tests, plan->tests, plan->count * sizeof(*plan->tests));
	record->count = plan->count;
	record->outcome = run(w, plan->tests, plan->count);
}

/* With `slots` plans in the air, ending in random order. What was reported goes to `log`. */
static void drive(struct minimiser *m, struct world *w, size_t slots, struct log *log)
{
	struct {
		uint64_t id;
		struct record record;
	} flying[16];
	struct minimiser_plan plan;
	size_t busy = 0;

	assert_true(slots <= 16);
	for (size_t runs = 0; !minimiser_done(m); runs++) {
		size_t which;

		assert_true(runs < RUNS_MOST);
		while (busy < slots && minimiser_next(m, &plan) > 0) {
			flying[busy].id = plan.id;
			record_plan(&flying[busy++].record, &plan, w);
		}
		assert_true(busy > 0);
		which = (size_t)(roll(w) * (double)busy);
		if (log)
			log->records[log->count++] = flying[which].record;
		report(m, flying[which].id, &flying[which].record);
		flying[which] = flying[--busy];
	}
}

static void assert_list(struct minimiser *m, uint64_t wanted)
{
	struct minimiser_result result;
	uint64_t have = 0;

	assert_int_equal(minimiser_result(m, &result), 0);
	for (size_t i = 0; i < result.count; i++) {
		assert_true(i == 0 || result.tests[i - 1] < result.tests[i]);
		have |= (uint64_t)1 << result.tests[i];
	}
	assert_int_equal(have, wanted);
}

static void test_bad_options(void **state)
{
	struct minimiser_options none = { .n_tests = 0, .victim = MINIMISER_NO_VICTIM };
	struct minimiser_options outside = { .n_tests = 3, .victim = 3 };
	struct minimiser_options sure = { .n_tests = 3, .victim = 2, .confidence = 1 };
	struct minimiser *m = NULL;

	assert_int_equal(minimiser_new(&none, &m), -EINVAL);
	assert_int_equal(minimiser_new(&outside, &m), -EINVAL);
	assert_int_equal(minimiser_new(&sure, &m), -EINVAL);
	assert_null(m);
	minimiser_free(NULL);
}

static void test_bad_reports(void **state)
{
	struct world w = { .n_tests = 4 };
	struct minimiser *m = make(&w, 3, 0);
	struct minimiser_report twice = { .tests = (uint32_t[]){ 1, 1, 3 }, .count = 3 };
	struct minimiser_report unknown = { .tests = (uint32_t[]){ 1, 4 }, .count = 2 };
	struct minimiser_report beyond = { .tests = (uint32_t[]){ 1, 3 },
					   .count = 2,
					   .started = 3 };
	struct minimiser_state s;

	assert_int_equal(minimiser_report(m, &twice), -EINVAL);
	assert_int_equal(minimiser_report(m, &unknown), -EINVAL);
	assert_int_equal(minimiser_report(m, &beyond), -EINVAL);
	minimiser_state(m, &s);
	assert_int_equal(s.trials, 0);
	minimiser_free(m);
}

/* The list, the table of proof and the counters, in the plain case. */
static void test_finds_the_needed(void **state)
{
	struct world w = { .n_tests = 40, .needed = 0x8000401002, .rate = 0.4, .random = 1 };
	struct minimiser *m = make(&w, 39, 0);
	struct minimiser_result result;
	struct minimiser_state s;

	drive(m, &w, 1, NULL);
	assert_list(m, w.needed);
	minimiser_result(m, &result);
	minimiser_state(m, &s);
	assert_int_equal(result.verdict, MINIMISER_MINIMAL);
	assert_true(result.confidence >= 0.99);
	assert_true(result.full.failed >= 3 && result.full.runs >= result.full.failed);
	assert_true(result.minimal.failed >= 3 && result.minimal.runs >= result.minimal.failed);
	assert_int_equal(result.n_without, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(result.without[i].test, result.tests[i]);
		assert_int_equal(result.without[i].wider.failed, 0);
		/* (1 - 0.4)^n below 1 % takes nine clean runs. */
		assert_true(result.without[i].wider.runs >= 9);
		assert_true(result.without[i].exact.runs <= result.without[i].wider.runs);
	}
	assert_int_equal(s.trials, result.trials);
	assert_true(s.trials_to_go == 0);
	assert_true(minimiser_needed(m, 39) == 1);
	assert_true(minimiser_needed(m, 1) > 0.99);
	assert_true(minimiser_needed(m, 2) == 0);
	minimiser_free(m);
}

static void test_without_a_victim(void **state)
{
	struct world w = { .n_tests = 30, .needed = 0x100410, .rate = 0.5, .random = 2 };
	struct minimiser *m = make(&w, MINIMISER_NO_VICTIM, 0);

	drive(m, &w, 1, NULL);
	assert_list(m, w.needed);
	minimiser_free(m);
}

/* Tests behind the victim never run. */
static void test_victim_in_the_middle(void **state)
{
	struct world w = { .n_tests = 30, .needed = 0x0404, .rate = 0.5, .random = 3 };
	struct minimiser *m = make(&w, 10, 0);
	struct minimiser_plan plan;

	assert_int_equal(minimiser_next(m, &plan), 1);
	assert_int_equal(plan.purpose, MINIMISER_BASELINE);
	assert_int_equal(plan.count, 11);
	minimiser_forget(m, plan.id);
	drive(m, &w, 1, NULL);
	assert_list(m, w.needed);
	minimiser_free(m);
}

static void test_tiny_lists(void **state)
{
	static const struct {
		size_t n, victim;
		uint64_t needed, wanted;
	} cases[] = {
		{ 1, 0, 0, 1 }, { 1, MINIMISER_NO_VICTIM, 1, 1 }, { 2, 1, 0, 2 },
		{ 2, 1, 3, 3 }, { 2, MINIMISER_NO_VICTIM, 3, 3 }, { 2, MINIMISER_NO_VICTIM, 1, 1 },
		{ 3, 0, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = { .n_tests = cases[i].n,
				   .needed = cases[i].needed,
				   .rate = 0.5,
				   .random = 4 + i };
		struct minimiser *m =
			make(&w, cases[i].victim, MINIMISER_CHECK_ORDER | MINIMISER_CHECK_OTHERS);

		drive(m, &w, 1, NULL);
		assert_list(m, cases[i].wanted);
		minimiser_free(m);
	}
}

/* Beyond what is enumerated exactly, and with nothing that can go. */
static void test_all_needed(void **state)
{
	static const size_t sizes[] = { 6, 13, 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct world w = { .n_tests = sizes[i],
				   .needed = ((uint64_t)1 << sizes[i]) - 1,
				   .rate = 0.6,
				   .random = 20 + i };
		struct minimiser *m = make(&w, sizes[i] - 1, 0);

		drive(m, &w, 1, NULL);
		assert_list(m, w.needed);
		minimiser_free(m);
	}
}

static void test_none_needed(void **state)
{
	struct world w = { .n_tests = 40, .rate = 0.3, .random = 30 };
	struct minimiser *m = make(&w, 39, MINIMISER_CHECK_ORDER | MINIMISER_CHECK_OTHERS);

	drive(m, &w, 1, NULL);
	assert_list(m, (uint64_t)1 << 39);
	minimiser_free(m);
}

static void test_never_fails(void **state)
{
	struct world w = { .n_tests = 10, .rate = 0, .random = 31 };
	struct minimiser_options options = { .n_tests = 10, .victim = 9, .baseline_runs = 100 };
	struct minimiser *m = NULL;
	struct minimiser_result result;
	struct minimiser_plan plan;

	assert_int_equal(minimiser_new(&options, &m), 0);
	drive(m, &w, 1, NULL);
	minimiser_result(m, &result);
	assert_int_equal(result.verdict, MINIMISER_NEVER_FAILED);
	assert_int_equal(result.full.runs, 100);
	assert_int_equal(minimiser_next(m, &plan), 0);
	minimiser_free(m);
}

static void test_only_the_number_matters(void **state)
{
	struct world w = { .n_tests = 50, .any = 27, .rate = 0.4, .random = 32 };
	struct minimiser *m = make(&w, 49, 0);
	struct minimiser_result result;

	drive(m, &w, 1, NULL);
	minimiser_result(m, &result);
	assert_int_equal(result.verdict, MINIMISER_COUNT_MATTERS);
	assert_true(result.count >= 27);
	minimiser_free(m);
}

static void test_any_few_do(void **state)
{
	struct world w = { .n_tests = 40, .any = 5, .rate = 0.5, .random = 33 };
	struct minimiser *m = make(&w, 39, MINIMISER_CHECK_OTHERS);
	struct minimiser_result result;

	drive(m, &w, 1, NULL);
	minimiser_result(m, &result);
	assert_int_equal(result.verdict, MINIMISER_COUNT_MATTERS);
	assert_int_equal(result.others, MINIMISER_OTHERS_ANY);
	assert_int_equal(result.count, 5);
	minimiser_free(m);
}

static void test_checks_after_the_proof(void **state)
{
	for (int ordered = 0; ordered < 2; ordered++) {
		struct world w = { .n_tests = 30,
				   .needed = 0x20001042,
				   .rate = 0.5,
				   .ordered = ordered,
				   .random = 34 };
		struct minimiser *m = make(&w, 29, MINIMISER_CHECK_ORDER | MINIMISER_CHECK_OTHERS);
		struct minimiser_result result;

		drive(m, &w, 1, NULL);
		assert_list(m, w.needed);
		minimiser_result(m, &result);
		assert_int_equal(result.others, MINIMISER_OTHERS_NONE);
		assert_int_equal(result.others_runs.failed, 0);
		assert_true(result.reversed.runs > 0 && result.shuffled.runs > 0);
		assert_int_equal(result.reversed.failed, ordered ? 0 : 2);
		assert_int_equal(result.shuffled.failed, ordered ? 0 : 2);
		minimiser_free(m);
	}
}

/* Other signatures and lost runs are no evidence, but they are counted. */
static void test_censored(void **state)
{
	struct world w = { .n_tests = 20, .needed = 0x80404, .rate = 0.5, .random = 35 };
	struct minimiser *m = make(&w, 19, 0);
	struct minimiser_plan plan;
	struct minimiser_state s;
	size_t lost = 0, other = 0;

	for (size_t runs = 0; !minimiser_done(m); runs++) {
		struct record record;
		double dice = roll(&w);

		assert_true(runs < RUNS_MOST);
		assert_int_equal(minimiser_next(m, &plan), 1);
		record_plan(&record, &plan, &w);
		if (dice < 0.1)
			record.outcome = MINIMISER_OTHER;
		else if (dice < 0.2)
			record.outcome = MINIMISER_NO_INFORMATION;
		other += record.outcome == MINIMISER_OTHER;
		lost += record.outcome == MINIMISER_NO_INFORMATION;
		report(m, plan.id, &record);
	}
	assert_list(m, w.needed);
	minimiser_state(m, &s);
	assert_int_equal(s.censored, other);
	assert_int_equal(s.no_information, lost);
	minimiser_free(m);
}

/* What never started played no part. */
static void test_started(void **state)
{
	struct world w = { .n_tests = 12 };
	struct minimiser *m = make(&w, MINIMISER_NO_VICTIM, 0);
	uint32_t all[12];
	struct minimiser_report died_early = {
		.tests = all, .count = 12, .started = 5, .outcome = MINIMISER_TARGET
	};
	struct minimiser_state s;

	for (uint32_t i = 0; i < 12; i++)
		all[i] = i;
	assert_int_equal(minimiser_report(m, &died_early), 0);
	minimiser_state(m, &s);
	assert_int_equal(s.left, 5);
	assert_true(minimiser_needed(m, 7) == 0);
	minimiser_free(m);

	/* A pass that never came to its victim says nothing. */
	m = make(&w, 11, 0);
	died_early.outcome = MINIMISER_PASS;
	assert_int_equal(minimiser_report(m, &died_early), 0);
	minimiser_state(m, &s);
	assert_int_equal(s.trials, 0);
	assert_int_equal(s.no_information, 1);
	minimiser_free(m);
}

static bool same_plan(const struct minimiser_plan *a, const struct minimiser_plan *b)
{
	return a->purpose == b->purpose && a->count == b->count &&
	       !memcmp(a->tests, b->tests, a->count * sizeof(*a->tests));
}

/* At every single moment of a hunt, one that was killed there and told the stored
 * reports again plans the same, believes the same and ends the same. */
static void test_resume(void **state)
{
	for (uint64_t seed = 0; seed < 3; seed++) {
		struct world w = {
			.n_tests = 40, .needed = 0x8000101010, .rate = 0.4, .random = 50 + seed
		};
		struct log log = { .records = calloc(RUNS_MOST, sizeof(*log.records)) };
		struct minimiser *first = make(&w, 39, MINIMISER_CHECK_ORDER);
		struct minimiser *live = make(&w, 39, MINIMISER_CHECK_ORDER);

		assert_non_null(log.records);
		drive(first, &w, seed ? 4 : 1, &log);
		for (size_t i = 0; i <= log.count; i++) {
			struct minimiser_plan a, b;
			struct minimiser_state s, t;
			struct minimiser *again;
			int more;

			if (i)
				report(live, 0, &log.records[i - 1]);
			if (i % 17 && i < log.count)
				continue;
			again = make(&w, 39, MINIMISER_CHECK_ORDER);
			for (size_t j = 0; j < i; j++)
				report(again, 0, &log.records[j]);
			more = minimiser_next(again, &b);
			assert_int_equal(minimiser_next(live, &a), more);
			if (more) {
				assert_true(same_plan(&a, &b));
				minimiser_forget(live, a.id);
				minimiser_forget(again, b.id);
			}
			minimiser_state(live, &s);
			minimiser_state(again, &t);
			assert_memory_equal(&s, &t, sizeof(s));
			minimiser_free(again);
		}
		assert_true(minimiser_done(live));
		assert_list(first, w.needed);
		assert_list(live, w.needed);
		minimiser_free(first);
		minimiser_free(live);
		free(log.records);
	}
}

/* Late results, in whatever order, are just more evidence. */
static void test_slots(void **state)
{
	for (size_t slots = 2; slots <= 16; slots *= 2) {
		struct world w = {
			.n_tests = 50, .needed = 0x2000100201000, .rate = 0.3, .random = 60 + slots
		};
		struct minimiser *m = make(&w, 49, MINIMISER_CHECK_OTHERS);

		drive(m, &w, slots, NULL);
		assert_list(m, w.needed);
		minimiser_free(m);
	}
}

/* Slots differ in what they are asked: nobody repeats another's question. */
static void test_flying_plans_differ(void **state)
{
	struct world w = { .n_tests = 40, .needed = 0x8000101010, .rate = 0.5, .random = 70 };
	struct minimiser *m = make(&w, 39, 0);
	struct minimiser_plan plan;
	struct record first, record;

	do {
		assert_int_equal(minimiser_next(m, &plan), 1);
		record_plan(&record, &plan, &w);
		if (plan.purpose == MINIMISER_BASELINE)
			report(m, plan.id, &record);
	} while (plan.purpose == MINIMISER_BASELINE);
	first = record;
	assert_int_equal(minimiser_next(m, &plan), 1);
	assert_false(plan.count == first.count &&
		     !memcmp(plan.tests, first.tests, plan.count * sizeof(*plan.tests)));
	minimiser_free(m);
}

/* A look-alike is adopted, stays silent, and is given back. */
static void test_rolls_back(void **state)
{
	struct world w = { .n_tests = 30, .needed = 0x20000810, .rate = 0.4, .random = 80 };
	struct minimiser *m = make(&w, 29, 0);
	struct record lie = { .tests = { 0, 1, 2, 3, 29 },
			      .count = 5,
			      .outcome = MINIMISER_TARGET };
	struct minimiser_plan plan;
	struct minimiser_state s;

	do {
		struct record record;

		assert_int_equal(minimiser_next(m, &plan), 1);
		record_plan(&record, &plan, &w);
		report(m, plan.id, &record);
	} while (plan.purpose == MINIMISER_BASELINE);
	report(m, 0, &lie);
	minimiser_state(m, &s);
	assert_int_equal(s.left, 4);
	drive(m, &w, 1, NULL);
	minimiser_state(m, &s);
	assert_true(s.rollbacks >= 1);
	assert_list(m, w.needed);
	minimiser_free(m);
}

/* Whatever one asks for and when: the list is one that has failed. */
static void test_best_so_far(void **state)
{
	struct world w = { .n_tests = 40, .needed = 0x8000101010, .rate = 0.4, .random = 90 };
	struct minimiser *m = make(&w, 39, 0);
	struct minimiser_plan plan;

	while (minimiser_next(m, &plan) > 0) {
		struct minimiser_result result;
		struct record record;
		uint64_t have = 0;

		record_plan(&record, &plan, &w);
		report(m, plan.id, &record);
		minimiser_result(m, &result);
		for (size_t i = 0; i < result.count; i++)
			have |= (uint64_t)1 << result.tests[i];
		assert_int_equal(have & w.needed, w.needed);
	}
	minimiser_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_bad_reports),
		cmocka_unit_test(test_finds_the_needed),
		cmocka_unit_test(test_without_a_victim),
		cmocka_unit_test(test_victim_in_the_middle),
		cmocka_unit_test(test_tiny_lists),
		cmocka_unit_test(test_all_needed),
		cmocka_unit_test(test_none_needed),
		cmocka_unit_test(test_never_fails),
		cmocka_unit_test(test_only_the_number_matters),
		cmocka_unit_test(test_any_few_do),
		cmocka_unit_test(test_checks_after_the_proof),
		cmocka_unit_test(test_censored),
		cmocka_unit_test(test_started),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_flying_plans_differ),
		cmocka_unit_test(test_rolls_back),
		cmocka_unit_test(test_best_so_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
