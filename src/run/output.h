#pragma once

#include "run/capture.h"
#include "run/job.h"

/*
 * The output of one trial: both streams captured, and every line looked at
 * once for breadcrumbs, test names and --fail-on, in the order of arrival.
 */
struct output {
	const struct trial_settings *settings;
	struct capture out, err, marks; /* the last is only read, never kept */
	struct wanted wanted;
	unsigned int flags;    /* enum output_flags */
	bool ends_seen;	       /* … that tell a test's end: starts are no milestones any more */
	bool tests_seen;       /* lines of a test framework: no others are milestones any more */
	struct trial_end *end; /* where findings go */
};

void output_init(struct output *o, const struct trial_settings *settings);
void output_deinit(struct output *o);

enum output_flags {
	OUTPUT_PAIRS = 1 << 0, /* which breadcrumb follows which */
	/* Which lines are moments of the run: breadcrumbs if the user said what they are, else what
	 * test frameworks print, else every line. */
	OUTPUT_MILESTONES = 1 << 1,
};

/* Starts a trial. `end` must live until output_finish(). */
void output_begin(struct output *o, struct trial_end *end, unsigned int flags);

/* Right after it: the tests that this trial is to run. `list` must live until output_finish(). */
void output_want(struct output *o, const struct wanted_list *list);

void output_finish(struct output *o);
