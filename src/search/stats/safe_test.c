#include "search/stats/safe_test.h"

#include <math.h>

/*
 * What each arm's estimate starts from, as if this part of a trial had failed and
 * as much had passed. The test is valid with any value; a small one follows the
 * first failures quickly, which is what a comparison of rare failures lives on.
 */
#define PRIOR 0.18

void safe_test_init(struct safe_test *test)
{
	*test = (struct safe_test){ 0 };
}

static double estimate(uint64_t failed, uint64_t blocks)
{
	return ((double)failed + PRIOR) / ((double)blocks + 2 * PRIOR);
}

/* How much likelier the outcome was under the arm's own rate than under the common one. */
static double gain(bool fail, double own, double common)
{
	return fail ? own / common : (1 - own) / (1 - common);
}

void safe_test_add(struct safe_test *test, bool fail_a, bool fail_b)
{
	/* Estimates from past blocks only: a bet laid after the outcome is no bet.
	 * With a common rate half-way between the two, a block multiplies E by a factor whose
	 * expectation is at most 1 if the arms share *any* rate, not just this one:
	 * arm A's factor has expectation 1 + s and arm B's 1 - s. */
	double a = estimate(test->failed_a, test->blocks);
	double b = estimate(test->failed_b, test->blocks);
	double common = (a + b) / 2;

	test->log_e += log(gain(fail_a, a, common) * gain(fail_b, b, common));
	test->log_e_max = fmax(test->log_e_max, test->log_e);
	test->blocks++;
	test->failed_a += fail_a;
	test->failed_b += fail_b;
}

double safe_test_p(const struct safe_test *test)
{
	return exp(-test->log_e_max);
}
