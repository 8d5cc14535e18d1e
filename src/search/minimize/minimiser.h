/*
 * The minimiser: the smallest ordered list of tests that still shows the target
 * signature, when every pass may be luck.
 *
 * It runs nothing. The caller asks for a plan (a list to run), runs it wherever it
 * likes, and reports what became of it. Any number of plans may be outstanding;
 * reports come in any order, late, or never.
 *
 *	minimiser_new(&options, &m);
 *	while (!minimiser_done(m)) {
 *		while (a slot is free && minimiser_next(m, &plan) > 0)
 *			start plan.tests[0 .. plan.count) in it;
 *		wait for a slot; store (list, outcome);
 *		minimiser_report(m, &report);
 *	}
 *	minimiser_result(m, &result);
 *
 * Resume: make a new minimiser with the same options and report the stored
 * (list, outcome) pairs again, all of them, in the same order. What it believes, and what it
 * plans next, depends only on the options, on the reports so far and their order,
 * and on the plans outstanding; never on a clock or on plans forgotten. A report
 * need not belong to a plan: any list of tests is evidence.
 *
 * The model: an unknown set of needed tests; a run that holds them all shows the
 * target with some rate, any other (nearly) never. The rate is unknown, may change
 * as the list shrinks, and now and then something else looks like the target.
 *
 * Not for use by two threads at once. Functions that can fail return 0 or -errno.
 */
#ifndef REDHAND_ENGINE_REDUCE_MINIMISER_H
#define REDHAND_ENGINE_REDUCE_MINIMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/minimize/outcomes.h"

struct minimiser;

#define MINIMISER_NO_VICTIM SIZE_MAX

struct minimiser_options {
	size_t n_tests;	   /* length of the full list; tests are 0 .. n_tests-1 in order */
	size_t victim;	   /* always kept; tests after it are dropped at once, for a run is
			    * over when its victim is. MINIMISER_NO_VICTIM if unknown */
	double confidence; /* that the result is right; 0 stands for 0.99 */
	uint64_t seed;
	unsigned flags;		 /* enum minimiser_flags */
	unsigned baseline_fails; /* failures of the full list wanted first; 0 for the default */
	unsigned baseline_runs;	 /* clean runs of the full list after which it is given up
				  * as never failing; 0 for the default (300) */
};

enum minimiser_purpose {
	MINIMISER_BASELINE, /* the full list: how often does it fail */
	MINIMISER_SEARCH,   /* which tests can go */
	MINIMISER_PROOF,    /* the list found fails; without one of its tests it does not */
	MINIMISER_OTHERS,   /* can other tests stand in for those found */
	MINIMISER_ORDER,    /* the list found, in another order */
};

struct minimiser_plan {
	uint64_t id; /* never 0 */
	enum minimiser_purpose purpose;
	const uint32_t *tests; /* to run, in this order; valid until the next call */
	size_t count;
};

enum minimiser_outcome {
	MINIMISER_TARGET,	  /* the target signature */
	MINIMISER_PASS,		  /* the victim (or, without one, the whole list) came through */
	MINIMISER_OTHER,	  /* failed in another way: no evidence, but counted */
	MINIMISER_NO_INFORMATION, /* timeout, set-up failure: no evidence */
};

struct minimiser_report {
	uint64_t plan_id;      /* the plan this settles; 0 for a list from elsewhere */
	const uint32_t *tests; /* the list as it was run */
	size_t count;
	size_t started; /* how many of them started before the run ended; 0 stands for
			 * all. Tests that never started played no part: the evidence
			 * is about those that did. */
	enum minimiser_outcome outcome;
};

/* Returns -EINVAL for an empty list, a victim outside it, or a confidence outside (0, 1). */
int minimiser_new(const struct minimiser_options *options, struct minimiser **ret);
void minimiser_free(struct minimiser *m);

/* The next list to run. 1: `ret` is set. 0: no more runs are wanted. Negative: -ENOMEM. */
int minimiser_next(struct minimiser *m, struct minimiser_plan *ret);

/* Takes a plan back: it will never be reported (its slot died). Unknown ids are ignored. */
void minimiser_forget(struct minimiser *m, uint64_t plan_id);

/* -EINVAL when the list names a test that does not exist, or one twice; nothing has
 * changed then. A list that is not in ascending order is taken for an order check. */
int minimiser_report(struct minimiser *m, const struct minimiser_report *report);

enum minimiser_verdict {
	MINIMISER_RUNNING,	 /* not done: the list is the best so far */
	MINIMISER_MINIMAL,	 /* every test of the list is needed */
	MINIMISER_NEVER_FAILED,	 /* the full list was clean too often */
	MINIMISER_COUNT_MATTERS, /* no small set: the number of tests matters, not which */
};

struct minimiser_state {
	enum minimiser_verdict verdict;
	enum minimiser_purpose phase;
	size_t left;	       /* tests not yet ruled out, without the victim */
	double all_needed;     /* probability that every one of these is needed */
	double rate;	       /* expected rate of the list as it is now */
	size_t trials;	       /* reports with evidence, failures of other kinds included */
	size_t censored;       /* of these: other signatures */
	size_t no_information; /* reports that told nothing; not in `trials` */
	size_t rollbacks;      /* look-alikes adopted and given back */
	double trials_to_go;   /* a rough expectation */
};

void minimiser_state(const struct minimiser *m, struct minimiser_state *ret);

/* Probability that a test is needed: 0 for one ruled out, 1 for the victim. */
double minimiser_needed(const struct minimiser *m, size_t test);

bool minimiser_done(const struct minimiser *m);

struct minimiser_without {
	uint32_t test;
	struct minimiser_count exact; /* the list found without this test */
	struct minimiser_count wider; /* these, and longer lists without it */
};

struct minimiser_result {
	enum minimiser_verdict verdict;
	enum minimiser_others others;
	double confidence; /* that all of the list is needed, and that it fails */
	size_t trials;
	const uint32_t *tests; /* in order, with the victim; valid until the next call */
	size_t count;
	struct minimiser_count full, minimal;
	const struct minimiser_without *without; /* one per test, the victim excepted */
	size_t n_without;
	struct minimiser_count others_runs;	   /* full list without one of the tests found */
	struct minimiser_count reversed, shuffled; /* the list found, in other orders */
};

/* Valid at any time: before the end it describes the shortest list seen to fail. */
int minimiser_result(struct minimiser *m, struct minimiser_result *ret);

#endif
