#pragma once

#include "search/bisection/bisection.h"
#include "studies/bisect/bisect.h"
#include "studies/bisect/workshop.h"
#include "studies/series/target.h"

/*
 * The inside of `bisect`, for the two files that it is made of: bisect.c drives the search,
 * bisect_result.c says what came of it.
 */

/* A trial in a slot. */
struct commit_flight {
	uint64_t position; /* 0: free */
	size_t commit, tree;
};

/* What is known of a commit. */
struct commit_row {
	uint64_t trials, failed;
	unsigned int blind; /* trials in a row that said nothing */
	char *untested;	    /* why it cannot be tested; NULL when it can */
};

struct bisect {
	const struct bisect_request *request;
	const struct commit_history *history;
	struct case_store *cs;
	struct runner runner;
	struct bisection *bisection;
	struct workshop *workshop;
	char *dir; /* the workshop's */
	struct target target;
	double started_s;

	struct commit_row *rows;
	VEC(struct commit_flight) flights;
	uint64_t next_position, no_information, builds;
	uint64_t timed, timed_ns; /* trials of this call, and how long they took */
	bool interrupted;	  /* while building */

	/* Between record() and ended(). */
	struct strbuf items, signatures;
	struct list_run list_run;

	int failed; /* an error that a callback could not return */
	struct err err;
};

/* Everything that is known. */
int bisect_summarise(struct bisect *b, struct bisect_result *ret, struct err *err);

/* An answer becomes a line of the case. */
int bisect_remember(struct bisect *b, const struct bisect_result *result, struct err *err);
