#pragma once

#include "case/case.h"
#include "model/investigation.h"

/*
 * Reads all that a case says about its failure. Runs nothing. A case with trials only gives
 * rates, crashes and the shortest list; evidence without a stored verdict is judged anew.
 */
int investigation_read(struct case_store *cs, struct investigation *ret, struct err *err);

/* The shortest list that brings the failure out, from the runs of a `minimize` (trigger.c). */
int trigger_read(struct case_store *cs, struct series_id series, struct trigger_set *ret,
		 struct err *err);
