#include "search/minimize/subsets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cell of the rate grid with less than this share of all weight is dropped
 * until the next rebuild. */
static const double cell_least = 1e-5;
/* And one whose best subset is by this much (log) below the best of all has less, even
 * if all its subsets were alike. */
static const double hopeless = 11.6 + SUBSETS_MOST * 0.7;

static const double victim_alone = 0.7; /* log of 'half as likely' */
static const double nobody = 60;	/* and without a victim an empty list cannot fail */

int subsets_init(struct subsets *s, size_t n_full, bool victim)
{
	size_t most = (size_t)1 << SUBSETS_MOST;

	*s = (struct subsets){ .grid = rate_grid(), .n_full = n_full, .victim = victim };
	s->weight = calloc(most * RATE_CELLS, sizeof(*s->weight));
	s->total = calloc(most, sizeof(*s->total));
	s->scratch = calloc(most, sizeof(*s->scratch));
	s->hits = calloc(most, sizeof(*s->hits));
	s->expect = calloc(most, sizeof(*s->expect));
	s->noise = calloc(most, sizeof(*s->noise));
	if (!s->weight || !s->total || !s->scratch) {
		subsets_deinit(s);
		return -ENOMEM;
	}
	return 0;
}

void subsets_deinit(struct subsets *s)
{
	free(s->weight);
	free(s->total);
	free(s->scratch);
	free(s->hits);
	free(s->expect);
	free(s->noise);
	*s = (struct subsets){ 0 };
}

/* The items that `set` lacks, as a mask. */
static size_t pool_of(const struct subsets *s, const testset_word *set)
{
	size_t mask = 0;

	for (size_t i = 0; i < s->count; i++)
		if (!testset_has(set, s->items[i]))
			mask |= (size_t)1 << i;
	return mask;
}

/* table[t] becomes the sum of table[u] over all u within t. */
static void sum_within(double *table, size_t bits)
{
	size_t size = (size_t)1 << bits;

	for (size_t bit = 1; bit < size; bit <<= 1)
		for (size_t t = 0; t < size; t += 2 * bit)
			for (size_t u = t; u < t + bit; u++)
				table[u + bit] += table[u];
}

static void total_update(struct subsets *s)
{
	size_t size = (size_t)1 << s->count;
	double sum = 0;

	const double *hit = s->grid->hit[rate_size(s->count, s->n_full)];

	memset(s->total, 0, size * sizeof(*s->total));
	memset(s->hits, 0, size * sizeof(*s->hits));
	for (size_t c = 0; c < s->n_cells; c++) {
		const double *weight = s->weight + c * size;

		double p = hit[s->cells[c]];

		for (size_t t = 0; t < size; t++) {
			s->total[t] += weight[t];
			s->hits[t] += weight[t] * p;
		}
	}
	for (size_t t = 0; t < size; t++)
		sum += s->total[t];
	for (size_t t = 0; t < size; t++)
		s->hits[t] /= s->total[t], s->total[t] /= sum;
	/* Far from underflow, so that one division now and then is enough. */
	if (sum > 1e-100)
		return;
	for (size_t i = 0; i < s->n_cells * size; i++)
		s->weight[i] /= sum;
}

/* log P(needed set = t) up to a constant: every size alike, then every set of that
 * size; but who comes here has mostly seen the victim pass alone. */
static void prior_fill(const struct subsets *s, double *prior, size_t bits, size_t n_candidates)
{
	double n = (double)n_candidates;

	for (size_t k = 0; k <= bits; k++)
		prior[k] = lgamma((double)k + 1) + lgamma(n - (double)k + 1) - lgamma(n + 1) -
			   (k		? 0
			    : s->victim ? victim_alone
					: nobody);
}

