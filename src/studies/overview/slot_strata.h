#pragma once

#include "model/investigation.h"
#include "run/tally.h"
#include "search/stats/fisher.h"

/* The trials of each slot, beside those of all others, series by series. */
struct slot_stratum {
	uint64_t trials, failed;
	VEC(struct fisher_table) series;
};

struct slot_pile {
	VEC(struct slot_stratum) slots; /* by number */
	uint64_t failed;
};

struct slot_strata {
	struct slot_pile failures, crashes;
};

void slots_deinit(struct slot_strata *strata);

/* The trials of one more series. */
void slots_add(struct slot_strata *strata, const struct tally *tally);

/* Fills in `slots` and `odd_slot`. */
void slots_judge(const struct slot_strata *strata, struct investigation *inv);
