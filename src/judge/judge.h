#pragma once

#include "model/evidence.h"
#include "model/verdict.h"

/*
 * From evidence to a verdict.
 *
 * One rule per class (rules.h): the evidence it needs, what it excludes, its wording. No class is
 * stated without its evidence. Where two fit, the other one is an alternative with what would tell
 * them apart; where none does, the verdict is VERDICT_NOT_CAUGHT, with what is still open and
 * the next cheapest experiment. Built-in hypotheses get their status from the same evidence.
 *
 * `list` must outlive the call only; `ret` owns what it holds.
 */
void judge_evidence(const struct evidence_list *list, struct verdict *ret);

/* Could an experiment of this kind tell something about an explanation that is open or not tested?
 */
bool judge_would_tell(const struct verdict *verdict, enum experiment_kind kind);
