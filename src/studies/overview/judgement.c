/*
 * What the evidence in a case says about the cause.
 */
#include "studies/overview/case_investigation.h"

#include <errno.h>
#include <string.h>

#include "judge/judge.h"

int judgement_again(struct case_store *cs, bool *ret_same, struct verdict *ret_stored,
		    struct verdict *ret_again, struct err *err)
{
	AUTO(evidence_list_deinit) struct evidence_list evidence = { 0 };
	AUTO(strbuf_deinit) struct strbuf stored = { 0 };
	AUTO(strbuf_deinit) struct strbuf again = { 0 };
	int r = case_verdict(cs, ret_stored, err);

	if (r == 0)
		r = case_evidence(cs, &evidence, err);
	if (r < 0)
		return r;
	judge_evidence(&evidence, ret_again);
	verdict_pack(ret_stored, &stored);
	verdict_pack(ret_again, &again);
	*ret_same = stored.len == again.len && memcmp(stored.data, again.data, again.len) == 0;
	return 0;
}

int judgement_read(struct case_store *cs, struct evidence_list *evidence, struct verdict *ret,
		   bool *ret_judged, struct err *err)
{
	int r = case_evidence(cs, evidence, err);

	*ret_judged = false;
	if (r < 0)
		return r;
	/* What was stored of a verdict is for people who look into the case, and for cases of an
	 * older redhand that had no evidence: the evidence says the same again. */
	if (evidence_to_judge(evidence)) {
		judge_evidence(evidence, ret);
		*ret_judged = true;
		return 0;
	}
	r = case_verdict(cs, ret, err);
	*ret_judged = r == 0;
	return r == -ENOENT ? 0 : r;
}
