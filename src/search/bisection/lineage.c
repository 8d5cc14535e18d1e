#include "search/bisection/lineage.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

struct lineage {
	size_t count;
	size_t words;	    /* of one set; 0: a straight line, there are no sets */
	uint64_t *sets;	    /* sets[c * words …]: c and its ancestors */
	uint64_t *occupied; /* scratch of lineage_sum(): values that are not 0 */
};

static bool is_line(const struct lineage_parents *parents, size_t count)
{
	for (size_t c = 2; c < count; c++) {
		bool follows = false;

		for (size_t i = 0; i < parents[c].count; i++)
			follows = follows || parents[c].items[i] == c - 1;
		if (!follows)
			return false;
	}
	return true;
}

static void fill_sets(struct lineage *l, const struct lineage_parents *parents)
{
	for (size_t c = 0; c < l->count; c++) {
		uint64_t *set = l->sets + c * l->words;

		set[0] |= 1;
		set[c / 64] |= (uint64_t)1 << c % 64;
		for (size_t i = 0; c > 0 && i < parents[c].count; i++) {
			const uint64_t *from = l->sets + parents[c].items[i] * l->words;

			assert(parents[c].items[i] < c);
			for (size_t w = 0; w <= c / 64; w++)
				set[w] |= from[w];
		}
	}
}

struct lineage *lineage_new(const struct lineage_parents *parents, size_t count)
{
	struct lineage *l = mem_alloc(sizeof(*l));

	l->count = count;
	if (is_line(parents, count))
		return l;
	l->words = (count + 63) / 64;
	l->sets = mem_alloc(count * l->words * sizeof(l->sets[0]));
	l->occupied = mem_alloc(l->words * sizeof(l->occupied[0]));
	fill_sets(l, parents);
	return l;
}

void lineage_free(struct lineage *l)
{
	if (!l)
		return;
	mem_free(l->sets);
	mem_free(l->occupied);
	mem_free(l);
}

size_t lineage_count(const struct lineage *l)
{
	return l->count;
}

bool lineage_has(const struct lineage *l, size_t commit, size_t ancestor)
{
	if (l->words == 0)
		return ancestor <= commit;
	return l->sets[commit * l->words + ancestor / 64] >> ancestor % 64 & 1;
}

static void sum_line(const struct lineage *l, const double *values, double *sums)
{
	double sum = 0;

	for (size_t c = 0; c < l->count; c++) {
		sum += values[c];
		sums[c] = sum;
	}
}

void lineage_sum(const struct lineage *l, const double *values, double *sums)
{
	if (l->words == 0) {
		sum_line(l, values, sums);
		return;
	}
	memset(l->occupied, 0, l->words * sizeof(l->occupied[0]));
	for (size_t k = 0; k < l->count; k++)
		if (values[k] != 0)
			l->occupied[k / 64] |= (uint64_t)1 << k % 64;
	for (size_t c = 0; c < l->count; c++) {
		const uint64_t *set = l->sets + c * l->words;
		double sum = 0;

		for (size_t w = 0; w <= c / 64; w++)
			for (uint64_t bits = set[w] & l->occupied[w]; bits; bits &= bits - 1)
				sum += values[w * 64 + (size_t)__builtin_ctzll(bits)];
		sums[c] = sum;
	}
}

void lineage_mark(const struct lineage *l, const uint64_t *tokens, uint64_t *marks)
{
	memset(marks, 0, l->count * sizeof(marks[0]));
	if (l->words == 0) {
		uint64_t mark = 0;

		for (size_t c = l->count; c-- > 0;) {
			mark ^= tokens[c];
			marks[c] = mark;
		}
		return;
	}
	for (size_t c = 0; c < l->count; c++) {
		const uint64_t *set = l->sets + c * l->words;

		for (size_t w = 0; tokens[c] != 0 && w <= c / 64; w++)
			for (uint64_t bits = set[w]; bits; bits &= bits - 1)
				marks[w * 64 + (size_t)__builtin_ctzll(bits)] ^= tokens[c];
	}
}
