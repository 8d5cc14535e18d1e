#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "search/bisection/lineage.h"

/*
 * Which commit brought a failure that shows itself only now and then.
 *
 * It runs nothing: the caller asks for a commit to test, tests it wherever it likes, and reports
 * what became of it, in any order.
 *
 * The model. One commit, the culprit, brought the failure: it and its descendants fail at some
 * rate, which is unknown unless the user says it; all others fail never, or, with a small prior
 * probability, at a much smaller rate, for something else may look like it now and then. Besides
 * the commits there are two more hypotheses: it was there already at GOOD, and it never fails more
 * often than that. A posterior over culprit x rate x rate of look-alikes is kept whole; nothing is
 * decided on the way, so that luck early on costs trials but not the answer.
 *
 * What is believed depends only on the options and on the reports, never on a clock: a
 * resumed bisection that is told the same believes the same.
 */
struct bisection;

struct bisection_options {
	const struct lineage *lineage; /* of GOOD (0) and the commits up to BAD (the last) */
	double confidence;	       /* that the answer is right; 0 stands for 0.99 */
	double rate;		       /* of the failure at BAD, as the user knows it; 0: unknown */
	uint64_t seen_trials, seen_failed; /* or what was seen of it before; 0: nothing */
	bool careful;	      /* be as sure even where the rate is known from these trials alone */
	bool builds;	      /* a commit that is not ready costs a build, not only a checkout */
	uint64_t clean_limit; /* give up after so many trials without any failure; 0: 300 */
};

struct bisection *bisection_new(const struct bisection_options *options);
void bisection_free(struct bisection *b);
AUTO_DEFINE(struct bisection, bisection_free)

/* One trial of this commit showed the failure, or did not. */
void bisection_report(struct bisection *b, size_t commit, bool failed);

/* This commit cannot be tested. What is known about it stays known. */
void bisection_skip(struct bisection *b, size_t commit);

/* A trial of this commit has been started; it has ended. While it runs the search plans as if
 * it were going to pass. */
void bisection_start(struct bisection *b, size_t commit);
void bisection_end(struct bisection *b, size_t commit);

/* This commit is built: of two that tell about as much it is taken. */
void bisection_set_ready(struct bisection *b, size_t commit, bool ready);

/* The commit that tells most. 1: there is one; 0: the answer is there, or will be when the trials
 * that run have passed, or cannot be had. */
int bisection_next(struct bisection *b, size_t *ret);

enum bisection_verdict {
	BISECTION_SEARCHING,
	BISECTION_FOUND,  /* this commit */
	BISECTION_RANGE,  /* one of several that cannot be told apart: the rest is untestable */
	BISECTION_BEFORE, /* it was there already at GOOD */
	BISECTION_NEVER,  /* BAD does not fail, as far as can be told */
};

struct bisection_state {
	enum bisection_verdict verdict;
	size_t commit;	    /* the likeliest, or the last of the likeliest range */
	double probability; /* of that commit, range or verdict */
	double at_rate;	    /* the same if the rate were exactly what was seen of it */
	double before, never;
	double rate, rate_low, rate_high; /* of the failure, with a 95 % credible interval */
	uint64_t trials, failed;
	double to_go; /* trials expected; 0 when done */
};

void bisection_state(struct bisection *b, struct bisection_state *ret);

/* Probability that this commit is the culprit; 0 is GOOD: 'or one before it'. */
double bisection_probability(struct bisection *b, size_t commit);

/* Is this commit one of the range that state.commit stands for? */
bool bisection_in_range(struct bisection *b, size_t commit);
