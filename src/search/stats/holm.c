#include "search/stats/holm.h"

#include <assert.h>
#include <math.h>

#define PENDING (-1.0)

void holm_adjust(const double *p, size_t count, double *ret)
{
	double floor = 0; /* an adjusted value never falls below one of a smaller p */

	for (size_t i = 0; i < count; i++) {
		assert(p[i] >= 0 && p[i] <= 1);
		ret[i] = PENDING;
	}
	for (size_t left = count; left > 0; left--) {
		size_t smallest = count;

		for (size_t i = 0; i < count; i++) {
			if (ret[i] == PENDING && (smallest == count || p[i] < p[smallest]))
				smallest = i;
		}
		floor = fmin(fmax(floor, (double)left * p[smallest]), 1);
		ret[smallest] = floor;
	}
}
