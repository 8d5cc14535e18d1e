#include "engine/reduce/marginals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many tests are needed, before anything is known. */
#define needed_prior TUNE[6]
extern double TUNE[8];

int marginals_init(struct marginals *m, size_t n_full)
{
	*m = (struct marginals){ .grid = rate_grid(), .n_full = n_full };
	m->items = calloc(n_full + 1, sizeof(*m->items));
	m->odds = calloc(n_full + 1, sizeof(*m->odds));
	m->trial = calloc(n_full + 1, sizeof(*m->trial));
	m->order = calloc(n_full + 1, sizeof(*m->order));
	if (!m->items || !m->odds || !m->trial || !m->order) {
		marginals_deinit(m);
		return -ENOMEM;
	}
	return 0;
}

void marginals_deinit(struct marginals *m)
{
	free(m->items);
	free(m->odds);
	free(m->trial);
	free(m->order);
	free(m->clauses);
	free(m->edges);
	*m = (struct marginals){ 0 };
}

/* Weights of the cells, given the luck attributed to each list size. */
static void cells_update(struct marginals *m)
{
	double most = -HUGE_VAL, sum = 0;

	for (int c = 0; c < RATE_CELLS; c++)
		m->cell[c] = m->grid->log_prior[c];
	for (int row = 0; row < RATE_SIZES; row++) {
		if (m->hits[row] == 0 && m->misses[row] == 0)
			continue;
		for (int c = 0; c < RATE_CELLS; c++)
			m->cell[c] += m->hits[row] * m->grid->log_hit[row][c] +
				      m->misses[row] * m->grid->log_miss[row][c];
	}
	for (int c = 0; c < RATE_CELLS; c++)
		if (m->cell[c] > most)
			most = m->cell[c];
	for (int c = 0; c < RATE_CELLS; c++) {
		m->cell[c] = m->cell[c] < most - 30 ? 0 : exp(m->cell[c] - most);
		sum += m->cell[c];
	}
	for (int c = 0; c < RATE_CELLS; c++)
		m->cell[c] /= sum;
}

static double row_rate(const struct marginals *m, size_t row)
{
	double rate = 0;

	for (int c = 0; c < RATE_CELLS; c++)
		rate += m->cell[c] * m->grid->hit[row][c];
	return rate;
}

/* One clause speaks again: takes back its pushes, looks at what the others say,
 * and pushes anew (belief propagation on 'passed, so probably one of these is
 * needed'). */
static void clause_speak(struct marginals *m, struct clause *clause)
{
	struct edge *edges = m->edges + clause->first;
	double q = 1, luck;

	for (size_t i = 0; i < clause->count; i++) {
		double *odds = &m->odds[edges[i].position];

		*odds /= edges[i].push;
		q /= 1 + *odds;
	}
	for (size_t i = 0; i < clause->count; i++) {
		double *odds = &m->odds[edges[i].position];
		double alone = q * (1 + *odds);
		double push = clause->without / (clause->within * alone + clause->without * (1 - alone));

		edges[i].push = (float)push;
		*odds *= edges[i].push;
	}
	luck = clause->within * q / (clause->within * q + clause->without * (1 - q));
	(clause->crash ? m->hits : m->misses)[clause->row] += luck - clause->void_chance;
	clause->void_chance = luck;
}

/* Goes round the clauses until `budget` edges were looked at, or all. */
static void sweep(struct marginals *m, size_t budget)
{
	size_t seen = 0;

	for (size_t i = 0; i < m->n_clauses && seen < budget; i++) {
		struct clause *clause = &m->clauses[m->next_clause];

		m->next_clause = (m->next_clause + 1) % m->n_clauses;
		clause_speak(m, clause);
		seen += clause->count;
	}
}

static double chance_of(const struct marginals *m, const double *odds, const testset_word *set)
{
	double q = 1;

	for (size_t i = 0; i < m->count; i++)
		if (!testset_has(set, m->items[i]))
			q /= 1 + odds[i];
	return q;
}

static void clause_rate(const struct marginals *m, struct clause *clause, double rate)
{
	clause->within = clause->crash ? rate : 1 - rate;
	clause->without = clause->crash ? m->stray : 1;
}

static int clause_add(struct marginals *m, const struct run *run)
{
	struct clause clause = { .first = (uint32_t)m->n_edges };

	if (m->n_clauses == m->room_clauses) {
		size_t room = m->room_clauses ? m->room_clauses * 2 : 256;
		struct clause *clauses = realloc(m->clauses, room * sizeof(*clauses));

		if (!clauses)
			return -ENOMEM;
		m->clauses = clauses;
		m->room_clauses = room;
	}
	if (m->n_edges + m->count > m->room_edges) {
		size_t room = m->room_edges * 2 + m->count;
		struct edge *edges = realloc(m->edges, room * sizeof(*edges));

		if (!edges)
			return -ENOMEM;
		m->edges = edges;
		m->room_edges = room;
	}
	for (size_t i = 0; i < m->count; i++)
		if (!testset_has(run->set, m->items[i]))
			m->edges[m->n_edges++] = (struct edge){ (uint32_t)i, 1 };
	clause.count = (uint32_t)(m->n_edges - clause.first);
	clause.row = (uint32_t)rate_size(run->size, m->n_full);
	if (clause.count == 0) {
		m->misses[clause.row] += 1;
		return 0;
	}
	clause.crash = run->kind != RUN_PASS;
	clause_rate(m, &clause, row_rate(m, clause.row));
	m->clauses[m->n_clauses++] = clause;
	clause_speak(m, &m->clauses[m->n_clauses - 1]);
	return 0;
}

