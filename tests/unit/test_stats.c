/*
 * Statistics against numbers that do not come from the code under test.
 *
 * Expected constants were made with Python: p-values of small tables, clean runs
 * and E as exact fractions (fractions.Fraction, math.comb); p-values of
 * million-trial tables by the same recurrence in 60-digit decimals; normal
 * quantiles by bisection of the erf series in 60-digit decimals, and Wilson
 * bounds from those. Everything is then rounded once, to 17 digits.
 *
 * Simulations have a fixed seed: they pass always or never.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "search/stats/fisher.h"
#include "search/stats/holm.h"
#include "search/stats/rate.h"
#include "search/stats/rng.h"
#include "search/stats/safe_test.h"
#include "search/stats/shift.h"
#include "search/stats/strata.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* ---- rate ---- */

static void quantile_is_exact(void **state)
{
	assert_near(rate_normal_quantile(0.5), 0.6744897501960817, 1e-15);
	assert_near(rate_normal_quantile(0.95), 1.9599639845400542, 1e-15);
	assert_near(rate_normal_quantile(0.99), 2.5758293035489008, 1e-15);
	assert_near(rate_normal_quantile(0.999), 3.2905267314918948, 1e-14);
}

static void quantile_inverts_the_distribution(void **state)
{
	for (double tail = 0.999; tail > 1e-12; tail *= 0.7) {
		double z = rate_normal_quantile(1 - tail);

		/* 1 - tail has an absolute error of 1e-16, hence the second term. */
		assert_near(erfc(z / sqrt(2)), tail, 1e-13 + 2e-16 / tail);
	}
}

static void wilson_matches_exact_bounds(void **state)
{
	static const struct {
		uint64_t trials, failed;
		double confidence, low, high;
	} cases[] = {
		{ 60, 14, 0.95, 1.44395617366428308e-01, 3.54362703776019639e-01 },
		{ 10, 0, 0.95, 0, 2.77532799862889257e-01 },
		{ 10, 10, 0.95, 7.22467200137110743e-01, 1 },
		{ 1, 0, 0.95, 0, 7.93450685622762664e-01 },
		{ 5, 1, 0.99, 2.39336628508880975e-02, 7.18221329765317495e-01 },
		{ 100000, 3, 0.95, 1.02027585445173393e-05, 8.82080492517673168e-05 },
		{ 1000000000000, 1, 0.95, 1.76524554935174726e-13, 5.66493426573651157e-12 },
		{ 1000000000000, 999999999999, 0.95, 9.99999999994335087e-01,
		  9.99999999999823475e-01 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rate r = rate_wilson(cases[i].trials, cases[i].failed, cases[i].confidence);

		assert_int_equal(r.trials, cases[i].trials);
		assert_int_equal(r.failed, cases[i].failed);
		assert_near(r.rate, (double)cases[i].failed / (double)cases[i].trials, 0);
		assert_near(r.low, cases[i].low, 1e-14);
		assert_near(r.high, cases[i].high, 1e-14);
	}
}

static void wilson_without_trials_knows_nothing(void **state)
{
	struct rate r = rate_wilson(0, 0, RATE_CONFIDENCE);

	assert_true(r.rate == 0 && r.low == 0 && r.high == 1);
}

static void wilson_bounds_stay_ordered_and_mirror(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 3, 7, 40, 999, 1ULL << 40, 1ULL << 62, UINT64_MAX };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint64_t n = sizes[i], step = n / 37 + 1;

		for (uint64_t failed = 0;; failed += step) {
			struct rate r = rate_wilson(n, failed, 0.95);
			struct rate mirror = rate_wilson(n, n - failed, 0.95);

			assert_true(0 <= r.low && r.low <= r.rate);
			assert_true(r.rate <= r.high && r.high <= 1);
			assert_true(fabs(r.low - (1 - mirror.high)) < 1e-15);
			assert_true((failed == 0) == (r.low == 0));
			assert_true(failed != n || r.high == 1);
			if (n - failed < step)
				break;
		}
	}
}

/* The probability of k failures; in logarithms, since a product from k = 0 up would underflow. */
static double binomial(uint64_t n, uint64_t k, double p)
{
	double x = (double)k, y = (double)(n - k);

	return exp(lgamma(x + y + 1) - lgamma(x + 1) - lgamma(y + 1) + x * log(p) + y * log1p(-p));
}

