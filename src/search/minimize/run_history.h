/*
 * The history: every run that was reported, in order. It is the only truth the
 * minimiser has; all else is worked out from it and can be worked out again.
 */
#ifndef REDHAND_SEARCH_MINIMIZE_RUN_HISTORY_H
#define REDHAND_SEARCH_MINIMIZE_RUN_HISTORY_H

#include "search/minimize/testset.h"

enum run_kind {
	RUN_PASS,
	RUN_TARGET,
	RUN_DISOWNED, /* showed the target, but later silence says it was a look-alike */
};

struct history_run {
	testset_word *set; /* the tests that started */
	uint32_t size;	   /* how many of them */
	enum run_kind kind;
};

struct history {
	size_t words;
	struct history_run *runs;
	size_t count, room;
};

struct run_count {
	uint32_t runs, failed;
};

void history_init(struct history *history, size_t words);
void history_deinit(struct history *history);

/* Copies `set`. Returns 0 or -ENOMEM. */
int history_add(struct history *history, const testset_word *set, enum run_kind kind);

/* Runs of exactly this set; a disowned run counts as failed, for it did fail. */
struct run_count history_exact(const struct history *history, const testset_word *set);

/* Runs that lacked `test` and held the rest of `set`, whatever else they held:
 * had `test` not been needed, each could have failed. */
struct run_count history_lacking(const struct history *history, const testset_word *set,
				 size_t test);

#endif
