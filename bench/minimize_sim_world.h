/*
 * Made-up worlds for minimize-sim: which lists fail, and how often. A world counts
 * the runs that are made in it.
 */
#ifndef REDHAND_BENCH_MINIMIZE_SIM_WORLD_H
#define REDHAND_BENCH_MINIMIZE_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum world_kind {
	WORLD_PLAIN,	 /* `needed` certain tests */
	WORLD_EITHER,	 /* one of two sets of `needed` tests */
	WORLD_THRESHOLD, /* any `needed` out of `heavy` */
	WORLD_NEVER,	 /* nothing ever fails */
};

struct world {
	enum world_kind kind;
	size_t n; /* tests, without the victim, which is number n */
	size_t needed, heavy;
	double rate;	  /* with the full list */
	double rate_last; /* with hardly any test left; linear in between; 0: the same */
	double lookalike; /* share of runs that show the target for another reason */
	double other;	  /* share of runs that die in another way first */
	uint8_t *mark;	  /* per test: bit 0 and bit 1, the sets it belongs to */
	uint64_t random;
	size_t runs;
};

enum world_outcome { WORLD_PASS, WORLD_TARGET, WORLD_OTHER };

/* Draws the needed sets. Returns 0 or -ENOMEM. */
int world_init(struct world *w, uint64_t seed);
void world_deinit(struct world *w);

double world_random(struct world *w);

/* The rate of a list given by indices; `skip` is a position left out, or SIZE_MAX. */
double world_rate(const struct world *w, const uint32_t *list, size_t count, size_t skip);

enum world_outcome world_run(struct world *w, const uint32_t *list, size_t count);

/* Does the list fail, and would it not without any single test? */
bool world_right(const struct world *w, const uint32_t *list, size_t count);
bool world_minimal(const struct world *w, const uint32_t *list, size_t count);

#endif
