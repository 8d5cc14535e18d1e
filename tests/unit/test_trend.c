/*
 * What keeps growing is told from what only looks like it. All series come from fixed seeds, so
 * the counts below are the same in every run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/auto.h"
#include "search/stats/rng.h"
#include "search/stats/trend.h"

#define SERIES 4000

typedef void (*make_fn)(struct rng *rng, double *x, size_t count);

/* The share of SERIES series that grow, by what trend_of() says. */
static double growing(make_fn make, size_t count, uint64_t seed)
{
	double x[TREND_READINGS_MAX];
	unsigned int found = 0;
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned int i = 0; i < SERIES; i++) {
		make(&rng, x, count);
		found += trend_of(x, count).verdict == TREND_GROWS;
	}
	return (double)found / SERIES;
}

static void make_noise(struct rng *rng, double *x, size_t count)
{
	for (size_t i = 0; i < count; i++)
		x[i] = (double)rng_below(rng, 20);
}

static void make_walk(struct rng *rng, double *x, size_t count)
{
	double level = 1000;

	for (size_t i = 0; i < count; i++)
		x[i] = level += (double)rng_below(rng, 5) - 2;
}

/* Fills by up to three, and is emptied when full: at least once before the end. */
static void make_saw_tooth(struct rng *rng, double *x, size_t count)
{
	double top = 5 + (double)rng_below(rng, count / 2), level = (double)rng_below(rng, 5);

	for (size_t i = 0; i < count; i++) {
		x[i] = level;
		level = level >= top ? 0 : level + 1 + (double)rng_below(rng, 3);
	}
}

/* A cache that is full after at most two thirds of the tests. */
static void make_cache(struct rng *rng, double *x, size_t count)
{
	size_t full = 1 + rng_below(rng, count * 2 / 3);
	double level = 0;

	for (size_t i = 0; i < count; i++) {
		x[i] = level;
		if (i < full && rng_unit(rng) < 0.9)
			level += 1 + (double)rng_below(rng, 4);
	}
}

/* Everything is set up when it is first used, and that becomes rarer. */
static void make_first_use(struct rng *rng, double *x, size_t count)
{
	double level = 0;

	for (size_t i = 0; i < count; i++) {
		x[i] = level;
		level += rng_unit(rng) < 2 / (2 + (double)i) ? 1 : 0;
	}
}

static void make_leak(struct rng *rng, double *x, size_t count)
{
	double level = 3;

	for (size_t i = 0; i < count; i++) {
		x[i] = level;
		level += rng_unit(rng) < 0.9 ? 1 + (double)rng_below(rng, 3) : 0;
	}
}

/* Only one test in five leaks, and something goes up and down at the same place. */
static void make_seldom_noisy_leak(struct rng *rng, double *x, size_t count)
{
	double level = 0;

	for (size_t i = 0; i < count; i++) {
		x[i] = level + (rng_below(rng, 10) == 0 ? (double)rng_below(rng, 4) : 0);
		level += rng_below(rng, 5) == 0 ? 2 : 0;
	}
}

/* Of one context in one run; a finding needs all runs. */
static void innocent_series_are_rarely_accused(void **state)
{
	static const size_t counts[] = { 25, 100, 300 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		size_t count = counts[i];

		assert_true(growing(make_noise, count, 1) <= TREND_P);
		assert_true(growing(make_walk, count, 2) <= 2 * TREND_P);
		assert_true(growing(make_saw_tooth, count, 3) == 0);
		assert_true(growing(make_cache, count, 4) == 0);
		/* Some of these do grow for as long as the run takes. */
		assert_true(growing(make_first_use, count, 5) <= 0.02);
	}
}

/* Five tests that all go up are enough to be named; chance does that, too. */
static void few_tests_are_weaker_evidence(void **state)
{
	(void)state;
	assert_true(growing(make_noise, 6, 1) <= TREND_P);
	assert_true(growing(make_walk, 6, 2) <= 0.02);
	assert_true(growing(make_walk, 9, 2) <= 0.01);
	assert_true(growing(make_cache, 9, 4) == 0);
}

static void leaks_are_found(void **state)
{
	(void)state;
	assert_true(growing(make_leak, 9, 6) > 0.75);
	assert_true(growing(make_leak, 25, 6) > 0.99);
	assert_true(growing(make_leak, 200, 7) > 0.999);
	assert_true(growing(make_seldom_noisy_leak, 300, 8) > 0.9);
}

static void each_answer_has_its_reason(void **state)
{
	static const double steady[] = { 0, 1, 2, 3, 4, 5 };
	static const double few[] = { 0, 1, 2, 3, 4, 4 };
	static const double fell[] = { 0, 3, 6, 9, 12, 4, 5, 6, 7, 8 };
	static const double full[] = { 0, 2, 4, 6, 8, 10, 12, 12, 12, 12, 12, 12, 12 };
	struct trend t;

	(void)state;
	t = trend_of(steady, ARRAY_SIZE(steady));
	assert_int_equal(t.verdict, TREND_GROWS);
	assert_int_equal(t.tests, 5);
	assert_int_equal(t.rises, 5);
	assert_int_equal(t.quiet, 0);
	assert_true(t.kept == 5 && t.fall == 0);
	assert_true(fabs(t.p - 1.0 / 32) < 1e-9);
	assert_true(fabs(t.most_p - 1.0 / 32) < 1e-9);

	t = trend_of(few, ARRAY_SIZE(few));
	assert_int_equal(t.verdict, TREND_TOO_FEW);
	assert_int_equal(t.rises, 4);

	t = trend_of(fell, ARRAY_SIZE(fell));
	assert_int_equal(t.verdict, TREND_FALLS_BACK);
	assert_true(t.fall == 8 && t.kept == 8);

	t = trend_of(full, ARRAY_SIZE(full));
	assert_int_equal(t.verdict, TREND_LEVELS_OFF);
	assert_int_equal(t.quiet, 6);
	/* Of the 924 ways to choose 6 of 12. */
	assert_true(fabs(t.level_p - 1.0 / 924) < 1e-12);
}

static void little_and_much_is_no_trouble(void **state)
{
	double x[TREND_READINGS_MAX];

	(void)state;
	assert_int_equal(trend_of(NULL, 0).verdict, TREND_TOO_FEW);
	x[0] = 7;
	assert_int_equal(trend_of(x, 1).verdict, TREND_TOO_FEW);
	for (size_t i = 0; i < TREND_READINGS_MAX; i++)
		x[i] = 1e15 + (double)i;
	assert_int_equal(trend_of(x, TREND_READINGS_MAX).verdict, TREND_GROWS);
	for (size_t i = 0; i < TREND_READINGS_MAX; i++)
		x[i] = 5;
	assert_int_equal(trend_of(x, TREND_READINGS_MAX).verdict, TREND_TOO_FEW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(innocent_series_are_rarely_accused),
		cmocka_unit_test(few_tests_are_weaker_evidence),
		cmocka_unit_test(leaks_are_found),
		cmocka_unit_test(each_answer_has_its_reason),
		cmocka_unit_test(little_and_much_is_no_trouble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
