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

static const char *const class_words[VERDICT_CLASSES] = {
	[VERDICT_NOT_CAUGHT] = "not caught yet",
	[VERDICT_NARROW_WRITE] = "a bad value written into the field itself",
	[VERDICT_WIDE_WRITE] = "a wide write that clips the field",
	[VERDICT_OVERFLOW] = "a write behind the end of another block",
	[VERDICT_UNDERFLOW] = "a write before the start of another block",
	[VERDICT_WRITE_AFTER_FREE] = "a write through a pointer to a freed block",
	[VERDICT_USE_AFTER_FREE] = "a freed block is used",
	[VERDICT_DOUBLE_FREE] = "a block is freed twice",
	[VERDICT_INVALID_FREE] = "a wrong pointer is freed",
	[VERDICT_DANGLING_HOLDER] = "a pointer that outlived its block",
	[VERDICT_INSTANCE_CONFLATION] = "two objects at one address, no write happened",
	[VERDICT_STALE_CACHED_VALUE] = "a stale or torn value copied from a cache",
	[VERDICT_RACE] = "two threads write the field at once",
	[VERDICT_MAPPING_TRUNCATED] = "a mapped file was made shorter",
	[VERDICT_OUTSIDE_WRITER] = "changed by nobody in the program",
	[VERDICT_UNINITIALISED] = "a field that was never written is used",
	[VERDICT_HOST_SUSPECTED] = "the machine itself is suspected",
	[VERDICT_LEAK_GROWTH] = "blocks that stay, test after test",
	[VERDICT_NOT_MEMORY] = "no sign of a memory error",
	[VERDICT_OVER_READ] = "a read behind the end of a block, or before its start",
	[VERDICT_NULL_POINTER] = "a NULL pointer is used",
	[VERDICT_DIVISION_BY_ZERO] = "a division by zero",
	[VERDICT_STACK_EXHAUSTED] = "the stack is full",
	[VERDICT_ILLEGAL_INSTRUCTION] = "an instruction that stops the program",
	[VERDICT_OVER_RELEASE] = "a reference is given back that was not taken",
};

const char *verdict_class_name(enum verdict_class class)
{
	return class < VERDICT_CLASSES ? class_names[class] : "not-caught";
}

const char *verdict_class_words(enum verdict_class class)
{
	return class < VERDICT_CLASSES ? class_words[class] : class_words[VERDICT_NOT_CAUGHT];
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
		mem_free(choice->why);
		mem_free(choice->brought);
	}
	VEC_DEINIT(&list->list);
}

void decision_list_deinit(struct decision_list *list)
{
	VEC_FOREACH (&list->list, decision) {
		mem_free(decision->stage);
		mem_free(decision->text);
	}
	VEC_DEINIT(&list->list);
}
