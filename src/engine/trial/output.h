#pragma once

#include "engine/trial/capture.h"
#include "engine/trial/job.h"

/*
 * The output of one trial: both streams captured, and every line looked at
 * once for breadcrumbs, test names and --fail-on, in the order of arrival.
 */
struct output {
	const struct trial_settings *settings;
	struct capture out, err, marks; /* the last is only read, never kept */
	struct wanted wanted;
	bool learn;
	struct trial_end *end; /* where findings go */
};

void output_init(struct output *o, const struct trial_settings *settings);
void output_deinit(struct output *o);

/* Starts a trial. `end` must live until output_finish(). */
void output_begin(struct output *o, struct trial_end *end, bool learn);

/* Right after it: the tests that this trial is to run. `list` must live until output_finish(). */
void output_want(struct output *o, const struct wanted_list *list);

void output_finish(struct output *o);
