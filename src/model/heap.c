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
static const struct model_fields sighting_fields = { sizeof(struct heap_sighting),
						     &(const struct model_field){ FIELD_END } };

static MODEL_FIELDS(finding_fields, heap_finding,
		    FIELD(heap_finding, program, key, context, rival, through, instruction,
			  allocated, freed, seen_at, when.check, when.after, when.before,
			  when.tests),
		    FIELD_STRUCT(home_fields, heap_finding, from),
		    FIELD_LIST(sighting_fields, heap_finding, seen));

static MODEL_FIELDS(holder_fields, heap_holder, FIELD(heap_holder, kind, name, module, key, stack),
		    FIELD_NUMBERS(heap_holder, used_in.list, there_in.list));

static MODEL_FIELDS(dangling_fields, heap_dangling,
		    FIELD(heap_dangling, context, key, allocated, freed),
		    FIELD_LIST(holder_fields, heap_dangling, holders));

static MODEL_FIELDS(suspect_fields, heap_suspect, FIELD(heap_suspect, context, stack));

static MODEL_FIELDS(report_fields, heap_report, FIELD(heap_report, crash_place),
		    FIELD_STRUCT(home_fields, heap_report, fence.nowhere),
		    FIELD(heap_report, sentence), FIELD_LIST(finding_fields, heap_report, findings),
		    FIELD_LIST(dangling_fields, heap_report, dangling),
		    FIELD_LIST(suspect_fields, heap_report, suspects), FIELD(heap_report, notes));

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
	evidence_list_deinit(&report->crashes);
	fields_free(&report_fields, report); /* which leaves it zeroed */
}
