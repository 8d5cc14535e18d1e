/*
 * The table of rules, and what they share.
 */
#include "judge/rules.h"

#include <inttypes.h>

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
	{ .class = VERDICT_RACE,
	  .hypothesis = HYP_RACE,
	  .needs = "two threads that wrote the field within the window, without a common lock; an "
		   "update that was lost",
	  .settles = "hold one of the two threads back (--chaos), or run them under one lock: the "
		     "rate must change",
	  .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) | BIT(HYP_CACHED) |
		      BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST) |
		      BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE) |
		    BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		    BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE),
	  .by_watching = true,
	  .weigh = weigh_race,
	  .tell = tell_race },
	{ .class = VERDICT_DOUBLE_FREE,
	  .hypothesis = HYP_DOUBLE_FREE,
	  .needs = "a free of a block whose id was freed before, in a failing trial",
	  .settles = "look at both frees: with the second one taken out the failure must go",
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) |
		      BIT(HYP_OUTSIDE) | BIT(HYP_HOST) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_INVALID_FREE),
	  .weigh = weigh_bad_free,
	  .tell = tell_bad_free },
	{ .class = VERDICT_INVALID_FREE,
	  .hypothesis = HYP_DOUBLE_FREE,
	  .needs = "a free of a pointer that is no block's start, or by the wrong function, in a "
		   "failing trial",
	  .settles = "look at the free: with it taken out the failure must go",
	  .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_HOST) | BIT(HYP_PLAIN) |
		      BIT(HYP_FAULT),
	  .weigh = weigh_bad_free,
	  .tell = tell_bad_free },
	{ .class = VERDICT_MAPPING_TRUNCATED,
	  .hypothesis = HYP_MAPPING,
	  .needs = "a fault behind the present end of a mapped file, and who made it shorter",
	  .settles = "give every trial its own copy of the file: the failure must go",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_MAPPING) & ~BIT(HYP_OUTSIDE),
	  .weigh = weigh_mapping,
	  .tell = tell_mapping },
	{ .class = VERDICT_DANGLING_HOLDER,
	  .hypothesis = HYP_DANGLING,
	  .needs = "a pointer to a block that was freed, and that very pointer used in the failure",
	  .settles = "clear that pointer before the free (or free later): the failure must go",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_DANGLING),
	  .covers = BIT(VERDICT_USE_AFTER_FREE) | BIT(VERDICT_WRITE_AFTER_FREE) |
		    BIT(VERDICT_NARROW_WRITE),
	  .by_watching = true,
	  .weigh = weigh_dangling,
	  .tell = tell_dangling },
	{ .class = VERDICT_OVER_RELEASE,
	  .hypothesis = HYP_STALE,
	  .needs = "a count of references that went on after its block was freed, and one function "
		   "that gave back more than it took",
	  .settles = "let that function give back one less: the failure must go",
	  .excludes = BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_CONFLATED) |
		      BIT(HYP_UNINITIALISED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST) |
		      BIT(HYP_PLAIN) | BIT(HYP_FAULT),
	  .covers = BIT(VERDICT_WRITE_AFTER_FREE) | BIT(VERDICT_USE_AFTER_FREE) |
		    BIT(VERDICT_DANGLING_HOLDER) | BIT(VERDICT_DOUBLE_FREE),
	  .weigh = weigh_release,
	  .tell = tell_release },
	{ .class = VERDICT_WRITE_AFTER_FREE,
	  .hypothesis = HYP_STALE,
	  .needs = "a caught write through a pointer whose block had been freed",
	  .settles = "redhand heap -- CMD: the freed block's poison must be damaged by "
		     "the same writer",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_STALE),
	  .covers = BIT(VERDICT_USE_AFTER_FREE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_OVERFLOW,
	  .hypothesis = HYP_OVERFLOW,
	  .needs = "a caught write behind the end of the block that its base pointer belongs to",
	  .settles =
		  "redhand heap -- CMD: a canary behind that block must be broken by the same writer",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_OVERFLOW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_UNDERFLOW,
	  .hypothesis = HYP_OVERFLOW,
	  .needs = "a caught write before the start of the block that its base pointer belongs to",
	  .settles =
		  "redhand heap -- CMD: a canary before that block must be broken by the same writer",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_OVERFLOW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_STALE_CACHED_VALUE,
	  .hypothesis = HYP_CACHED,
	  .needs =
		  "a caught write that copied its value from another home, which had been replaced "
		  "or was half written",
	  .settles = "watch the slot that it was copied from: was it replaced around the copy",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_CACHED),
	  .covers = BIT(VERDICT_NARROW_WRITE) | BIT(VERDICT_WIDE_WRITE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_WIDE_WRITE,
	  .hypothesis = HYP_WIDE,
	  .needs = "the last write before the failure, to the live block itself; it begins before "
		   "the field or ends after it",
	  .settles = "watch the field and its neighbour: the store must touch both",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_WIDE),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_NARROW_WRITE,
	  .hypothesis = HYP_NARROW,
	  .needs = "the last write before the failure, to the field of the live block itself, no "
		   "wider than the field",
	  .settles = "watch the field in more failing trials: it must be the same instruction "
		     "every time",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_NARROW),
	  .by_watching = true,
	  .weigh = weigh_write,
	  .tell = tell_write },
	{ .class = VERDICT_UNINITIALISED,
	  .hypothesis = HYP_UNINITIALISED,
	  .needs =
		  "a field watched from its block's birth to the failure, never written, its value "
		  "unchanged; or a failure that goes with what new blocks hold",
	  .settles = "allocate it zeroed: the value that fails must be zero then",
	  .excludes = BUT(EVERY_OTHER_WAY, HYP_UNINITIALISED),
	  .by_watching = true,
	  .weigh = weigh_uninitialised,
	  .tell = tell_uninitialised },
	{ .class = VERDICT_INSTANCE_CONFLATION,
	  .hypothesis = HYP_CONFLATED,
	  .needs = "two observations at one address with different ids, and no write to either",
	  .settles = "watch the second block from its birth: nobody may write the field",
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
		      BIT(HYP_CACHED) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
	  .by_watching = true,
	  .weigh = weigh_conflation,
	  .tell = tell_conflation },
	{ .class = VERDICT_USE_AFTER_FREE,
	  .hypothesis = HYP_DANGLING,
	  .needs = "a failing access through a pointer whose block had been freed",
	  .settles = "redhand heap --sweep all -- CMD: who still points to the block at its free",
	  .excludes = BIT(HYP_CONFLATED) | BIT(HYP_MAPPING) | BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
	  .weigh = weigh_freed_use,
	  .tell = tell_freed_use },
	{ .class = VERDICT_OVER_READ,
	  .hypothesis = HYP_OVER_READ,
	  .needs = "a read behind the end of a block, or before its start, caught at a fence",
	  .settles = "make the block longer by as much: the failure must go",
	  .weigh = weigh_over_read,
	  .tell = tell_over_read },
	{ .class = VERDICT_HOST_SUSPECTED,
	  .hypothesis = HYP_HOST,
	  .needs = "a memory test that fails; or flipped bits without a writer in different places "
		   "together with signals of all kinds or failures of one core",
	  .settles = "run the same trials on another machine, and a memory test over night on this "
		     "one",
	  .weigh = weigh_host,
	  .tell = tell_host },
	{ .class = VERDICT_OUTSIDE_WRITER,
	  .hypothesis = HYP_OUTSIDE,
	  .needs = "a value that changed while it was watched all the time, and no write caught",
	  .settles = "watch again with system calls included (as root, or perf_event_paranoid 1), "
		     "and with --mode pages",
	  .excludes = BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) | BIT(HYP_STALE) |
		      BIT(HYP_CACHED) | BIT(HYP_CONFLATED),
	  .by_watching = true,
	  .weigh = weigh_outside,
	  .tell = tell_outside },
	{ .class = VERDICT_NULL_POINTER,
	  .hypothesis = HYP_FAULT,
	  .needs =
		  "a fault at a small offset from NULL, in every run, and no evidence of another kind",
	  .settles =
		  "test the pointer where it is used, or set it where it is made: the failure must go",
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	{ .class = VERDICT_DIVISION_BY_ZERO,
	  .hypothesis = HYP_FAULT,
	  .needs = "a division whose divisor is 0, in every run, and no evidence of another kind",
	  .settles = "test the divisor before the division: the failure must go",
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	{ .class = VERDICT_STACK_EXHAUSTED,
	  .hypothesis = HYP_FAULT,
	  .needs =
		  "a fault below the end of a stack, in every run, and no evidence of another kind",
	  .settles = "ulimit -s with twice as much: a recursion without end fails all the same",
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	{ .class = VERDICT_ILLEGAL_INSTRUCTION,
	  .hypothesis = HYP_FAULT,
	  .needs =
		  "an instruction that stops the program, in code that has a name, in every run, and no evidence of another kind",
	  .settles = "read the code from there: compilers put ud2 where control must not come",
	  .weigh = weigh_fault,
	  .tell = tell_fault },
	{ .class = VERDICT_LEAK_GROWTH,
	  .hypothesis = HYP_GROWTH,
	  .needs = "live blocks of one site that become more from test to test in every trial",
	  .settles = "redhand heap --growth with more tests",
	  .weigh = weigh_growth,
	  .tell = tell_growth },
	{ .class = VERDICT_NOT_MEMORY,
	  .hypothesis = HYP_PLAIN,
	  .needs =
		  "a failure of every run that is no fault, and experiments over failing trials that "
		  "would have shown writes out of bounds and reads of freed or fresh memory",
	  .settles = "the program's own message says what it found wrong: read its code from there",
	  .weigh = weigh_plain,
	  .tell = tell_plain },
};

const size_t rule_count = ARRAY_SIZE(rules);

void proof_deinit(struct proof *proof)
{
	VEC_DEINIT(&proof->pieces);
	strv_deinit(&proof->doubts);
	strv_deinit(&proof->considered);
}

void say_site(struct strbuf *sb, const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	if (!site && stack->count > 0)
		site = &stack->frames[0];
	if (site)
		frame_describe(site, sb);
	else
		strbuf_adds(sb, "somebody");
}

void say_values(struct strbuf *sb, uint64_t old, uint64_t new, unsigned int len)
{
	int digits = len > 0 && len <= 8 ? (int)len * 2 : 1;

	strbuf_addf(sb, "0x%0*" PRIx64 " -> 0x%0*" PRIx64, digits, old, digits, new);
}
