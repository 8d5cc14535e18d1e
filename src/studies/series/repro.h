#pragma once

#include "model/summary.h"
#include "run/runner.h"

/*
 * `repro`: run one command again and again until enough is known about how it fails.
 */
struct series_progress_view {
	uint64_t done, wanted; /* wanted 0: open end */
	struct rate rate;
	uint64_t ran; /* of `done`, in this call */
	double seconds;
	bool at_most;	     /* `wanted` is where it gives up: it ends when enough is seen */
	uint64_t news_trial; /* the latest trial that failed in a new way; 0 = none */
	const char *news_summary;
	const char *what; /* NULL, or what else to show, such as a sequential test's state */
};

typedef void (*progress_fn)(void *ctx, const struct series_progress_view *view);

/* What every study is told that runs a series of trials. */
struct series_request {
	struct series_identity identity;
	const struct trial_settings *settings;
	enum observer observer;
	char *const *program;
	const struct strv *slot_env; /* NAME=VALUE with {slot} and {trial} */
	unsigned int jobs;
	bool fresh; /* forget earlier trials; heap, growth and watch always do */
	progress_fn progress;
	void *progress_ctx;
};

struct repro_request {
	struct series_request series;
	uint64_t trials;       /* 0: until one of the next two, at most REPRO_OPEN_END */
	uint64_t failures;     /* 0: do not stop for it */
	const char *signature; /* … of this kind, by its id; NULL: of any */
	/* With failing trials: none is started where those that run will probably do, and the first
	 * of all runs alone, if it is short. */
	bool sparing;
	bool intermittent; /* … that come and go: what every run shows is none of them */
	double precision;  /* 0: do not stop for it */
};

/* Where a run without -n ends at last. */
#define REPRO_OPEN_END 100000

int repro_run(struct case_store *cs, const struct repro_request *request, struct repro_result *ret,
	      struct err *err);
void repro_result_deinit(struct repro_result *result);

struct series_start {
	uint64_t seed;
	uint64_t earlier;     /* trials that are there already */
	bool program_changed; /* … were, of another build of the program */
};

/* Finds the series, clears it when asked to, and reads what is there into the runner. */
int series_resume(struct case_store *cs, const struct series_identity *identity, bool fresh,
		  uint64_t seed, struct runner *runner, struct series_start *ret, struct err *err);

/* Fills in argv and env with {slot} and {trial} replaced. */
void series_fill_job(char *const *program, const struct strv *env, struct trial_job *job);
