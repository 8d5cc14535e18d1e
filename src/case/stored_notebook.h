#pragma once

#include "case/case.h"
#include "model/notebook.h"

/*
 * What people write into a case. Nothing is ever lost: a hypothesis keeps every change of
 * its status, a workaround that is gone keeps its row, each parking stays with its end.
 */

/* All of it. */
int case_notebook(struct case_store *cs, struct notebook *ret, struct err *err);

int case_add_note(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err);

int case_add_hypothesis(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err);

/* -ENOENT when there is no such hypothesis, or the case does not have what was observed. `made_ms`
 * of the change is set here. */
int case_change_hypothesis(struct case_store *cs, uint64_t id,
			   const struct hypothesis_change *change, struct err *err);

int case_add_workaround(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err);

/* -ENOENT when there is none in place with that number. */
int case_remove_workaround(struct case_store *cs, uint64_t id, struct err *err);

/* -EALREADY when it is parked. Of `parking` because, until and world are used. */
int case_park(struct case_store *cs, const struct parking *parking, struct err *err);

/* -ENOENT when it is not parked. */
int case_resume(struct case_store *cs, const char *gate, struct err *err);

/* Of `attempt` text, world and diff are used (attempted.c). */
int case_add_attempt(struct case_store *cs, const struct attempt *attempt, uint64_t *ret_id,
		     struct err *err);

int case_add_step(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err);

/* -ENOENT when there is none to do with that number. */
int case_end_step(struct case_store *cs, uint64_t id, struct err *err);

/* Replaces what was known of that other case. */
int case_add_relation(struct case_store *cs, const char *dir, const struct strv *common,
		      struct err *err);

/* Unless the last row says the same. */
int case_add_surroundings(struct case_store *cs, const struct world *world, struct err *err);

/* Trials after number `after` up to `last`, with the same command, build and outcome, counted. */
struct later_row {
	const char *command;
	const char *signatures; /* as in tally_row */
	bool cut_short, same_build;
	uint64_t count, trial;
};

typedef void (*later_fn)(void *ctx, const struct later_row *row);
int case_trials_after(struct case_store *cs, uint64_t after, uint64_t last, later_fn fn, void *ctx,
		      struct err *err);

int case_add_sentinel(struct case_store *cs, const struct sentinel_note *sentinel, struct err *err);
