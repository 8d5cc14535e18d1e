/*
 * The built-in hypotheses: what each claims, and what the evidence does to it.
 *
 * A firm verdict confirms its own and falsifies those that it excludes. Some fall by a single
 * observation, whatever the verdict is: two objects at one address are no explanation once the very
 * block was seen to be written. Everything else stays open.
 */
#include "judge/parts.h"

#include <inttypes.h>

#include "judge/store_facts.h"

static const struct {
	const char *id, *text;
} texts[HYPOTHESES] = {
	[HYP_NARROW] = { "narrow", "a bad value is written into the field itself, by a store no "
				   "wider than it" },
	[HYP_WIDE] = { "wide", "a wider store, meant for a neighbour, clips the field" },
	[HYP_OVERFLOW] = { "overflow", "a write runs over the end, or before the start, of another "
				       "block" },
	[HYP_STALE] = { "stale", "a write goes through a pointer to a block that was freed" },
	[HYP_DANGLING] = { "dangling", "a pointer outlives the block that it points to, and is "
				       "used" },
	[HYP_DOUBLE_FREE] = { "double-free",
			      "a block is freed twice, or a wrong pointer is freed" },
	[HYP_CONFLATED] = { "conflated", "two objects at one address are taken for one: no write "
					 "happened" },
	[HYP_CACHED] = { "cached", "a stale or torn value is copied from a cache slot by code that "
				   "is right" },
	[HYP_RACE] = { "race", "two threads write the field at once" },
	[HYP_UNINITIALISED] = { "uninitialised",
				"the field is used before anybody has written it" },
	[HYP_MAPPING] = { "mapping", "a mapped file is made shorter, or written anew, by another "
				     "process" },
	[HYP_OUTSIDE] = { "outside", "the kernel, another process or a device writes it" },
	[HYP_HOST] = { "host", "the machine is at fault: its memory or a core" },
	[HYP_GROWTH] = { "growth", "blocks pile up from test to test" },
	[HYP_PLAIN] = { "plain", "it is no memory error: it fails in the same way in every run" },
};

static void decide(struct verdict_hypothesis *h, enum hypothesis_status status,
		   const struct evidence *e, const char *because)
{
	if (h->status != HYPOTHESIS_OPEN)
		return;
	h->status = status;
	h->because = mem_strdup(because);
	if (e)
		VEC_PUSH(&h->evidence, e->id);
}

/* What a caught writer of the failing value does to each of the others. */
static const char *const contradicted[HYPOTHESES] = {
	[HYP_NARROW] = "the store that was caught is not one into the field alone",
	[HYP_WIDE] = "the store that was caught does not reach over the field's ends",
	[HYP_OVERFLOW] = "the store that was caught went through a pointer to the block itself",
	[HYP_STALE] = "the store that was caught went through a pointer to a live block",
	[HYP_DANGLING] = "the value that failed was written by the store that was caught; it is no "
			 "pointer that went stale",
	[HYP_DOUBLE_FREE] =
		"the value that failed was written by the store that was caught, not by "
		"an allocator",
	[HYP_CONFLATED] = "the very block that failed was written",
	[HYP_CACHED] = "the store that was caught made the value itself, or its source was whole",
	[HYP_UNINITIALISED] = "the field was written",
	[HYP_MAPPING] = "the value that failed was written by the program's own store",
	[HYP_OUTSIDE] = "an instruction of the program was caught writing it",
	[HYP_HOST] = "the same instruction wrote it in every failing trial that was watched",
	[HYP_PLAIN] = "a store was caught that made the value it failed over",
};

static void by_verdict(const struct rule *rule, const struct proof *proof, struct verdict *ret)
{
	AUTO(strbuf_deinit) struct strbuf seen = { 0 };

	evidence_describe(proof->main, &seen);
	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct verdict_hypothesis *h = &ret->hypotheses.items[i];
		bool own = i == (unsigned int)rule->hypothesis;
		bool writer = proof->main->kind == EVIDENCE_WRITE && !own && contradicted[i] &&
			      rule->class != VERDICT_DANGLING_HOLDER;

		if (!own && !(rule->excludes & ~proof->spared & BIT(i)))
			continue;
		decide(h, own ? HYPOTHESIS_CONFIRMED : HYPOTHESIS_FALSIFIED, NULL,
		       writer ? contradicted[i] : strbuf_str(&seen));
		VEC_FOREACH (&proof->pieces, piece)
			VEC_PUSH(&h->evidence, (*piece)->id);
	}
}

