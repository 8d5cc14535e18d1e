#pragma once

#include "read/census.h"
#include "search/stats/trend.h"

/*
 * Families: tests that are the same but for a number or a parameter.
 *
 * A level that rose and then stayed is a cache that is full, or what tests of one kind leave behind
 * while now others run. It is told by the tests of that kind alone: if it rose as long as they ran,
 * nothing says that it had enough.
 */
struct families {
	uint64_t *of; /* of each moment; NULL: there are none, since moments are no tests */
	size_t moments;
};

struct families families_of(const struct census *census);
void families_deinit(struct families *families);

/* The trend of these levels, one per moment, over those tests whose family has made them rise often
 * enough to tell; `whole` when there is none such. */
struct trend families_trend(const struct families *families, const int64_t *levels,
			    const struct trend *whole);
