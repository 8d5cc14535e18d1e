/*
 * Rate: how often something fails, and how far that number can be trusted.
 *
 * A rate is never shown without its interval and its number of trials. All
 * functions are pure: no allocation, no state, no errors. An argument outside
 * the range stated here is a mistake of the caller and asserts, so a command
 * checks what the user typed before it comes here.
 *
 * `confidence` is always a number strictly between 0 and 1, such as 0.95.
 */
#pragma once

#include <stdint.h>

#include "model/rate_seen.h"

#define RATE_CONFIDENCE 0.95 /* for every interval that redhand prints */

/*
 * The observed rate with its two-sided Wilson score interval.
 *
 * With no trials nothing is known: rate 0, interval 0 to 1. `low` is exactly 0
 * when nothing failed and `high` exactly 1 when everything did.
 */
struct rate rate_wilson(uint64_t trials, uint64_t failed, double confidence);

/*
 * How many clean trials in a row it takes to call a failure gone that used to
 * happen at `rate`: the smallest n with (1 - rate)^n <= 1 - confidence.
 *
 * 0 means 'cannot be told' (the rate is 0, negative or not a number); a rate of
 * 1 or more needs one trial. A count that does not fit is UINT64_MAX.
 */
uint64_t rate_clean_runs(double rate, double confidence);

/*
 * The highest rate that n clean trials leave believable: 1 - (1 - confidence)^(1/n),
 * the exact (Clopper-Pearson) one-sided bound. 1 when n is 0.
 */
double rate_upper_bound_clean(uint64_t n, double confidence);

/*
 * The chance that at least `wanted` of `trials` trials fail, each at `rate` (0 to 1): the upper
 * tail of the binomial distribution.
 */
double rate_at_least(uint64_t trials, uint64_t wanted, double rate);

/*
 * The z for which a standard normal variable stays within -z..z with
 * probability `confidence`: 1.9599… for 0.95.
 */
double rate_normal_quantile(double confidence);
