/*
 * Trend: does a level that is read after every test keep rising, or does it only look like it?
 *
 * Four things look like growth and are none: a cache that fills and then stays, what is set up once
 * at the start, a saw-tooth that happens to end high, and noise. Each has its own question below,
 * and all must be answered. What is left can still be a cache that is larger than the run is long:
 * no look at one run can tell that from a leak, so whoever prints a finding says how many tests
 * it rests on.
 *
 * All functions are pure; libc and libm only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trend_verdict {
	TREND_GROWS,
	TREND_TOO_FEW,	  /* it rose after fewer than TREND_RISES_MIN tests */
	TREND_FALLS_BACK, /* it fell by more than half of what it gained in all */
	TREND_LEVELS_OFF, /* it rose, and then for too long no more */
	TREND_NO_TREND,	  /* chance would do the same */
};

/* The least number of tests that can show growth: all of them rising. */
#define TREND_RISES_MIN 5

/* It has levelled off when it has risen after r of n tests and after none of the last t, if that is
 * at least one test in TREND_LEVEL_SHARE, and if r rises spread at random would leave out the last
 * t that rarely. */
#define TREND_LEVEL_P 0.01
#define TREND_LEVEL_SHARE 5

/* The p that a finding may have. A level that never fell may have the first, if it rose after more
 * than half of the tests (itself at TREND_STEADY_P, by the sign test): something that is set up
 * when first used also never falls, but it does not come up in most tests. Anything else takes
 * the second, which is ten rises without a fall. */
#define TREND_STEADY_P 0.05
#define TREND_P 0.001

struct trend {
	enum trend_verdict verdict;
	size_t tests;	/* readings less the first */
	size_t rises;	/* tests after which it was higher than ever before, and never came back */
	size_t quiet;	/* tests since the last of these */
	double kept;	/* last reading less the lowest */
	double fall;	/* deepest fall from an earlier reading */
	double level_p; /* of `quiet` */
	double early_p; /* of rises as early as these, if any test were as likely to bring one */
	double most_p;	/* of so many rises, if a test brought one half of the time */
	double p;	/* the larger of the sign test's (ups against downs: a random walk) and
			 * Mann and Kendall's (each reading against each: noise around a level) */
};

/* `readings` holds the level before the first test, then after each: `count` in all. Takes time
 * quadratic in `count`, at most TREND_READINGS_MAX. */
#define TREND_READINGS_MAX 513
struct trend trend_of(const double *readings, size_t count);
