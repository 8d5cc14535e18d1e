#pragma once

#include "judge/facts.h"
#include "model/verdict.h"

/*
 * The rules, one per class. Private to judge/.
 *
 * A rule looks for the evidence that it needs. What speaks against it stands in considerations.c;
 * a proof without doubts is firm. A new rule needs its row in rules.c, a hypothesis that it
 * decides, and two stories: one that fires it, one that nearly does.
 */

/* The built-in explanations; names in ledger.c. */
enum explanation {
	HYP_NARROW,
	HYP_WIDE,
	HYP_OVERFLOW,
	HYP_STALE,
	HYP_DANGLING,
	HYP_DOUBLE_FREE,
	HYP_CONFLATED,
	HYP_CACHED,
	HYP_RACE,
	HYP_UNINITIALISED,
	HYP_MAPPING,
	HYP_OUTSIDE,
	HYP_HOST,
	HYP_GROWTH,
	HYP_PLAIN,
	HYP_OVER_READ,
	HYP_FAULT,
	HYPOTHESES,
};

#define BIT(n) (1u << (n))

/* Told only where nothing else fits. */
#define PLAIN_FAULTS                                                 \
	(BIT(VERDICT_NULL_POINTER) | BIT(VERDICT_DIVISION_BY_ZERO) | \
	 BIT(VERDICT_STACK_EXHAUSTED) | BIT(VERDICT_ILLEGAL_INSTRUCTION))

struct proof {
	bool fits; /* what the rule needs is there */
	uint64_t caught, watched;
	const struct evidence *main; /* what the wording is about */
	VEC(const struct evidence *) pieces;
	const struct suspect *suspect; /* whose store `main` is; NULL: it is none */
	struct said_list doubts;       /* none: firm */
	uint32_t spared;	       /* hypotheses that it does not exclude after all */
};

void proof_deinit(struct proof *proof);

struct rule;
typedef void weigh_fn(const struct rule *rule, const struct facts *facts, struct proof *ret);

/* Fills in what is known besides, and the sentence (without the counts). */
typedef void tell_fn(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		     struct said *sentence);

struct rule {
	enum verdict_class class;
	enum explanation hypothesis; /* that it confirms */
	const char *command;	     /* that would show that it is this; NULL: none */
	bool guards;		     /* `command` asks guards around blocks */
	uint32_t excludes;	     /* hypotheses that it falsifies when firm */
	uint32_t covers;	     /* classes that are the same defect, seen less closely */
	bool by_watching;	     /* `watched` counts trials whose victim was watched */
	weigh_fn *weigh;
	tell_fn *tell;
};

/* Most telling first. */
extern const struct rule rules[];
extern const size_t rule_count;

weigh_fn weigh_write, weigh_race, weigh_outside, weigh_uninitialised, weigh_conflation,
	weigh_dangling, weigh_freed_use, weigh_over_read, weigh_bad_free, weigh_mapping, weigh_host,
	weigh_growth, weigh_plain, weigh_release, weigh_fault;
tell_fn tell_write, tell_race, tell_outside, tell_uninitialised, tell_conflation, tell_dangling,
	tell_freed_use, tell_over_read, tell_bad_free, tell_mapping, tell_host, tell_growth,
	tell_plain, tell_release, tell_fault;
weigh_fn weigh_reported; /* any class that a tool has reported by its name */

/* Who copied the value on from the home that this store wrote, in the same trial; NULL: nobody. And
 * whether that copy was made while the value was half written. */
const struct evidence *value_carrier(const struct facts *facts, const struct evidence *write);
bool value_copied_torn(const struct facts *facts, const struct evidence *write);

/* What the faulting instruction of that crash could not use; NULL unknown. */
const struct fault_value *fault_value_of(const struct facts *facts, const struct evidence *crash);

/* Who touched a freed block of that context first, from its free on (rules_heap.c); NULL. */
const struct evidence *first_use(const struct facts *facts, const struct block_life *block);

/* The block that the write's value points to was freed after it (rules_heap.c): the piece of
 * the same trial that shows its use; NULL. */
const struct evidence *target_used_later(const struct facts *facts, const struct evidence *write);

/* Did the failure of that trial go through a freed block (rules_heap.c)? */
bool freed_block_used(const struct facts *facts, uint64_t trial);

/* The use of a freed block whose place another freed one had before: it may be that one's. */
bool holder_by_looks(const struct evidence *e);
bool place_shared(const struct evidence *e);

/* The freed block that was used has been given to somebody else since. */
bool freed_block_recycled(const struct evidence *e);

/* Before this wrong free, a pointer to another freed block was used. */
/* Is the party of this account named because nobody else could have been? */
bool release_by_exclusion(const struct evidence *e, bool several);
bool bad_free_after_stale_use(const struct facts *facts, const struct evidence *bad);

void tell_reported(const struct proof *proof, struct verdict *ret, struct said *sentence);

/* One more piece; the first is told. Then: all of them were seen, each in its trial. */
void proof_add(struct proof *proof, const struct evidence *e);
void proof_seen(struct proof *proof);

/* Failing trials in which that home was watched; `least` where that is more. */
uint64_t home_watched(const struct facts *facts, const struct home *home, uint64_t least);

/* The block that was hit, at that offset, and who freed it; the store that was caught. */
void take_block(struct verdict *ret, const struct block_life *block, int64_t offset);
void take_store(struct verdict *ret, const struct write_seen *w);

/* What would show that it is this class and nothing else, and was not tried yet. */
void rule_settles(const struct facts *facts, const struct rule *rule, struct said *ret);
