#pragma once

#include "model/bisected.h"
#include "run/runner.h"
#include "studies/bisect/commits.h"

/*
 * `bisect`: finds the commit that brought a failure, when every pass may be luck.
 *
 * Which commit to test next is the bisection's, having it built the workshop's, running it the
 * runner's. Here is what joins them: what a run says about its commit, and the way back
 * from a case to the same belief.
 */
struct bisect_view {
	const char *activity; /* what is being done to `commit`; NULL: trials run */
	const char *commit;
	const char *suspect; /* the likeliest commit; "" when that is none of them */
	double probability;
	uint64_t trials, failed, ran; /* in all; of these; in this call */
	double to_go;
	double seconds;
	uint64_t news_trial;
	const char *news_summary;
};

typedef void (*bisect_progress_fn)(void *ctx, const struct bisect_view *view);

struct bisect_request {
	struct series_identity identity;
	const struct trial_settings *settings;
	const struct commit_history *history;
	bool first_parent; /* how the history was read, for the report */
	char *const *program;
	const struct strv *slot_env;
	const char *build;     /* for sh, at each commit; NULL: nothing is built */
	const char *signature; /* NULL: any failure counts */
	enum observer observer;
	unsigned int jobs, trees;
	bool spare; /* nobody asked for slots: use one while trials are short */
	double confidence;
	bool careful; /* … even where the rate is known from these trials alone */
	double rate;  /* 0: unknown … */
	uint64_t seen_trials, seen_failed; /* … or seen before; 0: nothing */
	int64_t seen_series;		   /* in the case; 0: the user says so */
	uint64_t clean_limit; /* trials without any failure after which it is given up */
	bool fresh;
	bisect_progress_fn progress;
	void *progress_ctx;
};

struct bisect_seen {
	int64_t series; /* 0: nothing was seen */
	uint64_t trials, failed;
};

/* What the newest `repro` of the same program in the case says of its rate (seen.c). */
int bisect_seen(struct case_store *cs, char *const *program, const char *signature,
		struct bisect_seen *ret, struct err *err);

/* -ENOENT: `signature` is not in the case. -ENOEXEC: BAD itself cannot be tested. Each with a
 * sentence. `ret` is valid after 0 only. */
int bisect_run(struct case_store *cs, const struct bisect_request *request,
	       struct bisect_result *ret, struct err *err);
