#pragma once

#include "model/minimal.h"
#include "run/framework/framework.h"
#include "run/runner.h"
#include "search/minimize/minimiser.h"
#include "studies/series/target.h"

/*
 * `minimize`: finds the shortest list that still shows the target, by running many lists.
 *
 * What to run next is the minimiser's (search/minimize), how to run it the framework's, running
 * it the runner's. Here is what joins them: which failure is the target, what a run says
 * about its list, and the way back from a case to the same belief.
 */
struct minimize_view {
	enum minimiser_purpose phase;
	uint64_t trials, ran; /* in all; in this call */
	uint64_t failed;      /* of the full list: before the search */
	size_t left, total;   /* items not ruled out, the victim not counted */
	double to_go;	      /* trials expected; 0 when that cannot be said */
	double seconds;
	uint64_t news_trial;
	const char *news_summary;
};

/* What besides the trials' own settings makes it the same search: the list and what was asked. */
struct minimize_question {
	double confidence;
	const char *victim, *signature, *seed; /* as the user said it; NULL */
};
void minimize_identify(const struct framework *framework, const struct minimize_question *question,
		       struct strbuf *identity);

typedef void (*minimize_progress_fn)(void *ctx, const struct minimize_view *view);

struct minimize_request {
	struct series_identity identity;
	const struct trial_settings *settings; /* with `tests` set to the framework's items */
	const struct framework *framework;
	const struct strv *slot_env;
	enum observer observer;
	unsigned int jobs;
	double confidence;
	const char *victim;	    /* NULL: the test that the target names */
	const char *signature;	    /* NULL: the crash that the full list shows most often */
	const struct target *among; /* … of those that are this failure; NULL: any */
	uint64_t baseline;	    /* clean runs of the full list after which it is given up */
	uint64_t seed;
	bool fresh;
	minimize_progress_fn progress;
	void *progress_ctx;
};

/*
 * -ENOENT: `victim` is not in the list, or `signature` not in the case. -ENODATA: the full list
 * never failed. Each with a sentence. `ret` is valid after 0 only.
 */
int minimize_run(struct case_store *cs, const struct minimize_request *request,
		 struct minimize_result *ret, struct err *err);
