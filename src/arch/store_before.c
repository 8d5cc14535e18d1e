/* Which instruction made a write that was caught: arch_decode_before() and arch_decode_at() of
 * store.h. */
#include <errno.h>
#include <string.h>

#include "arch/store_inside.h"

#define ONE_INSTRUCTION ZYDIS_MAX_INSTRUCTION_LENGTH

/* How good a candidate is; the greatest wins. */
struct store_candidate {
	struct writer writer;
	bool likely; /* the one that most ways through the code before it lead to */
	bool known;  /* registers tell what it wrote */
};

static bool overlaps(uint64_t low, uint64_t high, const struct trap *trap)
{
	return low < trap->high && trap->low < high;
}

static void weigh(const struct trap *trap, struct store_candidate *candidate)
{
	struct writer *writer = &candidate->writer;

	candidate->known = trap->registers && store_range_after(&writer->store, trap->registers,
								&writer->low, &writer->high);
	if (!candidate->known)
		writer->low = writer->high = 0;
	writer->covers = candidate->known && overlaps(writer->low, writer->high, trap);
}

/* What is watched is known, and by the registers this one wrote elsewhere. */
static bool ruled_out(const struct trap *trap, const struct store_candidate *candidate)
{
	return trap->low < trap->high && candidate->known && !candidate->writer.covers;
}

static bool better(const struct store_candidate *a, const struct store_candidate *b)
{
	if (a->writer.covers != b->writer.covers)
		return a->writer.covers;
	if (a->likely != b->likely)
		return a->likely;
	/* `mov [rbx+8], rax` without its first byte is `mov [rbx+8], eax`. */
	return a->writer.store.length > b->writer.store.length;
}

static void offer(const struct trap *trap, struct store_candidate *candidate,
		  struct store_candidate *best, unsigned int *count)
{
	weigh(trap, candidate);
	if (ruled_out(trap, candidate))
		return;
	if (*count == 0 || better(candidate, best))
		*best = *candidate;
	++*count;
}

/* A rep that goes on stays where it is. */
static void offer_repeated(const struct code *code, const struct trap *trap,
			   struct store_candidate *best, unsigned int *count)
{
	struct store_candidate candidate = { 0 };
	struct decoded d;

	if (!decoded_at(code, trap->rip, &d) || !store_take(&d, &candidate.writer.store) ||
	    candidate.writer.store.kind != STORE_REPEATED)
		return;
	weigh(trap, &candidate);
	/* Without proof it may not even have begun. */
	if (candidate.writer.covers)
		offer(trap, &candidate, best, count);
}

int arch_decode_before(const struct trap *trap, struct writer *ret)
{
	struct store_candidate best = { 0 };
	unsigned int count = 0;
	uint64_t likely = 0;
	struct before how;
	struct code code;

	if (!code_init(&code, trap->code, trap->code_len, trap->code_address))
		return -EINVAL;
	(void)code_before(&code, trap->rip, trap->start_hint, &likely, 1, &how);
	for (uint64_t back = 1; back <= ONE_INSTRUCTION && back <= trap->rip; back++) {
		struct store_candidate candidate = { .likely = trap->rip - back == likely };
		struct decoded d;

		if (how.certain && !candidate.likely)
			continue;
		if (decoded_at(&code, trap->rip - back, &d) && d.instruction.length == back &&
		    store_take(&d, &candidate.writer.store))
			offer(trap, &candidate, &best, &count);
	}
	offer_repeated(&code, trap, &best, &count);
	if (count > 0) {
		*ret = best.writer;
		ret->certain = count == 1 || (how.certain && best.likely);
		ret->share = best.likely ? how.share : 0;
		ret->others = count - 1;
		writer_mask(trap, ret);
		return 0;
	}
	if (trap->rip - 2 >= trap->code_address &&
	    trap->rip - trap->code_address <= trap->code_len &&
	    memcmp(trap->code + (trap->rip - 2 - trap->code_address), "\x0f\x05", 2) == 0) {
		*ret = (struct writer){ .system_call = true, .certain = how.certain };
		ret->store.at = trap->rip - 2;
		(void)strcpy(ret->store.text, "syscall");
		return 0;
	}
	return -ENOENT;
}

int arch_decode_at(const struct trap *trap, struct writer *ret)
{
	struct writer writer = { .certain = true };
	struct code code;
	struct decoded d;

	if (!code_init(&code, trap->code, trap->code_len, trap->code_address))
		return -EINVAL;
	if (!decoded_at(&code, trap->rip, &d) || !store_take(&d, &writer.store))
		return -ENOENT;
	writer.share = 100;
	if (trap->registers &&
	    store_range_before(&writer.store, trap->registers, &writer.low, &writer.high))
		writer.covers = overlaps(writer.low, writer.high, trap);
	else
		writer.low = writer.high = 0;
	writer_mask(trap, &writer);
	*ret = writer;
	return 0;
}