static void prior_update(struct marginals *m)
{
	double needed = 0, rho, odds;

	if (!TUNE[7])
		return;
	for (size_t i = 0; i < m->count; i++)
		needed += m->odds[i] / (1 + m->odds[i]);
	rho = (needed + TUNE[7]) / ((double)m->n_full + TUNE[7] / needed_prior * (double)m->n_full);
	if (rho > 0.5)
		rho = 0.5;
	odds = rho / (1 - rho);
	for (size_t i = 0; i < m->count; i++)
		m->odds[i] *= odds / m->prior;
	m->prior = odds;
}

void marginals_observe(struct marginals *m, const struct run *run)
{
	if (run->kind == RUN_TARGET)
		m->hits[rate_size(run->size, m->n_full)] += 1;
	else
		clause_add(m, run);
	sweep(m, 4000);
	prior_update(m);
	cells_update(m);
}

void marginals_rebuild(struct marginals *m, const struct history *history, const uint32_t *items,
		       size_t count)
{
	double prior = needed_prior / (double)(m->n_full + 1);

	if (prior > 0.5)
		prior = 0.5;
	memmove(m->items, items, count * sizeof(*items));
	m->count = count;
	for (size_t i = 0; i < count; i++)
		m->odds[i] = prior / (1 - prior);
	m->n_clauses = m->n_edges = m->next_clause = 0;
	memset(m->hits, 0, sizeof(m->hits));
	memset(m->misses, 0, sizeof(m->misses));
	for (size_t i = 0; i < history->count; i++)
		if (history->runs[i].kind == RUN_TARGET)
			m->hits[rate_size(history->runs[i].size, m->n_full)] += 1;
	if (m->cell[0] == 0 && m->cell[1] == 0) cells_update(m);
	for (size_t i = 0; i < history->count; i++)
		if (history->runs[i].kind != RUN_TARGET)
			clause_add(m, &history->runs[i]);
	m->prior = prior / (1 - prior);
	for (int round = 0; round < 4; round++) {
		prior_update(m);
		double rates[RATE_SIZES];
		cells_update(m);
		for (size_t r = 0; r < RATE_SIZES; r++)
			rates[r] = row_rate(m, r);
		for (size_t i = 0; i < m->n_clauses; i++)
			clause_rate(m, &m->clauses[i], rates[m->clauses[i].row]);
		sweep(m, SIZE_MAX);
	}
	cells_update(m);
}

double marginals_chance(const struct marginals *m, const testset_word *set)
{
	return chance_of(m, m->odds, set);
}

double marginals_rate(const struct marginals *m, size_t size)
{
	return row_rate(m, rate_size(size, m->n_full));
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Least needed first, equals in an order that depends on the salt. The key is
 * the marginal in its upper, noise in its middle and the index in its lower bits. */
static void sort_items(struct marginals *m, uint64_t salt)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t noise = (salt + i) * 0x9e3779b97f4a7c15u;
		double level = (log(m->trial[i]) + 40) * 65536;

		noise = (noise ^ noise >> 29) * 0xbf58476d1ce4e5b9u;
		m->order[i] = (uint64_t)(level < 0 ? 0 : level > 0xffffff ? 0xffffff : level) << 40 |
			      (noise >> 48) << 24 | i;
	}
	qsort(m->order, m->count, sizeof(*m->order), by_key);
}

size_t marginals_pool(struct marginals *m, const testset_word *const *flying, size_t n_flying,
		      double astray, uint64_t salt, testset_word *set)
{
	double rate = marginals_rate(m, m->count), best = 0;
	double q = 1 - astray;
	size_t pool = 0;

	memcpy(m->trial, m->odds, m->count * sizeof(*m->trial));
	for (size_t i = 0; i < n_flying; i++) {
		double chance = chance_of(m, m->trial, flying[i]);

		q = q * (1 - rate * chance) / (q * (1 - rate * chance) + 1 - q);
		if (chance == 1)
			continue;
		for (size_t j = 0; j < m->count; j++)
			if (!testset_has(flying[i], m->items[j]))
				m->trial[j] /= 1 - rate * chance * (1 + m->trial[j]);
	}
	sort_items(m, salt);
	best = rate_information(rate, q);
	while (pool < m->count) {
		size_t i = m->order[pool] & 0xffffff;
		double next = q / (1 + m->trial[i]), value = rate_information(rate, next);

		if (value < best)
			break;
		best = value;
		q = next;
		testset_remove(set, m->items[i]);
		pool++;
	}
	return pool;
}
