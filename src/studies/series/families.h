#pragma once

#include "model/family.h"
#include "model/summary.h"
#include "run/tally.h"

/* Puts the signatures of a series into families. Failures of every run are a matter of their own
 * and in none, unless there are no others. */
void families_group(const struct signature_summaries *signatures, const struct tally *tally,
		    struct failure_families *ret);
