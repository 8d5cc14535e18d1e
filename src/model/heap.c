/*
 * What heap findings are made of, and their names.
 */
#include "model/heap.h"

#include <string.h>

#include "model/archive.h"

const char *heap_kind_name(enum heap_kind kind)
{
	static const char *const names[HEAP_KINDS] = {
		[HEAP_OVERFLOW] = "overflow",
		[HEAP_UNDERFLOW] = "underflow",
		[HEAP_WRITE_AFTER_FREE] = "write-after-free",
		[HEAP_DOUBLE_FREE] = "double-free",
		[HEAP_INTERIOR_FREE] = "interior-free",
		[HEAP_MISMATCHED_FREE] = "mismatched-free",
		[HEAP_INVALID_FREE] = "invalid-free",
		[HEAP_USE_AFTER_FREE] = "use-after-free",
		[HEAP_OVER_READ] = "over-read",
	};

	return names[kind];
}

bool heap_dangling_held(const struct heap_dangling *dangling)
{
	return VEC_ANY(&dangling->holders, holder,
		       strcmp(holder->kind, "stack") != 0 && strcmp(holder->kind, "register") != 0);
}

/* Only what they own: none of it is stored as it is. */
/* clang-format off */
static const struct model_field plain_list[] = { { 0 } };
static const struct model_fields sighting_fields = FIELDS(heap_sighting, plain_list);

static const struct model_field finding_list[] = {
	FIELD(TEXT, heap_finding, program), FIELD(TEXT, heap_finding, key),
	FIELD(TEXT, heap_finding, context), FIELD(TEXT, heap_finding, rival),
	FIELD(TEXT, heap_finding, through), FIELD(TEXT, heap_finding, instruction),
	FIELD(STACK, heap_finding, allocated), FIELD(STACK, heap_finding, freed),
	FIELD(STACK, heap_finding, seen_at), FIELD(TEXT, heap_finding, when.check),
	FIELD(TEXT, heap_finding, when.after), FIELD(TEXT, heap_finding, when.before),
	FIELD(STRV, heap_finding, when.tests), FIELD_OF(STRUCT, heap_finding, from, home_fields),
	FIELD_OF(LIST, heap_finding, seen, sighting_fields), { 0 },
};
static const struct model_fields finding_fields = FIELDS(heap_finding, finding_list);

static const struct model_field holder_list[] = {
	FIELD(TEXT, heap_holder, kind), FIELD(TEXT, heap_holder, name), FIELD(TEXT, heap_holder, module),
	FIELD(TEXT, heap_holder, key), FIELD(STACK, heap_holder, stack),
	FIELD(NUMBERS, heap_holder, used_in.list), FIELD(NUMBERS, heap_holder, there_in.list), { 0 },
};
static const struct model_fields holder_fields = FIELDS(heap_holder, holder_list);

static const struct model_field dangling_list[] = {
	FIELD(TEXT, heap_dangling, context), FIELD(TEXT, heap_dangling, key),
	FIELD(STACK, heap_dangling, allocated), FIELD(STACK, heap_dangling, freed),
	FIELD_OF(LIST, heap_dangling, holders, holder_fields), { 0 },
};
static const struct model_fields dangling_fields = FIELDS(heap_dangling, dangling_list);

static const struct model_field suspect_list[] = {
	FIELD(TEXT, heap_suspect, context), FIELD(STACK, heap_suspect, stack), { 0 },
};
static const struct model_fields suspect_fields = FIELDS(heap_suspect, suspect_list);

static const struct model_field report_list[] = {
	FIELD(TEXT, heap_report, crash_place), FIELD_OF(STRUCT, heap_report, fence.nowhere, home_fields),
	FIELD(SAID, heap_report, sentence),
	FIELD_OF(LIST, heap_report, findings, finding_fields),
	FIELD_OF(LIST, heap_report, dangling, dangling_fields),
	FIELD_OF(LIST, heap_report, suspects, suspect_fields), FIELD(SAID_LIST, heap_report, notes), { 0 },
};
static const struct model_fields report_fields = FIELDS(heap_report, report_list);
/* clang-format on */

void heap_finding_deinit(struct heap_finding *finding)
{
	fields_free(&finding_fields, finding);
}

void heap_finding_copy(struct heap_finding *to, const struct heap_finding *from)
{
	fields_copy(&finding_fields, to, from);
}

void heap_holder_deinit(struct heap_holder *holder)
{
	fields_free(&holder_fields, holder);
}

void heap_dangling_deinit(struct heap_dangling *dangling)
{
	fields_free(&dangling_fields, dangling);
}

void heap_report_deinit(struct heap_report *report)
{
	fields_free(&report_fields, report);
	evidence_list_deinit(&report->crashes);
}
