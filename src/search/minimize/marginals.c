#include "search/minimize/marginals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* How many tests are needed, before anything is known. */
static const double needed_prior = 3;
/* How many needed tests that guess weighs against what is found. */
static const double needed_prior_weight = 2;
/* Edges looked at again after each run, after a change of the list, and kept at all:
 * bounds on time and memory, out of reach for lists of hundreds of tests. */
static const size_t sweep_edges = 4000, settle_edges = 100000, edges_most = 1500000;

/* Odds stay within these, so that they neither overflow nor stick. */
static const double odds_least = 1e-15, odds_most = 1e15;

int marginals_init(struct marginals *m, size_t n_full, bool victim)
{
	*m = (struct marginals){ .grid = rate_grid(), .n_full = n_full, .victim = victim };
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

static double row_rate(const struct marginals *m, size_t row)
{
	double rate = 0;

	for (int c = 0; c < RATE_CELLS; c++)
		rate += m->cell[c] * m->grid->hit[row][c];
	return rate;
}

/* One clause speaks again: takes back its pulls, looks at what the others say,
 * and pulls anew (belief propagation on 'passed, so probably one of these is
 * needed'). */
static void clause_speak(struct marginals *m, const struct clause *clause)
{
	struct edge *edges = m->edges + clause->first;
	double product = 1, gain = clause->within / clause->without - 1, q;

	for (size_t i = 0; i < clause->count; i++) {
		double *odds = &m->odds[edges[i].position];

		*odds *= edges[i].pull;
		product *= 1 + *odds;
	}
	q = 1 / product;
	for (size_t i = 0; i < clause->count; i++) {
		double *odds = &m->odds[edges[i].position];
		/* Relative chance of the outcome if this one is not needed. */
		double pull = 1 + gain * q * (1 + *odds);

		edges[i].pull = (float)pull;
		*odds = *odds / edges[i].pull;
		*odds = *odds > odds_most ? odds_most : *odds < odds_least ? odds_least : *odds;
	}
}

/* Goes round the clauses until `budget` edges were looked at, or all. */
static void sweep(struct marginals *m, size_t budget)
{
	size_t seen = 0;

	for (size_t i = 0; i < m->n_clauses && seen < budget; i++) {
		struct clause *clause = &m->clauses[m->next_clause % m->n_clauses];

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

static int clause_add(struct marginals *m, const struct history_run *run)
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
		size_t room = m->room_edges + m->room_edges / 2 + m->count;
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
	if (clause.count == 0)
		return 0;
	clause.crash = run->kind != RUN_PASS;
	clause_rate(m, &clause, row_rate(m, clause.row));
	m->clauses[m->n_clauses++] = clause;
	clause_speak(m, &m->clauses[m->n_clauses - 1]);
	/* No room for more: what it said stays, but it will not be asked again. */
	if (m->n_edges > edges_most) {
		m->n_edges = clause.first;
		m->n_clauses--;
	}
	return 0;
}

/* The rate learns from each outcome as it was foreseen, and is never told again
 * what it should have foreseen: to re-attribute passes to luck later lets 'the
 * rate is tiny and no test is needed' explain everything. */
static void cells_observe(struct marginals *m, const struct history_run *run, double q)
{
	const double *hit = m->grid->hit[rate_size(run->size, m->n_full)];
	double sum = 0;

	for (int c = 0; c < RATE_CELLS; c++) {
		m->cell[c] *= run->kind == RUN_PASS ? 1 - hit[c] * q : hit[c];
		sum += m->cell[c];
	}
	for (int c = 0; c < RATE_CELLS; c++)
		m->cell[c] /= sum;
}

/* How many tests are needed is learnt, too: else a wrong guess would be taken for
 * a wrong rate. */
static void prior_update(struct marginals *m)
{
	double n = (double)m->n_full, needed = 0, share, odds;

	for (size_t i = 0; i < m->count; i++)
		needed += m->odds[i] / (1 + m->odds[i]);
	share = fmin((needed + needed_prior_weight) / (n + needed_prior_weight * n / needed_prior),
		     0.5);
	odds = share / (1 - share);
	for (size_t i = 0; i < m->count; i++)
		m->odds[i] *= odds / m->prior;
	m->prior = odds;
}

int marginals_observe(struct marginals *m, const struct history_run *run)
{
	int r = 0;

	cells_observe(m, run, chance_of(m, m->odds, run->set));
	if (run->kind != RUN_TARGET)
		r = clause_add(m, run);
	sweep(m, sweep_edges);
	prior_update(m);
	return r;
}

static void settle(struct marginals *m, int rounds)
{
	double rates[RATE_SIZES];

	for (size_t row = 0; row < RATE_SIZES; row++)
		rates[row] = row_rate(m, row);
	for (size_t i = 0; i < m->n_clauses; i++)
		clause_rate(m, &m->clauses[i], rates[m->clauses[i].row]);
	for (int round = 0; round < rounds; round++) {
		sweep(m, settle_edges / (size_t)rounds);
		prior_update(m);
	}
}

int marginals_rebuild(struct marginals *m, const struct history *history, const uint32_t *items,
		      size_t count, const double *cell)
{
	double prior = needed_prior / (double)(m->n_full + 1);

	if (prior > 0.5)
		prior = 0.5;
	memmove(m->items, items, count * sizeof(*items));
	m->count = count;
	for (size_t i = 0; i < count; i++)
		m->odds[i] = prior / (1 - prior);
	m->prior = prior / (1 - prior);
	m->n_clauses = m->n_edges = m->next_clause = 0;
	for (int c = 0; c < RATE_CELLS; c++)
		m->cell[c] = cell ? cell[c] : exp(m->grid->log_prior[c]);
	for (size_t i = 0; i < history->count; i++) {
		int r = 0;

		if (history->runs[i].kind != RUN_TARGET)
			r = clause_add(m, &history->runs[i]);
		if (r < 0)
			return r;
	}
	settle(m, 6);
	return 0;
}

void marginals_target(struct marginals *m, const struct history_run *run)
{
	cells_observe(m, run, 1);
}

int marginals_narrow(struct marginals *m, const struct history_run *run)
{
	uint32_t *place = (uint32_t *)m->order;
	size_t n_edges = 0, n_clauses = 0, count = 0;

	for (size_t i = 0; i < m->count; i++) {
		bool stays = testset_has(run->set, m->items[i]);

		place[i] = stays ? (uint32_t)count : UINT32_MAX;
		m->items[count] = m->items[i];
		m->odds[count] = m->odds[i];
		count += stays;
	}
	m->count = count;
	for (size_t i = 0; i < m->n_clauses; i++) {
		struct clause clause = m->clauses[i];
		uint32_t first = (uint32_t)n_edges;

		for (size_t e = clause.first; e < clause.first + clause.count; e++) {
			if (place[m->edges[e].position] == UINT32_MAX)
				continue;
			m->edges[n_edges].pull = m->edges[e].pull;
			m->edges[n_edges++].position = place[m->edges[e].position];
		}
		clause.first = first;
		clause.count = (uint32_t)(n_edges - first);
		if (clause.count)
			m->clauses[n_clauses++] = clause;
	}
	m->n_clauses = n_clauses;
	m->n_edges = n_edges;
	m->next_clause = 0;
	settle(m, 4);
	return 0;
}

double marginals_chance(const struct marginals *m, const testset_word *set)
{
	return chance_of(m, m->odds, set);
}

double marginals_rate(const struct marginals *m, size_t size)
{
	return row_rate(m, rate_size(size, m->n_full));
}

/* Least needed first, equals in an order that depends on the salt. The key is
 * the marginal in its upper, noise in its middle and the index in its lower bits. */
static void sort_items(struct marginals *m, uint64_t salt)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t noise = (salt + i) * 0x9e3779b97f4a7c15u;
		double level = (log(m->trial[i]) + 40) * 65536;

		noise = (noise ^ noise >> 29) * 0xbf58476d1ce4e5b9u;
		m->order[i] = (uint64_t)(level < 0	    ? 0
					 : level > 0xffffff ? 0xffffff
							    : level)
				      << 40 |
			      (noise >> 48) << 24 | i;
	}
	numbers_sort(m->order, m->count);
}

size_t marginals_pool(struct marginals *m, const testset_word *const *flying, size_t n_flying,
		      double astray, uint64_t salt, bool trusting, testset_word *set)
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
	if (!trusting) {
		double needed = 1.5;

		for (size_t i = 0; i < m->count; i++)
			needed += m->odds[i] / (1 + m->odds[i]);
		for (size_t i = 0; i < m->count; i++)
			m->trial[i] = fmin(needed / (double)m->count, 1);
	}
	sort_items(m, salt);
	best = rate_information(rate, q);
	while (pool + !m->victim < m->count) {
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
