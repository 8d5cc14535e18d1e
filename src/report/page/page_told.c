#include "report/page/page_told.h"

static bool shows_a_block(const struct evidence *e)
{
	return e->kind == EVIDENCE_WRITE || e->kind == EVIDENCE_FREED_USE ||
	       e->kind == EVIDENCE_BAD_FREE || e->kind == EVIDENCE_CANARY ||
	       e->kind == EVIDENCE_OVER_READ || e->kind == EVIDENCE_RACE ||
	       e->kind == EVIDENCE_CONFLATION || e->kind == EVIDENCE_REPORTED;
}

uint64_t told_trial(const struct investigation *inv)
{
	const struct verdict *v = &inv->verdict;
	const struct evidence *e = evidence_find(&inv->evidence, v->holder);

	if (e && e->trial > 0)
		return e->trial;
	for (size_t i = 0; i < v->evidence.count; i++) {
		e = evidence_find(&inv->evidence, v->evidence.items[i]);
		if (e && e->trial > 0 && shows_a_block(e))
			return e->trial;
	}
	e = evidence_find(&inv->evidence, v->crash);
	return e ? e->trial : 0;
}

const struct evidence *told_piece(const struct investigation *inv, enum evidence_kind kind)
{
	for (size_t i = 0; i < inv->verdict.evidence.count; i++) {
		const struct evidence *e =
			evidence_find(&inv->evidence, inv->verdict.evidence.items[i]);

		if (e && e->kind == kind)
			return e;
	}
	VEC_FOREACH (&inv->evidence.list, e)
		if (e->kind == kind)
			return e;
	return NULL;
}

const struct holder_seen *told_holder(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.holder);

	return e && e->kind == EVIDENCE_HOLDER ? e->holder : NULL;
}

bool same_block(const struct block_life *a, const struct block_life *b)
{
	return a->id != 0 && a->id == b->id && a->start == b->start;
}