/* The probability that the interval holds the true rate, over all possible outcomes. */
static double wilson_coverage(uint64_t n, double p)
{
	double covered = 0;

	for (uint64_t k = 0; k <= n; k++) {
		struct rate r = rate_wilson(n, k, 0.95);

		if (r.low <= p && p <= r.high)
			covered += binomial(n, k, p);
	}
	return covered;
}

static void wilson_covers_as_often_as_it_says(void **state)
{
	/* Mean and least coverage over the true rates 0.001, 0.002 … 0.999: close to 95 % on
	 * the average, but it swings, as every interval for counts must, worst near 0
	 * and 1. From the textbook formula in Python, summed with math.comb. */
	static const struct {
		uint64_t trials;
		double mean, least;
	} cases[] = {
		{ 5, 0.9551332530334725, 0.8325017776138238 },
		{ 20, 0.9531739825021585, 0.8515956670851492 },
		{ 60, 0.9516006238073624, 0.886813870546916 },
		{ 200, 0.9510079722502945, 0.9201605680470218 },
	};

	assert_near(wilson_coverage(10, 0.5), 0.978515625, 1e-12);
	assert_near(wilson_coverage(20, 0.2), 0.9563281218730564, 1e-12);
	assert_near(wilson_coverage(50, 0.1), 0.9703082890880884, 1e-12);

	for (size_t i = 0; i < COUNT(cases); i++) {
		double sum = 0, least = 1;

		for (int p = 1; p < 1000; p++) {
			double coverage = wilson_coverage(cases[i].trials, p / 1000.0);

			sum += coverage;
			least = fmin(least, coverage);
		}
		assert_near(sum / 999, cases[i].mean, 1e-10);
		assert_near(least, cases[i].least, 1e-10);
	}
}

