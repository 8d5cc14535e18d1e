/*
 * The rate: how likely a run that holds all needed tests shows the target.
 *
 * Nobody knows it, and it may change as the list shrinks. So it is a grid of
 * hypotheses, (rate on the full list) x (factor by which it has changed once the
 * list is empty, log-linear in between), each with a prior; whoever uses it sums
 * over the grid. The prior over the rate is uniform, Beta(1, 1); most of the prior
 * over the factor is on 'does not change'.
 */
#ifndef REDHAND_ENGINE_REDUCE_RATE_GRID_H
#define REDHAND_ENGINE_REDUCE_RATE_GRID_H

#include <stddef.h>

enum {
	RATE_LEVELS = 34,
	RATE_FACTORS = 7,
	RATE_CELLS = RATE_LEVELS * RATE_FACTORS,
	RATE_SIZES = 65, /* list sizes are told apart to 1/64 of the full list */
};

struct rate_grid {
	double log_prior[RATE_CELLS];
	double hit[RATE_SIZES][RATE_CELLS];	 /* rate of cell at a list size */
	double log_hit[RATE_SIZES][RATE_CELLS];	 /* its logarithm */
	double log_miss[RATE_SIZES][RATE_CELLS]; /* log(1 - rate) */
};

/* The one grid: constant, made on first use, by whichever thread. */
const struct rate_grid *rate_grid(void);

/* The row of the tables for a list of `size` out of `full` tests. */
size_t rate_size(size_t size, size_t full);

/* Mutual information, in nats, between 'all needed tests are in the list'
 * (probability q) and the outcome of a run with the given rate. */
double rate_information(double rate, double q);

/* Of an event with probability x, in nats. */
double rate_entropy(double x);

/* The q at which rate_information() is greatest: 1/e for small rates. */
double rate_best_q(double rate);

#endif
