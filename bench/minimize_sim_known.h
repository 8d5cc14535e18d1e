/*
 * The known ways to minimise a list, beside which minimize-sim puts redhand's. All of
 * them are told the true rate, which redhand is not.
 */
#ifndef REDHAND_BENCH_MINIMIZE_SIM_KNOWN_H
#define REDHAND_BENCH_MINIMIZE_SIM_KNOWN_H

#include "minimize_sim_world.h"

/* Each leaves the tests it ends with in `list` (room for w->n) and returns how many. */
size_t known_ddmin_repeats(struct world *w, uint32_t *list); /* repeats for 99 % */
size_t known_ddmin_sprt(struct world *w, uint32_t *list);    /* sequential test, 1 % */
size_t known_rspec_sprt(struct world *w, uint32_t *list);
size_t known_chunks(struct world *w, uint32_t *list); /* repeats for 95 %, early end */

#endif