/* The bad value was read elsewhere: through what was put there, which was right, or from one of
 * several places that held it. Then what is known of this place says nothing about that one. */
static bool leads_on(const struct suspect *suspect)
{
	const struct write_seen *w = suspect->writes.items[0]->write;

	return store_leaves_live_pointer(w) || store_leaves_readable(w) || store_has_twin(w);
}

/* The very block that failed was written: it was no mix-up of two, and somebody did write it. */
static void by_caught_writes(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect) {
			const struct evidence *e = suspect->writes.items[0];
			AUTO(strbuf_deinit) struct strbuf seen = { 0 };

			if (leads_on(suspect))
				continue;
			evidence_describe(e, &seen);
			if (suspect->verified && !store_is_first(e->write))
				decide(&ret->hypotheses.items[HYP_CONFLATED], HYPOTHESIS_FALSIFIED,
				       e, strbuf_str(&seen));
			if (suspect->verified)
				decide(&ret->hypotheses.items[HYP_UNINITIALISED],
				       HYPOTHESIS_FALSIFIED, e, strbuf_str(&seen));
			if (suspect->verified && suspect->writes.count > 1)
				decide(&ret->hypotheses.items[HYP_HOST], HYPOTHESIS_FALSIFIED, e,
				       strbuf_str(&seen));
			if (suspect->verified && suspect->writes.count > 1 &&
			    suspect->writes.count >= link->watched)
				decide(&ret->hypotheses.items[HYP_OUTSIDE], HYPOTHESIS_FALSIFIED, e,
				       strbuf_str(&seen));
		}
}

/* From birth to failure one thread alone wrote it, in every failing trial that was watched. */
static void by_one_thread(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *seen = NULL;
	uint64_t trials = 0;

	if (facts->chain.count == 0)
		return;
	VEC_FOREACH (&facts->chain.items[0].suspects, suspect)
		if (leads_on(suspect))
			return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind == EVIDENCE_RACE)
			return;
		if (e->kind != EVIDENCE_WATCH || !e->failing || !e->watch->victim_watched ||
		    !home_same(&e->watch->home, facts->chain.items[0].home))
			continue;
		if (!e->watch->since_birth || e->watch->threads > 1 || e->watch->hits == 0)
			return;
		seen = e;
		trials++;
	}
	if (trials < 2 || trials < facts->chain.items[0].watched)
		return;
	decide(&ret->hypotheses.items[HYP_RACE], HYPOTHESIS_FALSIFIED, seen,
	       "one thread alone wrote it from its birth to the failure, in every failing trial that "
	       "was watched");
}

/* Ways to fail that need a pointer gone bad. NULL is none of them: programs forget to test for it;
 * nor are recursion without end, or a store into a constant. */
static bool shows_memory_error(enum fault_class fault)
{
	static const bool shows[FAULT_CLASSES] = {
		[FAULT_FREED] = true,	 [FAULT_RECYCLED] = true,
		[FAULT_BEYOND] = true,	 [FAULT_NON_CANONICAL] = true,
		[FAULT_EXECUTE] = true,	 [FAULT_MAPPING_SHRANK] = true,
		[FAULT_UNMAPPED] = true,
	};

	return fault < FAULT_CLASSES && shows[fault];
}

static void by_crash(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		AUTO(strbuf_deinit) struct strbuf seen = { 0 };

		if (e->kind != EVIDENCE_CRASH || !e->failing ||
		    !shows_memory_error(e->crash->fault))
			continue;
		evidence_describe(e, &seen);
		decide(&ret->hypotheses.items[HYP_PLAIN], HYPOTHESIS_FALSIFIED, e,
		       strbuf_str(&seen));
		return;
	}
}

void hypotheses_decide(const struct facts *facts, const struct rule *rule,
		       const struct proof *proof, struct verdict *ret)
{
	for (unsigned int i = 0; i < HYPOTHESES; i++)
		VEC_PUSH(&ret->hypotheses,
			 ((struct verdict_hypothesis){ .id = mem_strdup(texts[i].id),
						       .text = mem_strdup(texts[i].text) }));
	if (rule && ret->firm)
		by_verdict(rule, proof, ret);
	by_caught_writes(facts, ret);
	by_one_thread(facts, ret);
	by_crash(facts, ret);
}
