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

/* The built-in explanations; texts in ledger.c. */
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

struct proof {
	bool fits; /* what the rule needs is there */
	uint64_t caught, watched;
	const struct evidence *main; /* what the wording is about */
	VEC(const struct evidence *) pieces;
	const struct suspect *suspect; /* whose store `main` is; NULL: it is none */
	struct strv doubts;	       /* sentences; none: firm */
	struct strv considered;	       /* names of the considerations behind them */
	uint32_t spared;	       /* hypotheses that it does not exclude after all */
};

void proof_deinit(struct proof *proof);

struct rule {
	enum verdict_class class;
	enum explanation hypothesis; /* that it confirms */
	const char *needs;	     /* the evidence it needs */
	const char *settles;	     /* what would show that it is this and nothing else */
	uint32_t excludes;	     /* hypotheses that it falsifies when firm */
	uint32_t covers;	     /* classes that are the same defect, seen less closely */
	bool by_watching;	     /* `watched` counts trials whose victim was watched */
	void (*weigh)(const struct rule *rule, const struct facts *facts, struct proof *ret);
	/* Fills in what is known besides, and the sentence (without the counts). */
	void (*tell)(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		     struct strbuf *sentence);
};

/* Most telling first. */
extern const struct rule rules[];
extern const size_t rule_count;

/* rules_write.c */
void weigh_write(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_write(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence);
void weigh_race(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_race(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct strbuf *sentence);

/* Who copied the value on from the home that this store wrote, in the same trial; NULL: nobody. And
 * whether that copy was made while the value was half written. */
const struct evidence *value_carrier(const struct facts *facts, const struct evidence *write);
bool value_copied_torn(const struct facts *facts, const struct evidence *write);

/* rules_unwritten.c */
void weigh_outside(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_outside(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct strbuf *sentence);
void weigh_uninitialised(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_uninitialised(const struct facts *facts, const struct proof *proof, struct verdict *ret,
			struct strbuf *sentence);
void weigh_conflation(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_conflation(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		     struct strbuf *sentence);

/* rules_heap.c */
void weigh_dangling(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_dangling(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		   struct strbuf *sentence);
void weigh_freed_use(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_freed_use(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		    struct strbuf *sentence);
void weigh_over_read(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_over_read(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		    struct strbuf *sentence);
void weigh_bad_free(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_bad_free(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		   struct strbuf *sentence);

/* rules_machine.c */
void weigh_mapping(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_mapping(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct strbuf *sentence);
void weigh_host(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_host(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct strbuf *sentence);
void weigh_growth(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_growth(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		 struct strbuf *sentence);
void weigh_plain(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_plain(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence);

/* rules_heap.c */
void weigh_release(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_release(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct strbuf *sentence);

/* rules_fault.c */
void weigh_fault(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_fault(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence);

/* What the faulting instruction of that crash could not use; NULL unknown. */
const struct fault_value *fault_value_of(const struct facts *facts, const struct evidence *crash);

/* The class of one caught write; VERDICT_NOT_CAUGHT when it says too little (rules_write.c). */
enum verdict_class write_class(const struct facts *facts, const struct chain_link *link,
			       const struct evidence *write);

/* The block that the write's value points to was freed after it (rules_heap.c): the piece of
 * the same trial that shows its use; NULL. */
const struct evidence *target_used_later(const struct facts *facts, const struct evidence *write);

/* Did the failure of that trial go through a freed block (rules_heap.c)? */
bool freed_block_used(const struct facts *facts, uint64_t trial);

/* The use of a freed block whose place another freed one had before: it may be that one's. */
bool place_shared(const struct evidence *e);

/* The freed block that was used has been given to somebody else since. */
bool freed_block_recycled(const struct evidence *e);

/* Before this wrong free, a pointer to another freed block was used. */
bool bad_free_after_stale_use(const struct facts *facts, const struct evidence *bad);

/* rules_reported.c: any class that a tool has reported by its name. */
void weigh_reported(const struct rule *rule, const struct facts *facts, struct proof *ret);
void tell_reported(const struct proof *proof, struct verdict *ret, struct strbuf *sentence);

/* Words for sentences. */
void say_site(struct strbuf *sb, const struct stack *stack); /* "f (x.c:3)", "somebody" */
void say_values(struct strbuf *sb, uint64_t old, uint64_t new, unsigned int len);
