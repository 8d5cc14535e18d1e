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

#define RULE(verdict, explanation, what, ...)                                                   \
	{                                                                                       \
		.class = VERDICT_##verdict, .hypothesis = (explanation), .weigh = weigh_##what, \
		.tell = tell_##what, __VA_ARGS__                                                \
	}
/* Of a store that was caught: no other way is left in which the value came there. */
#define STORE(verdict, explanation, ...)                                                 \
	RULE(verdict, explanation, write, .excludes = BUT(EVERY_OTHER_WAY, explanation), \
	     .by_watching = true, __VA_ARGS__)

const struct rule rules[] = {
	/* An update that was lost is why a block was freed too early, or twice. */
	/* Needs two threads that wrote the field within the window, without a common lock; an
	 * update that was lost. */
	RULE(RACE, HYP_RACE, race,
	     .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) | BIT(HYP_CACHED) |
			 BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) |
			 BIT(HYP_HOST) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	     .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE) |
		       BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		       BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE),
	     .by_watching = true),
	/* Needs a count of references that went on after its block was freed, and one function
	 * that gave back more than it took. */
	RULE(OVER_RELEASE, HYP_STALE, release,
	     .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) |
			 BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) |
			 BIT(HYP_HOST) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	     .covers = BIT(VERDICT_WRITE_AFTER_FREE) | BIT(VERDICT_USE_AFTER_FREE) |
		       BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE)),
	/* Needs a free of a block whose id was freed before, in a failing trial. */
	RULE(DOUBLE_FREE, HYP_DOUBLE_FREE, bad_free,
	     .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) |
			 BIT(HYP_OUTSIDE) | BIT(HYP_HOST) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	     .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_INVALID_FREE)),
	/* Needs a free of a pointer that is no block's start, or by the wrong function, in a
	 * failing trial. */
	RULE(INVALID_FREE, HYP_DOUBLE_FREE, bad_free,
	     .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_HOST) | BIT(HYP_PLAIN) |
			 BIT(HYP_FAULT),
	     .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE)),
	/* Needs a fault behind the present end of a mapped file, and who made it shorter. */
	RULE(MAPPING_TRUNCATED, HYP_MAPPING, mapping,
	     .excludes = BUT(EVERY_OTHER_WAY, HYP_MAPPING) & ~BIT(HYP_OUTSIDE)),
	/* Needs a pointer to a block that was freed, and that very pointer used in the failure. */
	RULE(DANGLING_HOLDER, HYP_DANGLING, dangling,
	     .excludes = BUT(EVERY_OTHER_WAY, HYP_DANGLING),
	     .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		       BIT(VERDICT_NARROW_WRITE),
	     .by_watching = true),
	/* Needs a caught write through a pointer whose block had been freed. */
	STORE(WRITE_AFTER_FREE, HYP_STALE, .command = "redhand heap -- CMD", .guards = true,
	      .covers = BIT(VERDICT_USE_AFTER_FREE)),
	/* Needs a caught write behind the end of the block that its base pointer belongs to. */
	STORE(OVERFLOW, HYP_OVERFLOW, .command = "redhand heap -- CMD", .guards = true),
	/* Needs a caught write before the start of the block that its base pointer belongs to. */
	STORE(UNDERFLOW, HYP_OVERFLOW, .command = "redhand heap -- CMD", .guards = true),
	/* Needs a caught write that copied its value from another home, which had been replaced
	 * or was half written. */
	STORE(STALE_CACHED_VALUE, HYP_CACHED,
	      .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE)),
	/* Needs the last write before the failure, to the live block itself; it begins before
	 * the field or ends after it. */
	STORE(WIDE_WRITE, HYP_WIDE),
	/* Needs the last write before the failure, to the field of the live block itself, no
	 * wider than the field. */
	STORE(NARROW_WRITE, HYP_NARROW),
	/* Needs a field watched from its block's birth to the failure, never written, its value
	 * unchanged; or a failure that goes with what new blocks hold. */
	RULE(UNINITIALISED, HYP_UNINITIALISED, uninitialised,
	     .excludes = BUT(EVERY_OTHER_WAY, HYP_UNINITIALISED), .by_watching = true),
	/* Needs two observations at one address with different ids, and no write to either. */
	RULE(INSTANCE_CONFLATION, HYP_CONFLATED, conflation,
	     .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
			 BIT(HYP_CACHED) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
	     .by_watching = true),
	/* Needs a failing access through a pointer whose block had been freed. */
	RULE(USE_AFTER_FREE, HYP_DANGLING, freed_use, .command = "redhand heap --sweep all -- CMD",
	     .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST)),
	/* Needs a read behind the end of a block, or before its start, caught at a fence. */
	RULE(OVER_READ, HYP_OVER_READ, over_read),
	/* Needs a memory test that fails; or flipped bits without a writer in different places
	 * together with signals of all kinds or failures of one core. */
	RULE(HOST_SUSPECTED, HYP_HOST, host),
	/* Needs a value that changed while it was watched all the time, and no write caught. */
	RULE(OUTSIDE_WRITER, HYP_OUTSIDE, outside,
	     .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
			 BIT(HYP_CACHED) | BIT(HYP_CONFLATED),
	     .by_watching = true),
	/* Needs a fault at a small offset from NULL, in every run, and no evidence of another
	 * kind. */
	RULE(NULL_POINTER, HYP_FAULT, fault),
	/* Needs a division whose divisor is 0, in every run, and no evidence of another kind. */
	RULE(DIVISION_BY_ZERO, HYP_FAULT, fault),
	/* Needs a fault below the end of a stack, in every run, and no evidence of another kind. */
	RULE(STACK_EXHAUSTED, HYP_FAULT, fault),
	/* Needs an instruction that stops the program, in code that has a name, in every run,
	 * and no evidence of another kind. */
	RULE(ILLEGAL_INSTRUCTION, HYP_FAULT, fault),
	/* Needs live blocks of one site that become more from test to test in every trial. */
	RULE(LEAK_GROWTH, HYP_GROWTH, growth),
	/* Needs a failure of every run that is no fault, and experiments over failing trials
	 * that would have shown writes out of bounds and reads of freed or fresh memory. */
	RULE(NOT_MEMORY, HYP_PLAIN, plain),
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
