#pragma once

#include "model/evidence.h"
#include "studies/series/target.h"

/*
 * Other failures of the same program: what they show is not about the one that is hunted.
 */
struct bystanders {
	VEC(struct signature) list;
	/* Ids of those of every run, beside the one that is hunted. What such a trial shows may be
	 * about both; that it failed says nothing. */
	struct strv always;
};

void bystanders_deinit(struct bystanders *bystanders);

/* Notes it unless it is the target's own. */
void bystanders_note(struct bystanders *bystanders, const struct target *target,
		     const struct signature *signature);

/* All that series of the command as it is have met. */
int bystanders_read(struct bystanders *bystanders, const struct target *target,
		    struct case_store *cs, struct err *err);

/* The same of a failure that every run shows. */
void bystanders_note_always(struct bystanders *bystanders, const struct target *target,
			    const struct signature *signature);

bool bystanders_have(const struct bystanders *bystanders, const struct signature *signature);

/* Takes evidence out of the list that is of trials of this series which failed as bystanders do and
 * not as the target or its kin do. */
int bystanders_drop(const struct bystanders *bystanders, const struct target *target,
		    struct case_store *cs, const struct series_identity *identity,
		    struct evidence_list *list, struct err *err);

/* Takes trials of one arm that showed nothing but bystanders and failures of every run out of what
 * an experiment's failing trials tell: they did not fail as the target does; and those of the
 * latter alone out of its rate. */
int bystanders_discount(const struct bystanders *bystanders, const struct target *target,
			struct case_store *cs, const struct series_identity *identity,
			unsigned int arm, struct rate *rate, struct experiment_made *made,
			struct err *err);
