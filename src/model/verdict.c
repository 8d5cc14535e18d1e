/*
 * Names of a verdict's parts, and their end.
 */
#include "model/verdict.h"

static const char *const class_names[VERDICT_CLASSES] = {
	[VERDICT_NOT_CAUGHT] = "not-caught",
	[VERDICT_NARROW_WRITE] = "narrow-write",
	[VERDICT_WIDE_WRITE] = "wide-write",
	[VERDICT_OVERFLOW] = "overflow",
	[VERDICT_UNDERFLOW] = "underflow",
	[VERDICT_WRITE_AFTER_FREE] = "write-after-free",
	[VERDICT_USE_AFTER_FREE] = "use-after-free",
	[VERDICT_DOUBLE_FREE] = "double-free",
	[VERDICT_INVALID_FREE] = "invalid-free",
	[VERDICT_DANGLING_HOLDER] = "dangling-holder",
	[VERDICT_INSTANCE_CONFLATION] = "instance-conflation",
	[VERDICT_STALE_CACHED_VALUE] = "stale-cached-value",
	[VERDICT_RACE] = "race",
	[VERDICT_MAPPING_TRUNCATED] = "mapping-truncated",
	[VERDICT_OUTSIDE_WRITER] = "outside-writer",
	[VERDICT_UNINITIALISED] = "uninitialised",
	[VERDICT_HOST_SUSPECTED] = "host-suspected",
	[VERDICT_LEAK_GROWTH] = "leak-growth",
	[VERDICT_NOT_MEMORY] = "not-memory",
	[VERDICT_OVER_READ] = "over-read",
	[VERDICT_NULL_POINTER] = "null-pointer",
	[VERDICT_DIVISION_BY_ZERO] = "division-by-zero",
	[VERDICT_STACK_EXHAUSTED] = "stack-exhausted",
	[VERDICT_ILLEGAL_INSTRUCTION] = "illegal-instruction",
	[VERDICT_OVER_RELEASE] = "over-release",
};

const char *verdict_class_name(enum verdict_class class)
{
	return class < VERDICT_CLASSES ? class_names[class] : "not-caught";
}

struct said_value said_class(enum verdict_class class)
{
	AUTO(mem_freep) char *id = mem_printf("class:%s", verdict_class_name(class));

	return said_word(id);
}

const char *ledger_status_name(enum ledger_status status)
{
	static const char *const names[LEDGER_STATUSES] = {
		[LEDGER_UNTESTED] = "untested",
		[LEDGER_OPEN] = "open",
		[LEDGER_EXCLUDED] = "excluded",
		[LEDGER_CONFIRMED] = "confirmed",
	};

	return status < LEDGER_STATUSES ? names[status] : "untested";
}

size_t verdict_count(const struct verdict *verdict, enum ledger_status status, size_t *ret_others)
{
	size_t count = 0, own = 0;

	VEC_FOREACH (&verdict->ledger, entry) {
		count += entry->status == status;
		own += entry->status == LEDGER_CONFIRMED;
	}
	*ret_others = verdict->ledger.count - own;
	return count;
}

void choice_list_deinit(struct choice_list *list)
{
	VEC_FOREACH (&list->list, choice) {
		mem_free(choice->question);
		mem_free(choice->experiment);
		said_deinit(&choice->why);
		said_deinit(&choice->brought);
	}
	VEC_DEINIT(&list->list);
}

void decision_list_deinit(struct decision_list *list)
{
	VEC_FOREACH (&list->list, decision) {
		mem_free(decision->stage);
		said_deinit(&decision->said);
	}
	VEC_DEINIT(&list->list);
}
