#pragma once

#include "case/case.h"
#include "model/dots.h"
#include "model/investigation.h"
#include "run/stored.h"

/*
 * Reads all that a case says about its failure. Runs nothing. A case with trials only gives
 * rates, crashes and the shortest list; evidence is judged anew, with the same result.
 */
/* `readings` are those that are open already; NULL: none. */
int investigation_read(struct case_store *cs, struct readings *readings, struct investigation *ret,
		       struct err *err);

/* All evidence, and the verdict on it. `*ret_judged` is false when nobody has looked for the cause
 * (judgement.c). */
int judgement_read(struct case_store *cs, struct evidence_list *evidence, struct verdict *ret,
		   bool *ret_judged, struct err *err);

/* The last verdict as it was stored, and judged again from the evidence: are they the same, word
 * for word? -ENOENT when there is none. */
int judgement_again(struct case_store *cs, bool *ret_same, struct verdict *ret_stored,
		    struct verdict *ret_again, struct err *err);

/* Every trial of it, to be drawn (dots_read.c). */
int dots_read(struct case_store *cs, const struct investigation *inv, struct trial_dots *ret,
	      struct err *err);

/* Adds the names of the fields of the block that it is about, where the program is at hand. */
void layout_read(struct investigation *inv);

/* Adds the user's hypotheses, notes and workarounds (people.c). */
int people_read(struct case_store *cs, struct investigation *inv, struct err *err);

/* The shortest list that brings the failure out, from the runs of a `minimize` (trigger.c). */
int trigger_read(struct case_store *cs, struct series_id series, struct trigger_set *ret,
		 struct err *err);
