/*
 * Fisher's exact test: do two arms fail at different rates, or is it chance?
 *
 * Given how many trials failed in all, the failures of arm A follow the
 * hypergeometric distribution if the arms are alike. The p-values below are
 * exact sums over it, not approximations, with a relative error under 1e-9
 * for a million trials per arm, found in well under a millisecond. A p-value below
 * about 1e-290 loses precision and finally becomes 0.
 *
 * All functions are pure. When one arm has no trials, or no trial or every
 * trial failed, the data cannot tell the arms apart and p is 1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Two rates are said to differ below this p, wherever redhand puts it into words. What follows from
 * a difference may ask for more. */
#define RATES_DIFFER_P 0.05

struct fisher_table {
	uint64_t trials_a;
	uint64_t failed_a; /* <= trials_a */
	uint64_t trials_b;
	uint64_t failed_b; /* <= trials_b */
};

/*
 * The two-sided p-value: the probability of all tables that are no likelier
 * than the observed one. Tables within a factor of 1 + 1e-7 count as equally
 * likely, so that rounding cannot part a tie.
 */
double fisher_two_sided(const struct fisher_table *t);

/* One-sided: the probability that A shows as many failures as it did, or more. */
double fisher_greater(const struct fisher_table *t);

/* One-sided: the probability that A shows as few failures as it did, or fewer. */
double fisher_less(const struct fisher_table *t);

/*
 * How many clean trials it takes until fisher_less() of them against `failed` of `trials` is
 * `doubt` or less: as many as show that it does not fail (so often) any more when the rate before
 * is itself an estimate. At most 2^24, which nobody waits for.
 */
uint64_t fisher_clean_needed(uint64_t trials, uint64_t failed, double doubt);

/*
 * True when going on is pointless: whatever the `left_a` and `left_b` trials
 * still to come bring, the final two-sided p-value will not be `alpha` or less.
 *
 * This looks at what can still happen, not at what is likely, so stopping
 * on it cannot turn chance into a finding. It errs to the careful side: it may say
 * false a little longer than need be, never true too early. It says nothing for
 * stopping because the answer is yes; that is safe_test.h.
 */
bool fisher_curtailed(const struct fisher_table *so_far, uint64_t left_a, uint64_t left_b,
		      double alpha);
