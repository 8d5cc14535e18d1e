#include "search/stats/trend.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* P(at least k heads in n throws of a fair coin). */
static double coin_at_least(size_t k, size_t n)
{
	double term = exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
			  lgamma((double)(n - k) + 1) - (double)n * log(2));
	double sum = 0;

	for (size_t i = k; i <= n; i++) {
		sum += term;
		term *= (double)(n - i) / (double)(i + 1);
	}
	return sum < 1 ? sum : 1;
}

static double sign_test(const double *x, size_t count)
{
	size_t up = 0, down = 0;

	for (size_t i = 1; i < count; i++) {
		up += x[i] > x[i - 1];
		down += x[i] < x[i - 1];
	}
	return coin_at_least(up, up + down);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The variance of S when readings repeat: each group of t equal ones takes its share away. */
static double mann_kendall_variance(const double *x, size_t count)
{
	double sorted[TREND_READINGS_MAX], n = (double)count;
	double variance = n * (n - 1) * (2 * n + 5);
	size_t i = 0;

	memcpy(sorted, x, count * sizeof(x[0]));
	qsort(sorted, count, sizeof(sorted[0]), by_value);
	while (i < count) {
		size_t same = i;
		double t;

		while (same < count && sorted[same] == sorted[i])
			same++;
		t = (double)(same - i);
		variance -= t * (t - 1) * (2 * t + 5);
		i = same;
	}
	return variance / 18;
}

/* One-sided; the normal approximation errs to the careful side for few readings. */
static double mann_kendall(const double *x, size_t count)
{
	double variance = mann_kendall_variance(x, count);
	double s = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			s += (x[k] > x[i]) - (x[k] < x[i]);
	if (variance <= 0 || s <= 0)
		return 1;
	return 0.5 * erfc((s - 1) / sqrt(2 * variance));
}

/* Counts rises of the floor, the level below which it never falls again. Their places are compared
 * as ranks are: Wilcoxon's test, in its normal approximation. */
static void look_at_floor(const double *x, size_t count, struct trend *trend)
{
	double floor[TREND_READINGS_MAX], high = x[0];
	double places = 0, n = (double)trend->tests, r, spread;

	floor[count - 1] = x[count - 1];
	for (size_t i = count - 1; i-- > 0;)
		floor[i] = fmin(x[i], floor[i + 1]);
	trend->kept = floor[count - 1] - floor[0];
	trend->quiet = trend->tests;
	for (size_t i = 1; i < count; i++) {
		high = fmax(high, x[i]);
		trend->fall = fmax(trend->fall, high - x[i]);
		if (floor[i] <= floor[i - 1])
			continue;
		trend->rises++;
		trend->quiet = count - 1 - i;
		places += (double)i;
	}
	r = (double)trend->rises;
	spread = r * (n - r) * (n + 1) / 12;
	trend->early_p = spread > 0 ? 0.5 * erfc((r * (n + 1) / 2 - places) / sqrt(2 * spread)) : 1;
	trend->most_p = coin_at_least(trend->rises, trend->tests);
}

/* Of all ways to choose the r of n tests after which it rose: the share that leaves out the last
 * t. */
static double quiet_by_chance(size_t n, size_t r, size_t t)
{
	double p = 1;

	for (size_t i = 0; i < t; i++)
		p *= n - i > r ? (double)(n - r - i) / (double)(n - i) : 0;
	return p;
}

/* A cache fills slower and slower, and then stays. */
static bool levels_off(const struct trend *trend)
{
	bool seldom = trend->most_p > TREND_STEADY_P;

	return (trend->quiet * TREND_LEVEL_SHARE >= trend->tests &&
		trend->level_p < TREND_LEVEL_P) ||
	       (seldom && trend->early_p < TREND_STEADY_P);
}

static bool beyond_chance(const struct trend *trend)
{
	bool steady = trend->fall == 0 && trend->most_p <= TREND_STEADY_P;

	return trend->p <= (steady ? TREND_STEADY_P : TREND_P);
}

struct trend trend_of(const double *readings, size_t count)
{
	struct trend trend = { .p = 1, .level_p = 1, .early_p = 1, .most_p = 1 };

	assert(count <= TREND_READINGS_MAX);
	trend.verdict = TREND_TOO_FEW;
	if (count < 2)
		return trend;
	trend.tests = count - 1;
	look_at_floor(readings, count, &trend);
	if (trend.rises < TREND_RISES_MIN)
		return trend;
	trend.level_p = quiet_by_chance(trend.tests, trend.rises, trend.quiet);
	trend.p = fmax(sign_test(readings, count), mann_kendall(readings, count));
	if (2 * trend.fall > trend.kept)
		trend.verdict = TREND_FALLS_BACK;
	else if (levels_off(&trend))
		trend.verdict = TREND_LEVELS_OFF;
	else
		trend.verdict = beyond_chance(&trend) ? TREND_GROWS : TREND_NO_TREND;
	return trend;
}
