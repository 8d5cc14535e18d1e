/*
 * Explanations: what each claims, what became of it, what is still open. See wording.h.
 */
#include "report/wording.h"

/* clang-format off */
const struct sentence_row words_ledger[] = {
	{ "claim:narrow", "a bad value is written into the field itself, by a store no wider than it" },
	{ "claim:wide", "a wider store, meant for a neighbour, clips the field" },
	{ "claim:overflow", "a write runs over the end, or before the start, of another block" },
	{ "claim:stale", "a write goes through a pointer to a block that was freed" },
	{ "claim:dangling", "a pointer outlives the block that it points to, and is used" },
	{ "claim:double-free", "a block is freed twice, or a wrong pointer is freed" },
	{ "claim:conflated", "two objects at one address are taken for one: no write happened" },
	{ "claim:cached", "a stale or torn value is copied from a cache slot by code that is right" },
	{ "claim:race", "two threads write the field at once" },
	{ "claim:uninitialised", "the field is used before anybody has written it" },
	{ "claim:mapping", "a mapped file is made shorter, or written anew, by another process" },
	{ "claim:outside", "the kernel, another process or a device writes it" },
	{ "claim:host", "the machine is at fault: its memory or a core" },
	{ "claim:growth", "blocks pile up from test to test" },
	{ "claim:plain", "it is no memory error" },
	{ "claim:over-read", "a read goes behind the end, or before the start, of a block" },
	{ "claim:fault", "the program itself makes the bad value: a NULL pointer, a zero divisor, a recursion without end" },

	{ "contradicted:narrow", "the store that was caught is not one into the field alone" },
	{ "contradicted:wide", "the store that was caught does not reach over the field's ends" },
	{ "contradicted:overflow", "the store that was caught went through a pointer to the block itself" },
	{ "contradicted:stale", "the store that was caught went through a pointer to a live block" },
	{ "contradicted:dangling", "the value that failed was written by the store that was caught; it is no pointer that went stale" },
	{ "contradicted:double-free", "the value that failed was written by the store that was caught, not by an allocator" },
	{ "contradicted:conflated", "the very block that failed was written" },
	{ "contradicted:cached", "the store that was caught made the value itself, or its source was whole" },
	{ "contradicted:uninitialised", "the field was written" },
	{ "contradicted:mapping", "the value that failed was written by the program's own store" },
	{ "contradicted:outside", "an instruction of the program was caught writing it" },
	{ "contradicted:host", "the same instruction wrote it in every failing trial that was watched" },
	{ "contradicted:plain", "a store was caught that made the value it failed over" },
	{ "contradicted:fault", "a store was caught that made the value it failed over" },

	{ "one-thread", "one thread alone wrote it from its birth to the failure, in every failing trial that was watched" },
	{ "showed-none", "{0} showed none in {1} {2?failing }trials" },
	{ "cannot-tell", "{0} looked at {1} {2?failing }trial{1:s}: it cannot be told" },
	{ "fits-only", "what was seen fits it, and does not prove it" },

	{ "lead:writer", "{0} wrote it last in {1} of {2} failing trials in which it was watched: {3?{3}|a lead, no proof} (evidence {4})" },
	{ "lead:imprecise", "{0} last write{0:s} came in late, so that the writer is not known (trial {1})" },
	{ "lead:turns", "{0}: a lock may have ordered them, no update was seen to be lost (evidence {1})" },
	{ "lead:unset", "{0} was zero when its block was allocated and nobody has written it since, in {1} failing trial{1:s}: a value that was never set rather than a bad write (evidence {2})" },
	{ "lead:observed", "{0}, in a trial with guards, fences or random contents of blocks: they may have brought it out (evidence {1})" },
	{ "lead:open", "{0}: {1}" },

	{ "decided-by", "{0?trial {0}{2?: }}{1?evidence e{1}{2?: }}{2}" },
};
/* clang-format on */

const size_t words_ledger_count = ARRAY_SIZE(words_ledger);

const char *words_status(enum ledger_status status)
{
	static const char *const words[LEDGER_STATUSES] = {
		[LEDGER_UNTESTED] = "not tested",
		[LEDGER_OPEN] = "open",
		[LEDGER_EXCLUDED] = "ruled out",
		[LEDGER_CONFIRMED] = "confirmed",
	};

	return status < LEDGER_STATUSES ? words[status] : "not tested";
}

const struct ledger_entry *words_because_of(const struct verdict *verdict,
					    const struct ledger_entry *h)
{
	AUTO(mem_freep) char *words = words_of(&h->because);
	const struct ledger_entry *first = h;

	if (!words || h->by == EXPERIMENT_KINDS)
		return h;
	VEC_FOREACH (&verdict->ledger, other) {
		AUTO(mem_freep) char *same = words_of(&other->because);

		if (!same || strcmp(words, same) != 0)
			continue;
		if (other->status == LEDGER_CONFIRMED)
			return other;
		first = other < first ? other : first;
	}
	return first;
}
