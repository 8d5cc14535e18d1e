#pragma once

#include "model/summary.h"
#include "run/stored.h"

/* How the address of the fault varies over the failing trials of a series that are kept: the first
 * FAULTS_READ of them. */
#define FAULTS_READ 24u

int fault_addresses(struct case_store *cs, struct series_id series, struct readings *readings,
		    struct series_summary *ret, struct err *err);
