#pragma once

#include "case/case.h"
#include "model/crash.h"

/*
 * The crashes of one stored trial, with whoever cut a mapped file that one of them died of.
 */

/* `signal` is what the command died of, 0: it did not. */
int trial_crashes(struct case_store *cs, struct trial_number trial, int signal,
		  struct crash_report *ret, struct err *err);
