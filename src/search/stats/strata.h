/*
 * Fisher's exact test over strata: do two arms fail at different rates, when the trials were run in
 * rounds between which the rate itself may have changed (a machine that warms up, a cache that
 * fills)?
 *
 * Within each round the failures of arm A follow the hypergeometric distribution if the arms are
 * alike; their sum over all rounds follows the convolution of these, which is summed exactly. One
 * round alone is fisher_two_sided().
 */
#pragma once

#include <stddef.h>

#include "search/stats/fisher.h"

/*
 * The two-sided p-value: the probability of all sums that are no likelier than the observed one.
 *
 * Where so many trials failed that the convolution would take seconds, neighbouring rounds are
 * taken together first.
 */
double strata_two_sided(const struct fisher_table *rounds, size_t count);
