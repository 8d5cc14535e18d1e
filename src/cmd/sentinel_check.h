#pragma once

#include "cmd/trial_options.h"
#include "model/certificate.h"
#include "studies/sentinel/sentinel.h"

/*
 * Running a sentinel, for `sentinel run` and for the gate of `case resume`.
 */
struct sentinel_check_options {
	const char *dir;
	const char *root;     /* NULL: found from where the sentinel lies */
	const char *case_dir; /* NULL: one for this run, removed at its end */
	enum expectation expect;
	double confidence;
	bool careful, allow_others;
	bool yes; /* run it without a question, whoever made it */
};

struct sentinel_check {
	struct sentinel sentinel;
	struct trial_setup setup;
	struct case_store *cs; /* open for writing */
	char *temporary;       /* the case of this run alone; NULL when the user named one */
	struct certificate certificate;
};

/* On failure, too, sentinel_check_deinit() gives back what there is. */
int sentinel_check_run(struct sentinel_check *check, const struct sentinel_check_options *options,
		       struct err *err);
void sentinel_check_deinit(struct sentinel_check *check);
