/*
 * Marginals: what is believed about a long list. For each test the probability
 * that it is needed, as if tests were independent of each other, and a weight for
 * each cell of the rate grid. Cheap (linear in the list), good enough to choose
 * what to leave out next; a result is only ever claimed from `subsets`, or from
 * counted passes.
 */
#ifndef REDHAND_ENGINE_REDUCE_MARGINALS_H
#define REDHAND_ENGINE_REDUCE_MARGINALS_H

#include "search/minimize/rate_grid.h"
#include "search/minimize/run_history.h"

/* A pass that left out some of the items: each got a push towards 'needed'. */
struct clause {
	uint32_t first, count; /* its edges */
	uint32_t row;	       /* of the rate grid */
	bool crash;
	double within,
		without; /* chance of that outcome if the run held all needed tests, if not */
};

struct edge {
	uint32_t position; /* of the item */
	float pull;	   /* this clause has divided the odds of the item by it */
};

struct marginals {
	const struct rate_grid *grid;
	size_t n_full; /* tests in the full list */
	bool victim;
	uint32_t *items; /* tests that may be needed, ascending */
	double *odds;	 /* beside it: of being needed */
	double *trial;	 /* beside it: scratch for planning */
	uint64_t *order; /* beside it: scratch for sorting */
	size_t count;
	double prior; /* odds of any test before any evidence */
	double stray; /* rate of look-alikes */

	struct clause *clauses;
	size_t n_clauses, room_clauses;
	struct edge *edges;
	size_t n_edges, room_edges;
	size_t next_clause; /* where the next partial sweep goes on */

	double cell[RATE_CELLS]; /* belief over the rate grid; sums to 1 */
};

/* Room for `n_full` tests; `victim`: one of them is always there, and not among the
 * items. Returns 0 or -ENOMEM. */
int marginals_init(struct marginals *m, size_t n_full, bool victim);
void marginals_deinit(struct marginals *m);

/* Believe only what `history` says about the tests `items[0..count)`, given that
 * all needed ones are among them. */
int marginals_rebuild(struct marginals *m, const struct history *history, const uint32_t *items,
		      size_t count, const double *cell);

/* `run`, the newest of the history, showed the target, and is going to be followed
 * by a rebuild, or by narrowing the items to what it held. */
void marginals_target(struct marginals *m, const struct history_run *run);
int marginals_narrow(struct marginals *m, const struct history_run *run);

/* One more run, the newest of the history. A target run must hold all items. */
int marginals_observe(struct marginals *m, const struct history_run *run);

/* Probability that `set` holds every needed test. */
double marginals_chance(const struct marginals *m, const testset_word *set);

/* Expected rate of a list of `size` tests that holds them all. */
double marginals_rate(const struct marginals *m, size_t size);

/* Takes out of `set` (which holds all items) the pool that promises the most
 * information, given that the `n_flying` sets that are running now will pass, and
 * that with probability `astray` the needed tests are not all in the list at all.
 * `salt` breaks ties. Unless `trusting`, all items are taken to be equally likely:
 * what is believed of a long list may be wrong, and then stands in its own way. Returns the size of
 * the pool; 0 says: run the list as it is. */
size_t marginals_pool(struct marginals *m, const testset_word *const *flying, size_t n_flying,
		      double astray, uint64_t salt, bool trusting, testset_word *set);

#endif
