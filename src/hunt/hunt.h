#pragma once

#include "run/framework/framework.h"
#include "studies/series/minimize.h"
#include "studies/series/repro.h"

/*
 * `hunt`: from a command that fails now and then to a verdict, question by question.
 *
 * Each question has its experiments (experiment.h): each says when it applies and what it will
 * take. Every decision is a line of the case with its reason and its figures (case_add_decision()),
 * every experiment that was chosen another with what it was expected to take, took and brought
 * (case_add_choice()).
 *
 * A hunt that was ended, however, goes on by being run again: it asks the same questions, those
 * that were answered find their trials in the case and decide the same in no time, the experiment
 * that was running takes up its series or begins anew.
 */

/* How trials are run: looked at from outside and for crashes, or closely. */
struct hunt_look {
	struct trial_settings *settings; /* what a stage decides is put in here for the later ones;
					  * has readings, the same in all looks */
	struct series_identity identity;
	enum observer observer;
};

/* What the user is shown while it runs. Any of these may be NULL. */
struct hunt_show {
	/* A question is asked: the `number`-th of `count`. */
	void (*begin)(void *ctx, unsigned int number, unsigned int count, const char *question);
	/* Something was decided. */
	void (*say)(void *ctx, const char *stage, const struct said *said);
	/* A verdict will probably take so many more trials, of which so many fail, and seconds. */
	void (*expect)(void *ctx, double trials, double failures, double seconds);
	progress_fn progress;
	minimize_progress_fn minimize_progress;
	void *ctx;
};

struct hunt_request {
	struct hunt_look plain, close;
	char *const *program;
	const char *program_path;
	const struct strv *slot_env;
	unsigned int jobs;
	bool jobs_free; /* nobody said how many: more than the cores where trials mostly wait */
	const char *signature;		   /* NULL: the failure that comes and goes most often */
	const struct framework *framework; /* NULL: no tests to choose from */
	const char *no_framework;	   /* why there are none: a sentence; NULL */
	struct series_identity
		minimize;	  /* of that search, without the list (minimize_identify()) */
	const char *sentinel_dir; /* NULL: in the case */
	const struct sentinel_words *sentinel_words;
	uint64_t seed;
	double budget_s;	  /* 0: none */
	uint64_t budget_trials;	  /* 0: none */
	uint64_t budget_failures; /* failing trials; 0: none */
	double hangs_s; /* a trial that takes so long was ended for the budget's sake; 0: as the
			 * user said
			 */
	bool fresh;
	struct hunt_show show;
};

struct hunt_result {
	bool interrupted;
	bool failed; /* it was seen to fail, or its memory to be damaged */
	bool blind;  /* no trial came to its end: nothing is known */
	bool spent;  /* the budget ended a stage */
	double seconds;
};

/* What was found is in the case: evidence, decisions, a verdict, a sentinel. -ENOENT when the
 * signature that was asked for did not show. */
int hunt_run(struct case_store *cs, const struct hunt_request *request, struct hunt_result *ret,
	     struct err *err);
