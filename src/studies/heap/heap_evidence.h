#pragma once

#include "case/case.h"
#include "model/evidence.h"
#include "model/heap.h"

/*
 * What `heap` has found, as evidence: damage, frees that should not be, crashes over freed blocks,
 * pointers that outlived their block and were used.
 *
 * Appends one piece for each finding and trial that saw it. A piece is `failing` when its trial
 * failed; and, where not one trial under the heap observer failed, when it shows damage: guards and
 * quarantine keep the harm away from whoever would have died of it. Of trials other than the
 * finding's example, a piece has the place and the context, not the bytes.
 *
 * Left out is damage that only ran on from another block.
 *
 * Last come crashes that say by themselves what is wrong (evidence_of_crash()), taken out of the
 * report. The signatures of the trials, the counts of the list and all other crashes are the
 * caller's to add.
 */
void heap_evidence(struct heap_report *report, struct evidence_list *ret);

/* What was tried, whatever it found: EXPERIMENT_GUARDS, or one of those that leave what stands in
 * blocks to chance. */
void heap_experiment(const struct heap_report *report, enum experiment_kind kind,
		     struct experiment_made *ret);

/* The same of its trials with fences. */
void heap_fence_experiment(const struct heap_report *report, struct experiment_made *ret);

/* Stores it in the case, with the record of the experiment, and tells each finding its number. */
int heap_store_evidence(struct case_store *cs, struct heap_report *report, struct err *err);
