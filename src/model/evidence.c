/*
 * Pieces of evidence: their names, and questions about them.
 */
#include "model/evidence.h"

static const char *const kind_names[EVIDENCE_KINDS] = {
	[EVIDENCE_CRASH] = "crash",
	[EVIDENCE_WRITE] = "write",
	[EVIDENCE_WATCH] = "watch",
	[EVIDENCE_OUTSIDE] = "outside-change",
	[EVIDENCE_CONFLATION] = "conflation",
	[EVIDENCE_FREED_USE] = "freed-use",
	[EVIDENCE_HOLDER] = "holder",
	[EVIDENCE_BAD_FREE] = "bad-free",
	[EVIDENCE_CANARY] = "canary",
	[EVIDENCE_MAPPING] = "mapping-cut",
	[EVIDENCE_GROWTH] = "growth",
	[EVIDENCE_RACE] = "race",
	[EVIDENCE_HOST] = "host-signs",
	[EVIDENCE_FAILURE] = "failure",
	[EVIDENCE_HOP] = "hop",
	[EVIDENCE_SIGHTING] = "sighting",
	[EVIDENCE_ODDS] = "odds",
	[EVIDENCE_EXPERIMENT] = "experiment",
	[EVIDENCE_OVER_READ] = "over-read",
	[EVIDENCE_FAULT_VALUE] = "fault-value",
	[EVIDENCE_ACCOUNT] = "reference-account",
	[EVIDENCE_REPORTED] = "reported",
};

const char *evidence_kind_name(enum evidence_kind kind)
{
	return kind < EVIDENCE_KINDS ? kind_names[kind] : "unknown";
}

const char *store_fit_name(enum store_fit fit)
{
	static const char *const names[FIT_KINDS] = {
		[FIT_UNKNOWN] = "unknown",
		[FIT_NARROW] = "narrow",
		[FIT_EXACT] = "exact",
		[FIT_WIDE] = "wide",
	};

	return fit < FIT_KINDS ? names[fit] : "unknown";
}

enum store_fit store_fit_of(uint64_t start, uint64_t len, uint64_t field, uint64_t field_len)
{
	if (len == 0 || field_len == 0)
		return FIT_UNKNOWN;
	if (start == field && len == field_len)
		return FIT_EXACT;
	/* Without sums, which hostile values could overflow. */
	if (start < field || start - field >= field_len || len > field_len - (start - field))
		return FIT_WIDE;
	return FIT_NARROW;
}

void evidence_add_experiment(struct evidence_list *list, const struct experiment_made *made)
{
	struct evidence e = evidence_new(EVIDENCE_EXPERIMENT, 0, false);

	*e.experiment = *made;
	VEC_PUSH(&list->list, e);
}

void evidence_list_deinit(struct evidence_list *list)
{
	VEC_FREE(&list->list, evidence, evidence_deinit(evidence));
}

void evidence_drop(struct evidence_list *list,
		   bool (*is)(const struct evidence *evidence, const void *ctx), const void *ctx)
{
	size_t kept = 0;

	VEC_FOREACH (&list->list, e)
		if (is(e, ctx))
			evidence_deinit(e);
		else
			list->list.items[kept++] = *e;
	list->list.count = kept;
}

bool evidence_fenced(const struct evidence *evidence)
{
	if (evidence->kind == EVIDENCE_CANARY)
		return evidence->canary->writer.count > 0;
	return (evidence->kind == EVIDENCE_FREED_USE || evidence->kind == EVIDENCE_OVER_READ) &&
	       evidence->freed_use->fenced;
}

bool evidence_by_somebody(const struct evidence *evidence)
{
	const struct freed_use *use =
		evidence->kind == EVIDENCE_FREED_USE ? evidence->freed_use : NULL;

	return use && evidence->failing && use->poison && use->user.count == 0 && use->block &&
	       use->block->key;
}

bool evidence_of_crash(const struct evidence *evidence)
{
	return evidence->kind == EVIDENCE_CRASH || evidence->kind == EVIDENCE_MAPPING ||
	       evidence_observed(evidence);
}

bool evidence_observed(const struct evidence *evidence)
{
	return !evidence->failing && said_anything(&evidence->note) &&
	       (evidence->kind == EVIDENCE_CRASH || evidence->kind == EVIDENCE_FAULT_VALUE);
}

bool evidence_to_judge(const struct evidence_list *list)
{
	return VEC_ANY(&list->list, e,
		       e->kind != EVIDENCE_SIGHTING && e->kind != EVIDENCE_EXPERIMENT);
}

const struct evidence *evidence_find(const struct evidence_list *list, uint64_t id)
{
	return VEC_FIND(&list->list, evidence, id != 0 && evidence->id == id);
}
