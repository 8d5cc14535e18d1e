#pragma once

#include "case/case.h"
#include "model/growth_site.h"
#include "studies/series/repro.h"

/*
 * `heap --growth`: run the tests a few times and tell which sites allocate what stays.
 */
struct growth_request {
	struct series_request series;
	unsigned int trials;
};

/* Growth is measured anew each time: earlier trials of the same command are forgotten. Fails with
 * -ENODATA when no trial had enough tests to tell, unless it was interrupted. */
int growth_run(struct case_store *cs, const struct growth_request *request,
	       struct growth_report *ret, struct err *err);
