#include "search/stats/strata.h"

#include <string.h>

#include "base/mem.h"

#define TIE 1e-7     /* relative difference below which two sums are equally likely */
#define WORK_MAX 5e7 /* multiplications */
#define LARGE 1e200
#define CERTAIN 1e-12 /* what rounding leaves of 1 */

/* Probabilities of the values 0 … count - 1, above a lowest one that does not matter. */
struct spread {
	double *p;
	size_t count;
};

static uint64_t lowest(const struct fisher_table *t)
{
	uint64_t failed = t->failed_a + t->failed_b;

	return failed > t->trials_b ? failed - t->trials_b : 0;
}

static uint64_t highest(const struct fisher_table *t)
{
	uint64_t failed = t->failed_a + t->failed_b;

	return failed < t->trials_a ? failed : t->trials_a;
}

static void scale(double *p, size_t count, double by)
{
	for (size_t i = 0; i < count; i++)
		p[i] *= by;
}

/* Each weight follows from its neighbour's; the sum makes them probabilities. */
static struct spread spread_of(const struct fisher_table *t)
{
	uint64_t low = lowest(t), failed = t->failed_a + t->failed_b;
	struct spread s = { .count = (size_t)(highest(t) - low) + 1 };
	double sum = 1;

	s.p = mem_alloc(s.count * sizeof(*s.p));
	s.p[0] = 1;
	for (size_t i = 1; i < s.count; i++) {
		uint64_t x = low + i - 1;

		s.p[i] = s.p[i - 1] * (double)(failed - x) * (double)(t->trials_a - x) /
			 ((double)(x + 1) * (double)(t->trials_b + x + 1 - failed));
		sum += s.p[i];
		if (s.p[i] > LARGE) {
			scale(s.p, i + 1, 1 / LARGE);
			sum /= LARGE;
		}
	}
	scale(s.p, s.count, 1 / sum);
	return s;
}

static struct spread convolve(const struct spread *a, const struct spread *b)
{
	struct spread s = { .count = a->count + b->count - 1 };

	s.p = mem_alloc(s.count * sizeof(*s.p));
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < b->count; k++)
			s.p[i + k] += a->p[i] * b->p[k];
	return s;
}

static double work(const struct fisher_table *rounds, size_t count)
{
	double total = 1, sum = 0;

	for (size_t i = 0; i < count; i++) {
		double width = (double)(highest(&rounds[i]) - lowest(&rounds[i])) + 1;

		sum += total * width;
		total += width - 1;
	}
	return sum;
}

/* Takes neighbours together. */
static size_t pool(struct fisher_table *rounds, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i += 2) {
		struct fisher_table t = rounds[i];

		if (i + 1 < count) {
			t.trials_a += rounds[i + 1].trials_a;
			t.failed_a += rounds[i + 1].failed_a;
			t.trials_b += rounds[i + 1].trials_b;
			t.failed_b += rounds[i + 1].failed_b;
		}
		rounds[kept++] = t;
	}
	return kept;
}

static double sum_up(const struct fisher_table *rounds, size_t count)
{
	struct spread sum = spread_of(&rounds[0]);
	uint64_t seen = rounds[0].failed_a - lowest(&rounds[0]);
	double p = 0, limit;

	for (size_t i = 1; i < count; i++) {
		struct spread next = spread_of(&rounds[i]), both = convolve(&sum, &next);

		mem_free(sum.p);
		mem_free(next.p);
		sum = both;
		seen += rounds[i].failed_a - lowest(&rounds[i]);
	}
	limit = sum.p[seen] * (1 + TIE);
	for (size_t i = 0; i < sum.count; i++)
		p += sum.p[i] <= limit ? sum.p[i] : 0;
	mem_free(sum.p);
	return p < 1 - CERTAIN ? p : 1;
}

double strata_two_sided(const struct fisher_table *rounds, size_t count)
{
	AUTO(mem_freep) struct fisher_table *some = mem_alloc((count + 1) * sizeof(*some));

	if (count > 0)
		memcpy(some, rounds, count * sizeof(*some));
	while (count > 1 && work(some, count) > WORK_MAX)
		count = pool(some, count);
	if (count == 0)
		return 1;
	return count == 1 ? fisher_two_sided(some) : sum_up(some, count);
}
