#pragma once

#include "model/certificate.h"
#include "studies/sentinel/sentinel.h"
#include "studies/series/repro.h"

/*
 * Running a sentinel: as many trials as the wanted confidence takes, fewer when the answer is
 * there before, and what they prove.
 */
struct check_request {
	const struct sentinel *sentinel; /* settled: real paths */
	struct series_identity identity; /* of its own: trials of another day prove nothing now */
	const struct trial_settings *settings;
	enum observer observer;
	const struct strv *env;
	enum expectation expect;
	double confidence;
	bool careful, allow_others;
	progress_fn progress;
	void *progress_ctx;
};

/* `ret` is valid, and to be given back with certificate_deinit(), after 0 only. */
int check_run(struct case_store *cs, const struct check_request *request, struct certificate *ret,
	      struct err *err);
