/*
 * Subsets: what is believed about a short list, exactly. A weight for every
 * subset of the tests left (any of them may be the needed set) and every cell of
 * the rate grid.
 */
#ifndef REDHAND_ENGINE_REDUCE_SUBSETS_H
#define REDHAND_ENGINE_REDUCE_SUBSETS_H

#include "search/minimize/rate_grid.h"
#include "search/minimize/run_history.h"

enum { SUBSETS_MOST = 10 }; /* tests; the tables grow as 2^tests */

struct subsets {
	const struct rate_grid *grid;
	size_t n_full;
	bool victim;
	uint32_t items[SUBSETS_MOST];
	size_t count;
	double stray;		    /* rate of look-alikes */
	size_t n_cells;		    /* cells of the grid that still have weight */
	uint16_t cells[RATE_CELLS]; /* which they are */
	double *weight;		    /* [n_cells][1 << count] */
	double *total;		    /* [1 << count], summed over cells; sums to 1 */
	double *hits;		    /* [1 << count]: expected rate, were this the needed set */
	double *scratch, *expect, *noise; /* [1 << count] */
};

/* `victim`: a run has one test more, which is always there. Returns 0 or -ENOMEM. */
int subsets_init(struct subsets *s, size_t n_full, bool victim);
void subsets_deinit(struct subsets *s);

/* As in marginals.h. `count` is at most SUBSETS_MOST, `n_candidates` is the number of
 * tests that could have been needed at the start. */
void subsets_rebuild(struct subsets *s, const struct history *history, const uint32_t *items,
		     size_t count, size_t n_candidates);
void subsets_observe(struct subsets *s, const struct history_run *run);
double subsets_chance(const struct subsets *s, const testset_word *set);
double subsets_rate(const struct subsets *s, size_t size);
size_t subsets_pool(struct subsets *s, const testset_word *const *flying, size_t n_flying,
		    double astray, testset_word *set);

/* Probability that all tests left are needed. */
double subsets_all_needed(const struct subsets *s);

/* Probability that the one at `position` is. */
double subsets_needed(const struct subsets *s, size_t position);

#endif
