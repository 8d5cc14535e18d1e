#include "search/stats/shift.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define Z95 1.959964

static int ascending(const void *x, const void *y)
{
	const double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static double middle(const double *sorted, size_t count)
{
	return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double shift_median(double *times, size_t count)
{
	if (count == 0)
		return 0;
	qsort(times, count, sizeof(*times), ascending);
	return middle(times, count);
}

/* By how many ranks the pairs in favour of one side may differ from half of all. */
static double half_width(size_t n, size_t m)
{
	return Z95 * sqrt((double)n * (double)m * (double)(n + m + 1) / 12);
}

static double two_sided_p(double wins, size_t n, size_t m)
{
	double deviation = sqrt((double)n * (double)m * (double)(n + m + 1) / 12);
	double off = fabs(wins - (double)n * (double)m / 2) - 0.5;

	return off <= 0 ? 1 : erfc(off / deviation / sqrt(2));
}

struct shift shift_of(double *a, size_t count_a, double *b, size_t count_b)
{
	size_t n = count_a < SHIFT_MOST ? count_a : SHIFT_MOST;
	size_t m = count_b < SHIFT_MOST ? count_b : SHIFT_MOST;
	AUTO(mem_freep) double *ratios = mem_alloc((n * m + 1) * sizeof(*ratios));
	struct shift shift = { .known = n > 0 && m > 0, .p = 1 };
	double wins = 0;
	size_t pairs = 0, cut;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m; j++) {
			shift.known &= a[i] > 0 && b[j] > 0;
			ratios[pairs++] = log(b[j]) - log(a[i]);
			wins += b[j] > a[i] ? 1 : b[j] < a[i] ? 0 : 0.5;
		}
	if (!shift.known)
		return shift;
	qsort(ratios, pairs, sizeof(*ratios), ascending);
	shift.ratio = exp(middle(ratios, pairs));
	cut = (size_t)fmax(0, floor((double)pairs / 2 - half_width(n, m)));
	shift.low = exp(ratios[cut]);
	shift.high = exp(ratios[pairs - 1 - cut]);
	shift.p = two_sided_p(wins, n, m);
	return shift;
}
