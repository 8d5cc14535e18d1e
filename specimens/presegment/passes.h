/*
 * The pre-segmenter: passes that simplify a fusion before it is cut into kernels.
 */
#ifndef PRESEGMENT_PASSES_H
#define PRESEGMENT_PASSES_H

#include "ir.h"
#include "plan.h"

/*
 * Runs all passes over the fusion and notes in `plan` what they did. With a `cached` plan (may be
 * NULL) the edits it names are tried first; those that do not fit are passed over, and what it does
 * not name is still searched for, so that the outcome is the same. After each pass the fusion is
 * run on sample data and compared with what it computed before.
 */
int presegmenter_run(struct fusion *f, const struct plan_view *cached, struct plan *plan,
		     struct diag *diag);

/* The names of the passes in their order; ends with NULL. */
const char *presegmenter_pass_name(int i);

#endif