void subsets_rebuild(struct subsets *s, const struct history *history, const uint32_t *items,
		     size_t count, size_t n_candidates)
{
	size_t size = (size_t)1 << count, kept = 0;
	double prior[SUBSETS_MOST + 1], most = -HUGE_VAL, sum = 0;
	double share[RATE_CELLS], peak[RATE_CELLS];

	memmove(s->items, items, count * sizeof(*items));
	s->count = count;
	prior_fill(s, prior, count, n_candidates);
	memset(s->weight, 0, RATE_CELLS * size * sizeof(*s->weight));
	for (size_t i = 0; i < history->count; i++) {
		const struct history_run *run = &history->runs[i];
		size_t row = rate_size(run->size, s->n_full), pool = pool_of(s, run->set);
		const double *log_p =
			run->kind != RUN_PASS ? s->grid->log_hit[row] : s->grid->log_miss[row];

		for (size_t c = 0; c < RATE_CELLS; c++)
			s->weight[c * size + pool] +=
				run->kind == RUN_DISOWNED ? log_p[c] - log(s->stray) : log_p[c];
	}
	for (size_t c = 0; c < RATE_CELLS; c++) {
		double *weight = s->weight + c * size;

		peak[c] = -HUGE_VAL;
		sum_within(weight, count);
		/* A run speaks of the subsets that its pool does not hit: those within
		 * the pool's complement. So look up each subset by its complement. */
		for (size_t t = 0; t < size / 2; t++) {
			double swap = weight[t];

			weight[t] = weight[size - 1 - t];
			weight[size - 1 - t] = swap;
		}
		for (size_t t = 0; t < size; t++) {
			weight[t] += prior[__builtin_popcountll(t)] + s->grid->log_prior[c];
			if (weight[t] > peak[c])
				peak[c] = weight[t];
		}
		most = fmax(most, peak[c]);
	}
	for (size_t c = 0; c < RATE_CELLS; c++) {
		share[c] = 0;
		if (peak[c] < most - hopeless)
			continue;
		for (size_t t = 0; t < size; t++) {
			double w = s->weight[c * size + t] - most;

			w = exp(w);
			s->weight[c * size + t] = w;
			share[c] += w;
		}
		sum += share[c];
	}
	for (size_t c = 0; c < RATE_CELLS; c++) {
		if (share[c] < cell_least * sum)
			continue;
		memmove(s->weight + kept * size, s->weight + c * size, size * sizeof(*s->weight));
		s->cells[kept++] = (uint16_t)c;
	}
	s->n_cells = kept;
	total_update(s);
}

void subsets_observe(struct subsets *s, const struct history_run *run)
{
	size_t size = (size_t)1 << s->count, pool = pool_of(s, run->set);
	const double *hit = s->grid->hit[rate_size(run->size, s->n_full)];

	for (size_t c = 0; c < s->n_cells; c++) {
		double *weight = s->weight + c * size, p = hit[s->cells[c]];
		double factor = run->kind != RUN_PASS ? p : 1 - p;

		for (size_t t = 0; t < size; t++)
			weight[t] *= t & pool ? 1.0 : factor;
	}
	total_update(s);
}

double subsets_chance(const struct subsets *s, const testset_word *set)
{
	size_t size = (size_t)1 << s->count, pool = pool_of(s, set);
	double q = 0;

	for (size_t t = 0; t < size; t++)
		q += t & pool ? 0.0 : s->total[t];
	return q;
}

double subsets_rate(const struct subsets *s, size_t size)
{
	const double *hit = s->grid->hit[rate_size(size, s->n_full)];
	size_t n = (size_t)1 << s->count;
	double rate = 0, sum = 0;

	for (size_t c = 0; c < s->n_cells; c++) {
		double share = 0;

		for (size_t t = 0; t < n; t++)
			share += s->weight[c * n + t];
		rate += share * hit[s->cells[c]];
		sum += share;
	}
	return rate / sum;
}

double subsets_all_needed(const struct subsets *s)
{
	return s->total[((size_t)1 << s->count) - 1];
}

double subsets_needed(const struct subsets *s, size_t position)
{
	size_t size = (size_t)1 << s->count;
	double sum = 0;

	for (size_t t = 0; t < size; t++)
		sum += t >> position & 1 ? s->total[t] : 0.0;
	return sum;
}

size_t subsets_pool(struct subsets *s, const testset_word *const *flying, size_t n_flying,
		    double astray, testset_word *set)
{
	size_t size = (size_t)1 << s->count, pool;
	double rate = subsets_rate(s, s->count);
	double held = 1 - astray;

	memcpy(s->scratch, s->total, size * sizeof(*s->scratch));
	for (size_t i = 0; i < n_flying; i++) {
		size_t gone = pool_of(s, flying[i]);
		double before = 0, after = 0;

		for (size_t t = 0; t < size; t++) {
			before += s->scratch[t];
			s->scratch[t] *= t & gone ? 1.0 : 1 - rate;
			after += s->scratch[t];
		}
		held = held * after / (held * after + (1 - held) * before);
	}
	double sum = 0, best = -1;
	for (size_t t = 0; t < size; t++)
		sum += s->scratch[t];
	for (size_t t = 0; t < size; t++) {
		s->expect[t] = s->scratch[t] / sum * held * s->hits[t];
		s->noise[t] = s->scratch[t] / sum * held * rate_entropy(s->hits[t]);
	}
	sum_within(s->expect, s->count);
	sum_within(s->noise, s->count);
	pool = 0;
	for (size_t r = 0; r < size; r++) {
		double value = rate_entropy(s->expect[size - 1 - r]) - s->noise[size - 1 - r];

		if (value >= best * (1 + 1e-9)) {
			best = value;
			pool = r;
		}
	}
	for (size_t i = 0; i < s->count; i++)
		if (pool >> i & 1)
			testset_remove(set, s->items[i]);
	return (size_t)__builtin_popcountll(pool);
}
