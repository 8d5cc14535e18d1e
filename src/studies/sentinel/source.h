#pragma once

#include "case/case.h"
#include "run/settings.h"
#include "studies/series/target.h"

/*
 * What a sentinel is made from: a series of a case, the failure that is chased in it, and how
 * often that came.
 */
struct sentinel_source {
	struct series_id series;
	struct series_settings settings;
	struct minimal_list minimal; /* .series 0 when none was found */
	struct target target;
	uint64_t failed, trials; /* trials that say something about the target */
	struct strv known;	 /* ids of the failures that every run showed */
};

/*
 * `series` 0: the newest list that minimize found, else the newest series with a failure that
 * comes and goes; those that stop at failures, which chase and watch do, come last. `signature`
 * NULL: the crash that is most frequent there. -ENOENT, with a sentence, when there is none.
 */
int sentinel_source_init(struct sentinel_source *source, struct case_store *cs,
			 struct series_id series, const char *signature, struct err *err);
void sentinel_source_deinit(struct sentinel_source *source);

/* What one trial says about the target. */
enum target_outcome {
	OUTCOME_SHOWN,
	OUTCOME_CLEAN,
	OUTCOME_OTHER, /* it failed in a way that is not known, before or instead: it says nothing
			*/
};

int target_outcome(const struct target *target, struct case_store *cs, const struct strv *known,
		   const char *signatures, bool cut_short, enum target_outcome *ret,
		   struct err *err);
