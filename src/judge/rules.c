/*
 * The table of rules, and what they share.
 */
#include "judge/rules.h"

#include "base/cstr.h"

/* A caught writer of the very value that failed leaves no room for another way it came there.
 * Whether two threads were at it is another question, and so is growth. */
#define EVERY_OTHER_WAY                                                                    \
	(BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |            \
	 BIT(HYP_DANGLING) | BIT(HYP_DOUBLE_FREE) | BIT(HYP_CONFLATED) | BIT(HYP_CACHED) | \
	 BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST) |    \
	 BIT(HYP_PLAIN) | BIT(HYP_FAULT))

#define BUT(set, hypothesis) ((set) & ~BIT(hypothesis))

const struct rule rules[] = {
	/* An update that was lost is why a block was freed too early, or twice. */
	/* Needs two threads that wrote the field within the window, without a common lock; an
	 * update that was lost. */
	{ .class = VERDICT_RACE,
	  .hypothesis = HYP_RACE,
	  .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) | BIT(HYP_CACHED) |
		      BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST) |
		      BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE) |
		    BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		    BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE),
	  .by_watching = true,
	  .weigh = weigh_race,
	  .tell = tell_race },
	/* Needs a count of references that went on after its block was freed, and one function
	 * that gave back more than it took. */
	{ .class = VERDICT_OVER_RELEASE,
	  .hypothesis = HYP_STALE,
	  .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) |
		      BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST) |
		      BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_WRITE_AFTER_FREE) | BIT(VERDICT_USE_AFTER_FREE) |
		    BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE),
	  .weigh = weigh_release,
	  .tell = tell_release },
	/* Needs a free of a block whose id was freed before, in a failing trial. */
	{ .class = VERDICT_DOUBLE_FREE,
	  .hypothesis = HYP_DOUBLE_FREE,
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) |
		      BIT(HYP_OUTSIDE) | BIT(HYP_HOST) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_INVALID_FREE),
	  .weigh = weigh_bad_free,
	  .tell = tell_bad_free },
	/* Needs a free of a pointer that is no block's start, or by the wrong function, in a
	 * failing trial. */
	{ .class = VERDICT_INVALID_FREE,
	  .hypothesis = HYP_DOUBLE_FREE,
	  .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_HOST) | BIT(HYP_PLAIN) |
		      BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE),
	  .weigh = weigh_bad_free,
	  .tell = tell_bad_free },
	/* Needs a fault behind the present end of a mapped file, and who made it shorter. */
	{ .class = VERDICT_MAPPING_TRUNCATED,
	  .hypothesis = HYP_MAPPING,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_MAPPING) & ~BIT(HYP_OUTSIDE),
	  .weigh = weigh_mapping,
	  .tell = tell_mapping },
	/* Needs a pointer to a block that was freed, and that very pointer used in the failure. */
	{ .class = VERDICT_DANGLING_HOLDER,
	  .hypothesis = HYP_DANGLING,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_DANGLING),
	  .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		    BIT(VERDICT_NARROW_WRITE),
	  .by_watching = true,
	  .weigh = weigh_dangling,
	  .tell = tell_dangling },
	/* Needs a caught write through a pointer whose block had been freed. */
	{ .class = VERDICT_WRITE_AFTER_FREE,
	  .hypothesis = HYP_STALE,
	  .command = "redhand heap -- CMD",
	  .guards = true,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_STALE),
	  .covers = BIT(VERDICT_USE_AFTER_FREE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs a caught write behind the end of the block that its base pointer belongs to. */
	{ .class = VERDICT_OVERFLOW,
	  .hypothesis = HYP_OVERFLOW,
	  .command = "redhand heap -- CMD",
	  .guards = true,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_OVERFLOW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs a caught write before the start of the block that its base pointer belongs to. */
	{ .class = VERDICT_UNDERFLOW,
	  .hypothesis = HYP_OVERFLOW,
	  .command = "redhand heap -- CMD",
	  .guards = true,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_OVERFLOW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs a caught write that copied its value from another home, which had been replaced
	 * or was half written. */
	{ .class = VERDICT_STALE_CACHED_VALUE,
	  .hypothesis = HYP_CACHED,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_CACHED),
	  .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs the last write before the failure, to the live block itself; it begins before
	 * the field or ends after it. */
	{ .class = VERDICT_WIDE_WRITE,
	  .hypothesis = HYP_WIDE,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_WIDE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs the last write before the failure, to the field of the live block itself, no
	 * wider than the field. */
	{ .class = VERDICT_NARROW_WRITE,
	  .hypothesis = HYP_NARROW,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_NARROW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	/* Needs a field watched from its block's birth to the failure, never written, its value
	 * unchanged; or a failure that goes with what new blocks hold. */
	{ .class = VERDICT_UNINITIALISED,
	  .hypothesis = HYP_UNINITIALISED,
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_UNINITIALISED),
	  .by_watching = true,
	  .weigh = weigh_uninitialised,
	  .tell = tell_uninitialised },
	/* Needs two observations at one address with different ids, and no write to either. */
	{ .class = VERDICT_INSTANCE_CONFLATION,
	  .hypothesis = HYP_CONFLATED,
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
		      BIT(HYP_CACHED) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
	  .by_watching = true,
	  .weigh = weigh_conflation,
	  .tell = tell_conflation },
	/* Needs a failing access through a pointer whose block had been freed. */
	{ .class = VERDICT_USE_AFTER_FREE,
	  .hypothesis = HYP_DANGLING,
	  .command = "redhand heap --sweep all -- CMD",
	  .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
	  .weigh = weigh_freed_use,
	  .tell = tell_freed_use },
	/* Needs a read behind the end of a block, or before its start, caught at a fence. */
	{ .class = VERDICT_OVER_READ,
	  .hypothesis = HYP_OVER_READ,
	  .weigh = weigh_over_read,
	  .tell = tell_over_read },
	/* Needs a memory test that fails; or flipped bits without a writer in different places
	 * together with signals of all kinds or failures of one core. */
	{ .class = VERDICT_HOST_SUSPECTED,
	  .hypothesis = HYP_HOST,
	  .weigh = weigh_host,
	  .tell = tell_host },
	/* Needs a value that changed while it was watched all the time, and no write caught. */
	{ .class = VERDICT_OUTSIDE_WRITER,
	  .hypothesis = HYP_OUTSIDE,
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
		      BIT(HYP_CACHED) | BIT(HYP_CONFLATED),
	  .by_watching = true,
	  .weigh = weigh_outside,
	  .tell = tell_outside },
	/* Needs a fault at a small offset from NULL, in every run, and no evidence of another
	 * kind. */
	{ .class = VERDICT_NULL_POINTER,
	  .hypothesis = HYP_FAULT,
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	/* Needs a division whose divisor is 0, in every run, and no evidence of another kind. */
	{ .class = VERDICT_DIVISION_BY_ZERO,
	  .hypothesis = HYP_FAULT,
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	/* Needs a fault below the end of a stack, in every run, and no evidence of another kind. */
	{ .class = VERDICT_STACK_EXHAUSTED,
	  .hypothesis = HYP_FAULT,
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	/* Needs an instruction that stops the program, in code that has a name, in every run,
	 * and no evidence of another kind. */
	{ .class = VERDICT_ILLEGAL_INSTRUCTION,
	  .hypothesis = HYP_FAULT,
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	/* Needs live blocks of one site that become more from test to test in every trial. */
	{ .class = VERDICT_LEAK_GROWTH,
	  .hypothesis = HYP_GROWTH,
	  .weigh = weigh_growth,
	  .tell = tell_growth },
	/* Needs a failure of every run that is no fault, and experiments over failing trials
	 * that would have shown writes out of bounds and reads of freed or fresh memory. */
	{ .class = VERDICT_NOT_MEMORY,
	  .hypothesis = HYP_PLAIN,
	  .weigh = weigh_plain,
	  .tell = tell_plain },
};

const size_t rule_count = ARRAY_SIZE(rules);

void proof_deinit(struct proof *proof)
{
	VEC_DEINIT(&proof->pieces);
	said_list_deinit(&proof->doubts);
}

void proof_add(struct proof *proof, const struct evidence *e)
{
	if (!proof->main)
		proof->main = e;
	VEC_PUSH(&proof->pieces, e);
}

void proof_seen(struct proof *proof)
{
	proof->fits = proof->main != NULL;
	proof->caught = proof->watched = EVIDENCE_TRIALS(&proof->pieces);
}

uint64_t home_watched(const struct facts *facts, const struct home *home, uint64_t least)
{
	VEC_FOREACH (&facts->chain, link)
		if (home_same(link->home, home) && link->watched > least)
			least = link->watched;
	return least;
}

void take_block(struct verdict *ret, const struct block_life *block, int64_t offset)
{
	ret->victim = block_life_dup(block);
	ret->home = (struct home){ .kind = HOME_BLOCK,
				   .key = cstr_dup(block->key),
				   .block_id = block->id,
				   .offset = offset };
	stack_copy(&ret->freed_by, &block->freed);
}

void take_store(struct verdict *ret, const struct write_seen *w)
{
	ret->instruction = cstr_dup(w->instruction);
	ret->width = w->width;
	ret->fit = w->fit;
	ret->values_known = w->value_len > 0;
	ret->old = w->old;
	ret->new = w->new;
	ret->value_len = w->value_len;
	ret->tid = w->tid;
	if (ret->writer.count == 0)
		stack_copy(&ret->writer, &w->writer);
}

void rule_settles(const struct facts *facts, const struct rule *rule, struct said *ret)
{
	/* Guards that have been asked would say the same again. */
	bool again = rule->guards && facts->made[EXPERIMENT_GUARDS].trials > 0;
	AUTO(mem_freep) char *id = mem_printf("settle:%s", verdict_class_name(rule->class));

	SAY(ret, id, again ? said_none() : said_text(rule->command));
}