static void clean_runs_are_the_smallest_that_suffice(void **state)
{
	static const struct {
		double rate, confidence;
		uint64_t runs;
	} cases[] = {
		{ 0.2, 0.99, 21 },
		{ 0.01, 0.99, 459 },
		{ 0.001, 0.95, 2995 },
		{ 0.999, 0.5, 1 },
		{ 1, 0.99, 1 },
		{ 7, 0.99, 1 },
		/* Ties in decimals, where the doubles are a little off. */
		{ 0.9, 0.99, 2 },
		{ 0.5, 0.75, 2 },
		{ 0.2, 0.36, 2 },
		{ 0.1, 0.271, 3 },
		{ 0.3, 0.657, 3 },
		{ 0.7, 0.973, 3 },
		{ 0.99, 0.9999, 2 },
		/* Nothing can be said. */
		{ 0, 0.99, 0 },
		{ -1, 0.99, 0 },
		{ NAN, 0.99, 0 },
		{ 1e-300, 0.99, UINT64_MAX },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(rate_clean_runs(cases[i].rate, cases[i].confidence),
				 cases[i].runs);
}

static void clean_runs_bound_the_rate(void **state)
{
	assert_true(rate_upper_bound_clean(0, 0.95) == 1);
	assert_near(rate_upper_bound_clean(1, 0.95), 0.95, 1e-15);
	assert_near(rate_upper_bound_clean(21, 0.99), 1.96914277860848558e-01, 1e-14);
	assert_near(rate_upper_bound_clean(100, 0.95), 2.95130496070399352e-02, 1e-14);
	assert_near(rate_upper_bound_clean(1000000, 0.99), 4.60515958220814786e-06, 1e-14);
	/* The two questions are inverse to each other. */
	for (uint64_t n = 1; n < 3000; n += 7)
		assert_int_equal(
			rate_clean_runs(rate_upper_bound_clean(n, 0.99) * (1 + 1e-12), 0.99), n);
}

static void so_many_of_those_that_run_fail(void **state)
{
	assert_near(rate_at_least(2, 2, 1), 1, 1e-15);
	assert_near(rate_at_least(3, 1, 0.5), 0.875, 1e-14);
	assert_near(rate_at_least(4, 2, 0.25), 1 - 0.31640625 - 0.421875, 1e-14);
	assert_near(rate_at_least(10, 0, 0.1), 1, 1e-15);
	assert_true(rate_at_least(1, 2, 1) == 0);
	assert_true(rate_at_least(5, 1, 0) == 0);
}

/* ---- fisher ---- */

struct fisher_case {
	struct fisher_table t; /* trials and failures of A, then of B */
	double two_sided, greater, less;
};

static const struct fisher_case fisher_small[] = {
	{ { 60, 14, 60, 0 }, 5.18241554826999137e-05, 2.59120777413499568e-05, 1 },
	{ { 10, 3, 10, 3 }, 1, 6.85758513931888580e-01, 6.85758513931888580e-01 },
	{ { 4, 4, 4, 0 }, 1.0 / 35, 1.0 / 70, 1 },
	{ { 15, 0, 45, 14 }, 1.30213464831125530e-02, 1, 9.62021849250941155e-03 },
	{ { 5, 5, 21, 14 }, 18299.0 / 65780, 1.76771055031924584e-01, 1 },
	{ { 7, 2, 30, 17 }, 2927.0 / 12617, 9.62649599746373985e-01, 1.79658397400332875e-01 },
	{ { 30, 0, 30, 30 }, 1.69112338921447355e-17, 1, 8.45561694607236774e-18 },
	{ { 1, 1, 1, 0 }, 1, 0.5, 1 },
	{ { 200, 71, 150, 20 },
	  2.29652042756579433e-06,
	  1.48677263809272338e-06,
	  9.99999604169433565e-01 },
	{ { 1000, 30, 1000, 60 },
	  1.62061901873869268e-03,
	  9.99629359316920540e-01,
	  8.10309509369346341e-04 },
	{ { 3, 1, 1000, 400 }, 1, 7.84215879642175651e-01, 6.48431281675262317e-01 },
	/* Nothing to tell apart. */
	{ { 0, 0, 0, 0 }, 1, 1, 1 },
	{ { 0, 0, 9, 4 }, 1, 1, 1 },
	{ { 9, 0, 7, 0 }, 1, 1, 1 },
	{ { 9, 9, 7, 7 }, 1, 1, 1 },
};

static const struct fisher_case fisher_large[] = {
	{ { 1000000, 500000, 1000000, 501000 },
	  1.57714504788112581e-01,
	  9.21557855086068356e-01,
	  7.88572523940562903e-02 },
	{ { 1000000, 200000, 1000000, 203000 },
	  1.24514608406613595e-07,
	  9.99999938930998922e-01,
	  6.22573042033067974e-08 },
	{ { 1000000, 3, 1000000, 20 },
	  4.88247471649517161e-04,
	  9.99966981876818539e-01,
	  2.44123735824758580e-04 },
	{ { 1000000, 400000, 1000000, 420000 },
	  8.16487934007674888e-182,
	  1,
	  4.08243967003837444e-182 },
	{ { 1000000, 500123, 1000000, 500123 },
	  1,
	  5.00564189389047898e-01,
	  5.00564189389047898e-01 },
	{ { 1000000, 200000, 700000, 141000 },
	  2.21194983053310638e-02,
	  9.89014866855326580e-01,
	  1.10981724001628750e-02 },
	{ { 1000000, 12, 300, 2 },
	  8.13839410024714057e-06,
	  9.99999990302568365e-01,
	  8.13839410024714057e-06 },
	/* The p-value has 600,000 zeros behind the point. */
	{ { 1000000, 0, 1000000, 1000000 }, 0, 1, 0 },
};

static void check_fisher(const struct fisher_case *c, double relative)
{
	struct fisher_table t = c->t;
	struct fisher_table swapped = { t.trials_b, t.failed_b, t.trials_a, t.failed_a };
	struct fisher_table turned = { t.trials_a, t.trials_a - t.failed_a, t.trials_b,
				       t.trials_b - t.failed_b };

	assert_near(fisher_two_sided(&t), c->two_sided, relative);
	assert_near(fisher_greater(&t), c->greater, relative);
	assert_near(fisher_less(&t), c->less, relative);

	/* Which arm is called A, and what is called a failure, makes no difference. */
	assert_near(fisher_two_sided(&swapped), c->two_sided, relative);
	assert_near(fisher_less(&swapped), c->greater, relative);
	assert_near(fisher_greater(&swapped), c->less, relative);
	assert_near(fisher_two_sided(&turned), c->two_sided, relative);
	assert_near(fisher_less(&turned), c->greater, relative);
	assert_near(fisher_greater(&turned), c->less, relative);
}

static void fisher_matches_exact_fractions(void **state)
{
	for (size_t i = 0; i < COUNT(fisher_small); i++)
		check_fisher(&fisher_small[i], 1e-13);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fisher_holds_for_a_million_trials(void **state)
{
	/* A billion tables could come about here, and the walk must stop long before. */
	struct fisher_table billions = { 1000000000, 400000000, 1000000000, 600000000 };
	double begin = cpu_seconds();

	for (size_t i = 0; i < COUNT(fisher_large); i++)
		check_fisher(&fisher_large[i], 1e-10);
	assert_true(fisher_two_sided(&billions) == 0);
	assert_true(fisher_less(&billions) == 0);
	assert_near(fisher_greater(&billions), 1, 0);
	/* 20 ms as a rule; seconds when every table is visited. CPU time, so that a
	 * busy machine does not matter. */
	assert_true(cpu_seconds() - begin < 1);
}

static void fisher_p_values_are_a_distribution(void **state)
{
	/* Over all tables with the same margins P(p <= alpha) is alpha, for every alpha that
	 * occurs: what 'exact' promises. */
	for (uint64_t failed = 0; failed <= 40; failed++) {
		double p[41], probability[41];
		size_t n = 0;

		for (uint64_t a = failed > 15 ? failed - 15 : 0; a <= failed && a <= 25; a++, n++) {
			struct fisher_table t = { 25, a, 15, failed - a };
			struct fisher_table next = { 25, a + 1, 15, failed - a - 1 };

			p[n] = fisher_two_sided(&t);
			probability[n] = fisher_greater(&t);
			if (a < failed && a < 25)
				probability[n] -= fisher_greater(&next);
		}
		for (size_t i = 0; i < n; i++) {
			double at_most = 0;

			for (size_t j = 0; j < n; j++)
				at_most += p[j] <= p[i] * (1 + 1e-9) ? probability[j] : 0;
			/* Absolute: the probabilities are differences of numbers near 1. */
			assert_true(fabs(at_most - p[i]) < 1e-13);
		}
	}
}

/* Whether any outcome of the remaining trials reaches alpha, by trying them all. */
static bool can_still_reach(struct fisher_table t, uint64_t left_a, uint64_t left_b, double alpha)
{
	for (uint64_t a = 0; a <= left_a; a++) {
		for (uint64_t b = 0; b <= left_b; b++) {
			struct fisher_table end = { t.trials_a + left_a, t.failed_a + a,
						    t.trials_b + left_b, t.failed_b + b };

			if (fisher_two_sided(&end) <= alpha)
				return true;
		}
	}
	return false;
}

static void curtailed_only_when_nothing_can_help(void **state)
{
	unsigned hopeless = 0, open = 0;

	for (uint64_t na = 0; na <= 9; na++) {
		for (uint64_t nb = 0; nb <= 9; nb++) {
			for (uint64_t i = 0; i < (na + 1) * (nb + 1) * 36; i++) {
				uint64_t left_a = i % 6, left_b = i / 6 % 6;
				uint64_t fa = i / 36 % (na + 1), fb = i / 36 / (na + 1);
				struct fisher_table t = { na, fa, nb, fb };
				bool possible = can_still_reach(t, left_a, left_b, 0.05);
				bool curtailed = fisher_curtailed(&t, left_a, left_b, 0.05);

				assert_false(possible && curtailed);
				/* Exact where compare plans it: the same number for both. */
				if (na + left_a == nb + left_b)
					assert_true(possible || curtailed);
				hopeless += curtailed;
				open += !curtailed;
			}
		}
	}
	assert_true(hopeless > 1000 && open > 1000);
}

static void curtailed_examples(void **state)
{
	struct fisher_table even = { 50, 10, 50, 10 }, none = { 55, 0, 55, 0 };

	/* Five failures against none are not significant, six are (p = 0.027). */
	assert_true(fisher_curtailed(&none, 5, 5, 0.05));
	assert_false(fisher_curtailed(&none, 6, 6, 0.05));
	assert_false(fisher_curtailed(&even, 50, 50, 0.05));
	assert_true(fisher_curtailed(&even, 2, 2, 0.05));
	/* A tie is not hopeless: 1/35 is what 4/4 against 0/4 gives. */
	assert_false(fisher_curtailed(&(struct fisher_table){ 0, 0, 0, 0 }, 4, 4, 1.0 / 35));
}

/* ---- shift ---- */

static void times_are_compared_by_their_ranks(void **state)
{
	double a[] = { 5, 1, 3 }, b[] = { 2, 6, 10 }, none[] = { 0 }, one[] = { 7 };
	double left[40], right[40];
	struct shift s = shift_of(a, 3, b, 3);

	/* The nine ratios, in order: 2/5 2/3 6/5 2 2 2 10/3 6 10. */
	assert_true(s.known && fabs(s.ratio - 2) < 1e-9);
	assert_true(s.low <= 2.0 / 3 && s.high >= 6);
	/* 7 of 9 pairs: |7 - 4.5| - 0.5 = 2, deviation sqrt(9 * 7 / 12) = 2.2913, z = 0.8729. */
	assert_true(fabs(s.p - 0.3827) < 1e-3);
	assert_false(shift_of(a, 3, none, 1).known);
	assert_false(shift_of(a, 3, b, 0).known);
	assert_true(fabs(shift_of(one, 1, one, 1).ratio - 1) < 1e-9);
	assert_true(shift_of(one, 1, one, 1).p >= 1);
	assert_true(fabs(shift_median(a, 3) - 3) < 1e-9);
	/* A clear shift: B takes twice as long. */
	for (int i = 0; i < 40; i++) {
		left[i] = 100 + (i * 17) % 40;
		right[i] = 2 * (100 + (i * 23) % 40);
	}
	s = shift_of(left, 40, right, 40);
	assert_true(s.low < 2 && s.high > 2 && s.low > 1.9 && s.high < 2.1);
	assert_true(s.p < 1e-9);
}

/* ---- holm ---- */

static void holm_adjusts(void **state)
{
	static const double p[] = { 0.04, 0.01, 0.03, 0.005 };
	static const double want[] = { 0.06, 0.03, 0.06, 0.02 };
	static const double ties[] = { 0.5, 0.5, 0, 1 };
	static const double want_ties[] = { 1, 1, 0, 1 };
	double got[4];

	holm_adjust(p, 4, got);
	for (size_t i = 0; i < 4; i++)
		assert_near(got[i], want[i], 1e-15);
	holm_adjust(ties, 4, got);
	for (size_t i = 0; i < 4; i++)
		assert_near(got[i], want_ties[i], 0);
	holm_adjust(p, 1, got);
	assert_near(got[0], 0.04, 0);
	holm_adjust(p, 0, got);
}

/* ---- safe test ---- */

/* Whether E is or has been 1/alpha or more. */
static bool rejects(const struct safe_test *test, double alpha)
{
	return test->log_e_max >= -log(alpha);
}

static void safe_test_follows_exact_fractions(void **state)
{
	static const struct {
		bool fail_a, fail_b;
		double e;
	} blocks[] = {
		{ true, false, 1 },
		{ false, false, 4.59342560553633206e-01 },
		{ true, false, 1.03432493239510337e+00 },
		{ true, true, 2.91488870634759090e-01 },
		{ false, true, 8.54029760693204576e-02 },
		{ true, false, 1.20242405770132024e-01 },
	};
	struct safe_test test;

	safe_test_init(&test);
	assert_near(exp(test.log_e), 1, 0);
	assert_near(safe_test_p(&test), 1, 0);
	for (size_t i = 0; i < COUNT(blocks); i++) {
		safe_test_add(&test, blocks[i].fail_a, blocks[i].fail_b);
		assert_near(exp(test.log_e), blocks[i].e, 1e-14);
	}
	/* The best E so far counts, even though it has fallen since. */
	assert_near(safe_test_p(&test), 1 / 1.03432493239510337, 1e-14);
	assert_true(rejects(&test, 0.97));
	assert_false(rejects(&test, 0.96));
}

/* All sequences of BLOCKS blocks with their exact probability at a common rate. */
static void safe_test_is_a_fair_bet(void **state)
{
	enum { BLOCKS = 7 };
	static const double rates[] = { 0, 0.01, 0.1, 0.3, 0.5, 0.8, 1 };

	for (size_t r = 0; r < COUNT(rates); r++) {
		double mean = 0, all = 0, rejected = 0;

		for (unsigned sequence = 0; sequence < 1u << (2 * BLOCKS); sequence++) {
			double probability = 1;
			struct safe_test test;

			safe_test_init(&test);
			for (unsigned i = 0; i < BLOCKS; i++) {
				bool a = sequence >> (2 * i) & 1, b = sequence >> (2 * i + 1) & 1;

				probability *= a ? rates[r] : 1 - rates[r];
				probability *= b ? rates[r] : 1 - rates[r];
				safe_test_add(&test, a, b);
			}
			all += probability;
			mean += probability * exp(test.log_e);
			rejected += rejects(&test, 0.2) ? probability : 0;
		}
		assert_near(all, 1, 1e-12);
		assert_true(mean <= 1 + 1e-12);
		assert_true(rejected <= 0.2);
	}
}

struct runs {
	unsigned rejected;
	double mean_blocks; /* until rejection or the limit */
};

static struct runs simulate(uint64_t seed, unsigned runs, unsigned blocks, double rate_a,
			    double rate_b)
{
	struct runs result = { 0 };
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned i = 0; i < runs; i++) {
		struct safe_test test;

		safe_test_init(&test);
		while (test.blocks < blocks && !rejects(&test, 0.05)) {
			bool fail_a = rng_unit(&rng) < rate_a;
			bool fail_b = rng_unit(&rng) < rate_b;

			safe_test_add(&test, fail_a, fail_b);
		}
		result.rejected += rejects(&test, 0.05);
		result.mean_blocks += (double)test.blocks / runs;
	}
	return result;
}

static void safe_test_keeps_its_level_when_watched(void **state)
{
	static const struct {
		double rate;
		unsigned runs;
	} nulls[] = { { 0.2, 20000 }, { 0.02, 5000 }, { 0.5, 5000 } };

	for (size_t i = 0; i < COUNT(nulls); i++) {
		struct runs r = simulate(1, nulls[i].runs, 500, nulls[i].rate, nulls[i].rate);

		print_message("# rate %.2f: rejected %u of %u\n", nulls[i].rate, r.rejected,
			      nulls[i].runs);
		assert_true(r.rejected <= nulls[i].runs / 20);
		/* A test that never rejects keeps its level too, and is worth nothing. */
		assert_true(nulls[i].rate < 0.1 || r.rejected > nulls[i].runs / 500);
	}
}

static void safe_test_finds_a_difference(void **state)
{
	struct runs clear = simulate(2, 2000, 60, 0.5, 0), seeds = simulate(3, 2000, 200, 0.2, 0);
	struct runs mirrored = simulate(3, 2000, 200, 0, 0.2);

	print_message(
		"# 50 %% against 0: %u of 2000, %.1f blocks; 20 %%: %u of 2000, %.1f blocks\n",
		clear.rejected, clear.mean_blocks, seeds.rejected, seeds.mean_blocks);
	assert_true(clear.rejected >= 1990 && clear.mean_blocks < 20);
	assert_true(seeds.rejected >= 1900 && seeds.mean_blocks < 80);
	assert_true(mirrored.rejected >= 1900 && mirrored.mean_blocks < 80);
}

static void safe_test_survives_overwhelming_evidence(void **state)
{
	struct safe_test test;

	safe_test_init(&test);
	for (int i = 0; i < 100000; i++)
		safe_test_add(&test, true, false);
	assert_true(isfinite(test.log_e) && test.log_e > 1e5);
	assert_true(isinf(exp(test.log_e)) && safe_test_p(&test) == 0);
	assert_true(rejects(&test, 1e-300));
}

/* ---- rng ---- */

static void rng_sequence_is_pinned(void **state)
{
	/* From a separate Python implementation; {1,2,3,4} is also the vector that other
	 * libraries test their xoshiro256** with. */
	static const uint64_t want[] = { 11520,
					 0,
					 1509978240,
					 1215971899390074240,
					 1216172134540287360,
					 607988272756665600,
					 16172922978634559625u,
					 8476171486693032832,
					 10595114339597558777u,
					 2904607092377533576 };
	static const uint64_t from_0[] = { 0x99ec5f36cb75f2b4, 0xbf6e1f784956452a,
					   0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c };
	static const uint64_t from_42[] = { 0x15780b2e0c2ec716, 0x6104d9866d113a7e,
					    0xae17533239e499a1, 0xecb8ad4703b360a1 };
	struct rng rng = { { 1, 2, 3, 4 } }, zero, other;

	for (size_t i = 0; i < COUNT(want); i++)
		assert_true(rng_next(&rng) == want[i]);
	rng_init(&zero, 0);
	rng_init(&other, 42);
	for (size_t i = 0; i < COUNT(from_0); i++) {
		assert_true(rng_next(&zero) == from_0[i]);
		assert_true(rng_next(&other) == from_42[i]);
	}
}

static void rng_below_is_even(void **state)
{
	enum { BOUND = 7, DRAWS = 70000 };
	/* With this bound a third of all values would land twice as often if the
	 * remainder were taken as it is. */
	const uint64_t huge = UINT64_MAX / 4 * 3;
	const double expected = (double)DRAWS / BOUND;
	unsigned counts[BOUND] = { 0 }, low = 0;
	struct rng rng;
	double chi2 = 0;

	rng_init(&rng, 5);
	for (int i = 0; i < DRAWS; i++) {
		uint64_t value = rng_below(&rng, BOUND);

		assert_true(value < BOUND);
		counts[value]++;
	}
	for (int i = 0; i < BOUND; i++)
		chi2 += pow(counts[i] - expected, 2) / expected;
	assert_true(chi2 < 38); /* 6 degrees of freedom: 1e-6 */

	for (int i = 0; i < DRAWS; i++)
		low += rng_below(&rng, huge) < huge / 3;
	assert_true(fabs(low / (double)DRAWS - 1.0 / 3) < 0.01);

	for (int i = 0; i < 100; i++)
		assert_true(rng_below(&rng, 1) == 0);
	for (int i = 0; i < 1000; i++) {
		double unit = rng_unit(&rng);

		assert_true(unit >= 0 && unit < 1);
	}
}

static void rng_shuffle_gives_every_order(void **state)
{
	enum { DRAWS = 24000 };
	unsigned counts[256] = { 0 }, orders = 0;
	struct rng rng;
	double chi2 = 0;

	rng_init(&rng, 6);
	for (int i = 0; i < DRAWS; i++) {
		/* Three bytes each, so that a wrong element size shows. */
		char items[4][3] = { "0a", "1b", "2c", "3d" };
		unsigned order = 0;

		rng_shuffle(&rng, items, 4, 3);
		for (int j = 0; j < 4; j++) {
			assert_int_equal(items[j][1] - 'a', items[j][0] - '0');
			order = order << 2 | (unsigned)(items[j][0] - '0');
		}
		counts[order]++;
	}
	for (int i = 0; i < 256; i++) {
		if (counts[i] > 0) {
			orders++;
			chi2 += pow(counts[i] - DRAWS / 24.0, 2) / (DRAWS / 24.0);
		}
	}
	assert_int_equal(orders, 24);
	assert_true(chi2 < 69); /* 23 degrees of freedom: 1e-6 */

	rng_shuffle(&rng, NULL, 0, 8);
}

static void rng_repeats_from_its_seed(void **state)
{
	int first[100], second[100];
	struct rng a, b;

	for (int i = 0; i < 100; i++)
		first[i] = second[i] = i;
	rng_init(&a, 77);
	rng_init(&b, 77);
	rng_shuffle(&a, first, 100, sizeof(first[0]));
	rng_shuffle(&b, second, 100, sizeof(second[0]));
	assert_memory_equal(first, second, sizeof(first));
	rng_shuffle(&b, second, 100, sizeof(second[0]));
	assert_memory_not_equal(first, second, sizeof(first));
}

static void rng_fresh_seeds_differ(void **state)
{
	uint64_t first = rng_fresh_seed(), different = 0;

	for (int i = 0; i < 8; i++) {
		uint64_t seed = rng_fresh_seed();

		assert_true(seed <= UINT32_MAX);
		different += seed != first;
	}
	assert_true(different > 0); /* eight equal ones: 2^-256 */
}

/* ---- strata ---- */

static double choose(unsigned int n, unsigned int k)
{
	double c = 1;

	for (unsigned int i = 1; i <= k; i++)
		c = c * (n - k + i) / i;
	return c;
}

/* From the definition, for two rounds. */
static double two_rounds(const struct fisher_table *t)
{
	unsigned int f[2], observed = (unsigned int)(t[0].failed_a + t[1].failed_a);
	double p[64] = { 0 }, sum = 0;

	for (int i = 0; i < 2; i++)
		f[i] = (unsigned int)(t[i].failed_a + t[i].failed_b);
	for (unsigned int x = 0; x <= f[0]; x++)
		for (unsigned int y = 0; y <= f[1]; y++) {
			double w = 1;
			const unsigned int a[2] = { x, y };

			for (int i = 0; i < 2; i++)
				w *= a[i] > t[i].trials_a || f[i] - a[i] > t[i].trials_b
					     ? 0
					     : choose((unsigned int)t[i].trials_a, a[i]) *
						       choose((unsigned int)t[i].trials_b,
							      f[i] - a[i]) /
						       choose((unsigned int)(t[i].trials_a +
									     t[i].trials_b),
							      f[i]);
			p[x + y] += w;
		}
	for (unsigned int i = 0; i < 64; i++)
		sum += p[i] <= p[observed] * (1 + 1e-7) ? p[i] : 0;
	return sum;
}

static void strata_are_exact(void **state)
{
	static const struct fisher_table pairs[][2] = {
		{ { 8, 0, 8, 3 }, { 8, 1, 8, 4 } },
		{ { 8, 8, 8, 8 }, { 8, 0, 8, 5 } },
		{ { 8, 5, 3, 3 }, { 2, 0, 9, 1 } },
		{ { 4, 2, 4, 2 }, { 4, 2, 4, 2 } },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		assert_true(fabs(strata_two_sided(pairs[i], 2) - two_rounds(pairs[i])) < 1e-12);
	assert_true(fabs(strata_two_sided(pairs[0], 1) - fisher_two_sided(pairs[0])) < 1e-12);
	assert_true(strata_two_sided(NULL, 0) >= 1);
}

/* The rate of a round is nobody's fault: a bad round that hits both arms alike is no difference,
 * and does not hide one. */
static void strata_forgive_bad_rounds(void **state)
{
	static const struct fisher_table rounds[] = {
		{ 20, 18, 20, 20 }, { 20, 0, 20, 6 }, { 20, 1, 20, 5 }, { 20, 0, 20, 4 }
	};
	const struct fisher_table pooled = { 80, 19, 80, 35 };

	assert_true(strata_two_sided(rounds, 4) < fisher_two_sided(&pooled) / 10);
}

static void strata_of_many_trials(void **state)
{
	struct fisher_table rounds[3000];

	for (size_t i = 0; i < 3000; i++)
		rounds[i] = (struct fisher_table){ 500, 240 + i % 21, 500, 250 };
	/* 1,500,000 trials of each, half of which fail, and no difference. */
	assert_true(strata_two_sided(rounds, 3000) > 0.05);
	for (size_t i = 0; i < 3000; i++)
		rounds[i].failed_a = 245;
	assert_true(strata_two_sided(rounds, 3000) < 1e-10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantile_is_exact),
		cmocka_unit_test(quantile_inverts_the_distribution),
		cmocka_unit_test(wilson_matches_exact_bounds),
		cmocka_unit_test(wilson_without_trials_knows_nothing),
		cmocka_unit_test(wilson_bounds_stay_ordered_and_mirror),
		cmocka_unit_test(wilson_covers_as_often_as_it_says),
		cmocka_unit_test(clean_runs_are_the_smallest_that_suffice),
		cmocka_unit_test(clean_runs_bound_the_rate),
		cmocka_unit_test(so_many_of_those_that_run_fail),
		cmocka_unit_test(fisher_matches_exact_fractions),
		cmocka_unit_test(fisher_holds_for_a_million_trials),
		cmocka_unit_test(fisher_p_values_are_a_distribution),
		cmocka_unit_test(curtailed_only_when_nothing_can_help),
		cmocka_unit_test(curtailed_examples),
		cmocka_unit_test(times_are_compared_by_their_ranks),
		cmocka_unit_test(holm_adjusts),
		cmocka_unit_test(safe_test_follows_exact_fractions),
		cmocka_unit_test(safe_test_is_a_fair_bet),
		cmocka_unit_test(safe_test_keeps_its_level_when_watched),
		cmocka_unit_test(safe_test_finds_a_difference),
		cmocka_unit_test(safe_test_survives_overwhelming_evidence),
		cmocka_unit_test(rng_sequence_is_pinned),
		cmocka_unit_test(rng_below_is_even),
		cmocka_unit_test(rng_shuffle_gives_every_order),
		cmocka_unit_test(rng_repeats_from_its_seed),
		cmocka_unit_test(rng_fresh_seeds_differ),
		cmocka_unit_test(strata_are_exact),
		cmocka_unit_test(strata_forgive_bad_rounds),
		cmocka_unit_test(strata_of_many_trials),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
