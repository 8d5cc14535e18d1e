/*
 * What the evidence in a case says about the cause.
 */
#include "engine/investigation/investigation.h"

#include <errno.h>

#include "judge/judge.h"

int judgement_read(struct case_store *cs, struct evidence_list *evidence, struct verdict *ret,
		   bool *ret_judged, struct err *err)
{
	bool outdated = false;
	int r = case_evidence(cs, evidence, err);

	*ret_judged = false;
	if (r == 0)
		r = case_verdict(cs, ret, err);
	if (r == 0)
		r = case_verdict_outdated(cs, &outdated, err);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_judged = r == 0;
	/* What was seen after the last verdict counts, too. */
	if (!evidence_to_judge(evidence) || (r == 0 && !outdated))
		return 0;
	verdict_deinit(ret);
	*ret = (struct verdict){ 0 };
	judge_evidence(evidence, ret);
	*ret_judged = true;
	return 0;
}
