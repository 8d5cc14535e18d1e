#include "search/stats/rate.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static void assert_confidence(double confidence)
{
	assert(confidence > 0 && confidence < 1);
	(void)confidence;
}

/*
 * Newton's method on log Q(z) - log(tail), where Q is the upper tail of the
 * normal distribution. log Q is concave and falls, so every tangent meets zero
 * at or above the root: begun from above, as here, the steps only ever come
 * down, and the first one that does not has reached the limit of a double.
 */
double rate_at_least(uint64_t trials, uint64_t wanted, double rate)
{
	double fewer = 0;

	assert(rate >= 0 && rate <= 1);
	if (wanted > trials)
		return 0;
	for (uint64_t k = 0; k < wanted; k++)
		fewer += exp(lgamma((double)trials + 1) - lgamma((double)k + 1) -
			     lgamma((double)(trials - k) + 1)) *
			 pow(rate, (double)k) * pow(1 - rate, (double)(trials - k));
	return fewer < 1 ? 1 - fewer : 0;
}

double rate_normal_quantile(double confidence)
{
	double tail, z, next;

	assert_confidence(confidence);
	tail = (1 - confidence) / 2;
	/* Q(z) <= exp(-z*z/2)/2 puts the start above the root. */
	next = sqrt(-2 * log(2 * tail));
	do {
		double upper = 0.5 * erfc(next * M_SQRT1_2);
		double density = exp(-0.5 * next * next) * M_SQRT1_2 * M_2_SQRTPI / 2;

		z = next;
		next = z + log(upper / tail) * upper / density;
	} while (next < z);
	return z;
}

struct rate rate_wilson(uint64_t trials, uint64_t failed, double confidence)
{
	struct rate r = { .trials = trials, .failed = failed, .rate = 0, .low = 0, .high = 1 };
	double z, p, q, spread, upper;

	assert(failed <= trials);
	assert_confidence(confidence);
	if (trials == 0)
		return r;

	z = rate_normal_quantile(confidence);
	p = (double)failed / (double)trials;
	q = (double)(trials - failed) / (double)trials;
	spread = z * z / (double)trials;

	/* The bounds are the roots of (1 + s) x^2 - (2p + s) x + p^2. The larger is a sum
	 * of positive terms; the smaller comes from their product, because the usual
	 * formula subtracts nearly equal numbers when failures are rare. */
	upper = (p + spread / 2 + sqrt(spread * (p * q + spread / 4))) / (1 + spread);
	r.rate = p;
	r.low = fmin(p * p / ((1 + spread) * upper), p);
	r.high = fmin(fmax(upper, p), 1);
	return r;
}

uint64_t rate_clean_runs(double rate, double confidence)
{
	double tail, n;

	assert_confidence(confidence);
	if (!(rate > 0))
		return 0;
	if (rate >= 1)
		return 1;
	/* 0.99 has no exact double, so 1 - 0.99 is off in the last place, and a tie in
	 * decimals (a rate of 0.9 and two runs) would fall on either side by luck. It
	 * counts as reached: the tail is widened by what it cannot be known better than. */
	tail = 1 - confidence + DBL_EPSILON;
	n = ceil(log(tail) / log1p(-rate));
	if (n < 1)
		return 1;
	return n >= 0x1p64 ? UINT64_MAX : (uint64_t)n;
}

double rate_upper_bound_clean(uint64_t n, double confidence)
{
	assert_confidence(confidence);
	return n == 0 ? 1 : -expm1(log1p(-confidence) / (double)n);
}
