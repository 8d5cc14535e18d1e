#pragma once

#include "search/minimize/minimiser.h"
#include "studies/series/minimize.h"
#include "studies/series/target.h"

/*
 * The inside of `minimize`, for the two files that it is made of: minimize.c drives the
 * search, minimize_result.c says what came of it.
 */

/* A list in a slot. */
struct list_flight {
	uint64_t position; /* 0: free */
	uint64_t plan;	   /* 0: not the minimiser's */
	enum minimiser_purpose purpose;
	uint32_t *tests;
	size_t count;
};

/* A run of a list, as it ended, or as the case tells it. */
struct ended_run {
	const uint32_t *tests;
	size_t count;
	uint64_t plan;
	enum minimiser_purpose purpose;
	uint64_t started;
	bool complete, told;
	const char *signatures;
};

/* A run from before the target was known. */
struct early_run {
	uint64_t started;
	bool complete, told;
	char *signatures;
};

struct blindness {
	unsigned int runs; /* in a row that said nothing */
	struct err why;	   /* why the latest of them did not */
};

/* Between record() and ended(). */
struct told_run {
	struct strbuf items, signatures;
	struct list_run run;
};

/* That a callback could not return. */
struct late_error {
	int code;
	struct err err;
};

struct minimize {
	const struct minimize_request *request;
	const struct framework *framework;
	struct case_store *cs;
	struct runner runner;
	double started_s;

	struct target target;
	size_t victim; /* MINIMISER_NO_VICTIM when there is none */
	bool stops;    /* the victim's pass ends a run: the target is the victim's failure */
	VEC(struct early_run) early;
	struct minimiser *minimiser; /* NULL while the target is not known */
	uint64_t seed;
	bool never_failed;
	struct blindness blind;

	VEC(struct list_flight) flights;
	uint64_t next_position;
	uint32_t *full; /* the full list: up to the victim when that is known */
	size_t full_count;

	struct told_run told;

	size_t written; /* length of the list in the file; 0 when there is none yet */
	struct late_error late;
};

/* Writes the best list so far, if it has become shorter: whoever kills redhand finds a list that is
 * as good as it was then. */
int minimize_keep_best(struct minimize *m, struct err *err);

/* Everything that is known. -ENODATA, with a sentence, when the full list never failed. */
int minimize_summarise(struct minimize *m, struct minimize_result *ret, struct err *err);
