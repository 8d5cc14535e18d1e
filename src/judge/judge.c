/*
 * From evidence to a verdict. See judge.h.
 */
#include "judge/judge.h"

#include <string.h>

#include "judge/considerations.h"
#include "judge/ledger.h"
#include "judge/next.h"
#include "judge/store_facts.h"

/* A matter of its own beside a crash, never a rival of another class. */
#define APART (BIT(VERDICT_LEAK_GROWTH) | BIT(VERDICT_NOT_MEMORY))

static bool is_firm(const struct proof *proof)
{
	return proof->fits && proof->doubts.list.count == 0;
}

/* With most allocators it does no harm: any other story about memory comes first. */
static bool is_mismatch(const struct proof *proof)
{
	return proof->main->kind == EVIDENCE_BAD_FREE &&
	       proof->main->bad_free->kind == BAD_FREE_MISMATCHED;
}

/* Two threads may well write one field in turns: any other story comes first. */
static bool is_mere_race(const struct proof *proof)
{
	return proof->main->kind == EVIDENCE_RACE && !proof->main->race->lost_update;
}

/* The first firm one, or the first that fits. */
static size_t choose(const struct proof *proofs)
{
	size_t best = rule_count;

	for (size_t i = 0; i < rule_count; i++) {
		bool plain = BIT(rules[i].class) & PLAIN_FAULTS;

		if (!proofs[i].fits || (plain && best != rule_count))
			continue;
		if (is_firm(&proofs[i]))
			return i;
		if (best == rule_count ||
		    ((is_mismatch(&proofs[best]) || is_mere_race(&proofs[best])) &&
		     !(BIT(rules[i].class) & APART)))
			best = i;
	}
	return best;
}

/* In how many trials it was seen; nothing where that says nothing. */
static struct said_value counts_value(const struct rule *rule, const struct proof *proof,
				      const struct facts *facts)
{
	/* Where nothing failed, guards found it in trials that passed. */
	bool failing = facts->trials == 0 || facts->failed > 0;
	struct said said = { 0 };

	if (BIT(rule->class) & APART || rule->class == VERDICT_HOST_SUSPECTED)
		return said_none();
	if (rule->by_watching && proof->main->kind != EVIDENCE_CANARY &&
	    proof->main->kind != EVIDENCE_REPORTED)
		SAY(&said, "caught-in", said_number(proof->caught), said_number(proof->watched),
		    said_flag(failing));
	else
		SAY(&said, "seen-in", said_number(proof->caught),
		    said_flag(failing && proof->main->kind != EVIDENCE_CANARY &&
			      !evidence_fenced(proof->main)));
	said_add(&said, said_count(facts->trials));
	return said_part(&said);
}

/* Guards found it, and nobody has died of it. */
static struct said_value unfailed_value(const struct rule *rule, const struct facts *facts)
{
	const struct failure_seen *f = facts->failure;
	struct said said = { 0 };

	if (!f || f->failed > 0 || f->trials == 0 || BIT(rule->class) & APART)
		return said_part(&said);
	if (facts->failed > 0)
		SAY(&said, "only-observed");
	else
		SAY(&said, "unfailed", said_number(f->trials),
		    said_flag(rule->class == VERDICT_OVER_READ ||
			      rule->class == VERDICT_USE_AFTER_FREE ||
			      rule->class == VERDICT_UNINITIALISED));
	return said_part(&said);
}

static void tell(const struct rule *rule, const struct facts *facts, const struct proof *proof,
		 struct verdict *ret, struct said *sentence)
{
	if (proof->main->kind == EVIDENCE_REPORTED)
		tell_reported(proof, ret, sentence);
	else
		rule->tell(facts, proof, ret, sentence);
}

static void add_alternative(const struct rule *rule, const struct proof *proof,
			    const struct facts *facts, struct verdict *ret)
{
	AUTO(verdict_deinit) struct verdict scratch = { .class = rule->class };
	struct verdict_alternative alternative = { .class = rule->class };
	struct said told = { 0 };

	tell(rule, facts, proof, &scratch, &told);
	SAY(&alternative.sentence, "verdict", said_none(), said_part(&told), said_none(),
	    counts_value(rule, proof, facts));
	rule_settles(facts, rule, &alternative.tell_apart);
	VEC_FOREACH (&proof->pieces, piece)
		VEC_PUSH(&alternative.evidence, (*piece)->id);
	VEC_PUSH(&ret->alternatives, alternative);
}

static void add_alternatives(const struct proof *proofs, size_t chosen, const struct facts *facts,
			     struct verdict *ret)
{
	for (size_t i = 0; i < rule_count; i++) {
		uint32_t bit = BIT(rules[i].class);

		if (i == chosen || !proofs[i].fits || bit & (APART | PLAIN_FAULTS) ||
		    rules[chosen].covers & bit)
			continue;
		add_alternative(&rules[i], &proofs[i], facts, ret);
	}
}

/* The crash of the trial that the verdict is told by, or any. */
static const struct evidence *find_crash(const struct facts *facts, const struct proof *proof)
{
	const struct evidence *first = NULL;

	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_CRASH ||
		    !(e->failing || (facts_only_observed(facts) && evidence_observed(e))))
			continue;
		if (proof && proof->main->trial == e->trial)
			return e;
		first = first ?: e;
	}
	return first;
}

static void add_step(struct verdict *ret, const char *what, const struct stack *stack,
		     const struct evidence *e)
{
	struct verdict_step step = { 0 };

	if (!stack || stack->count == 0)
		return;
	SAY(&step.what, what);
	if (e) {
		step.trial = e->trial;
		step.evidence = e->id;
	}
	stack_copy(&step.stack, stack);
	VEC_PUSH(&ret->steps, step);
}

static const char *writer_step(enum verdict_class class)
{
	static const char *const steps[VERDICT_CLASSES] = {
		[VERDICT_DANGLING_HOLDER] = "step:stored",
		[VERDICT_DOUBLE_FREE] = "step:freed-again",
		[VERDICT_INVALID_FREE] = "step:freed-wrong",
		[VERDICT_OVER_RELEASE] = "step:given-back",
		[VERDICT_MAPPING_TRUNCATED] = "step:shortened",
		[VERDICT_LEAK_GROWTH] = "step:growth",
		[VERDICT_STALE_CACHED_VALUE] = "step:slot",
		[VERDICT_RACE] = "step:second-thread",
	};

	return steps[class] ?: "step:bad-write";
}

static void add_first_use(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *use = first_use(facts, ret->victim);

	if (use)
		add_step(ret, "step:first-use", &use->freed_use->user, use);
}

/* Of an object that was used after its end: who took references and who gave them back. A holder
 * has told it already. */
static struct said_value account_value(const struct facts *facts, const struct verdict *verdict)
{
	const struct evidence *use = first_use(facts, verdict->victim);

	return use && !use->freed_use->fenced && verdict->class != VERDICT_DANGLING_HOLDER
		       ? said_copied(&use->note)
		       : said_none();
}

/* Who used the memory, where the main evidence says so. */
static void add_user(const struct evidence *main, struct verdict *ret)
{
	if (main->kind == EVIDENCE_OVER_READ)
		add_step(ret, "step:over-read", &main->freed_use->user, main);
	if (main->kind == EVIDENCE_REPORTED && ret->writer.count == 0)
		add_step(ret, "step:used", &main->reported->user, main);
	if (main->kind == EVIDENCE_MAPPING)
		add_step(ret, "step:cut-off", &main->mapping->user, main);
}

/* Of a pointer that a store made wrong. */
static void add_wrong_free(const struct facts *facts, const struct evidence *main,
			   struct verdict *ret)
{
	const struct bad_free *freed =
		main->kind == EVIDENCE_WRITE ? store_of_freed(facts, main) : NULL;

	if (freed)
		add_step(ret, "step:freed-wrong", &freed->second, main);
	else if (verdict_act(ret) != ret->class)
		add_step(ret, "step:freed-wrong", &ret->freed_by, main);
}

/* Allocation, free, bad write, failure: in the order in which they happen. */
static void add_steps(const struct facts *facts, const struct proof *proof,
		      const struct evidence *crash, struct verdict *ret)
{
	const struct evidence *main = proof->main;
	bool stored_before_free = ret->class == VERDICT_DANGLING_HOLDER;

	if (ret->base && (!ret->victim || ret->base->id != ret->victim->id))
		add_step(ret, "step:meant-allocated", &ret->base->allocated, main);
	if (ret->victim)
		add_step(ret, "step:allocated", &ret->victim->allocated, main);
	if (stored_before_free)
		add_step(ret, writer_step(verdict_act(ret)), &ret->writer, main);
	if (verdict_act(ret) == ret->class)
		add_step(ret, "step:freed", &ret->freed_by, main);
	if (ret->class == VERDICT_RACE)
		add_step(ret, "step:first-thread", &ret->other, main);
	if (!stored_before_free)
		add_step(ret, writer_step(verdict_act(ret)), &ret->writer, main);
	if (ret->class == VERDICT_STALE_CACHED_VALUE)
		add_step(ret, "step:copied", &ret->other, main);
	add_wrong_free(facts, main, ret);
	if (BIT(ret->class) & PLAIN_FAULTS)
		add_step(ret, "step:put", &ret->other, main);
	if (main->kind == EVIDENCE_FREED_USE && !main->freed_use->write)
		add_step(ret, "step:freed-use", &main->freed_use->user, main);
	if (ret->class == VERDICT_DANGLING_HOLDER)
		add_first_use(facts, ret);
	add_user(main, ret);
	if (crash)
		add_step(ret, "step:fails", &crash->crash->stack, crash);
}

static void take_signature(const struct facts *facts, const struct proof *proof,
			   struct verdict *ret)
{
	if (proof && proof->main->signature[0] != '\0') {
		memcpy(ret->signature, proof->main->signature, sizeof(ret->signature));
		return;
	}
	if (facts->failure && facts->failure->signature[0] != '\0') {
		memcpy(ret->signature, facts->failure->signature, sizeof(ret->signature));
		return;
	}
	VEC_FOREACH (&facts->list->list, e)
		if (e->failing && e->signature[0] != '\0') {
			memcpy(ret->signature, e->signature, sizeof(ret->signature));
			return;
		}
}

static void state(const struct proof *proofs, size_t chosen, const struct facts *facts,
		  struct verdict *ret)
{
	const struct rule *rule = &rules[chosen];
	const struct proof *proof = &proofs[chosen];
	const struct evidence *crash = find_crash(facts, proof);
	struct said told = { 0 };

	ret->class = rule->class;
	ret->firm = is_firm(proof);
	ret->caught = proof->caught;
	ret->watched = proof->watched;
	tell(rule, facts, proof, ret, &told);
	SAY(&ret->sentence, "verdict", unfailed_value(rule, facts), said_part(&told),
	    account_value(facts, ret), counts_value(rule, proof, facts));
	/* What tells it best comes first. */
	VEC_FOREACH (&proof->pieces, piece)
		if (*piece == proof->main)
			VEC_PUSH(&ret->evidence, (*piece)->id);
	VEC_FOREACH (&proof->pieces, piece)
		if (*piece != proof->main)
			VEC_PUSH(&ret->evidence, (*piece)->id);
	said_list_copy(&ret->doubts, &proof->doubts);
	ret->crash = crash ? crash->id : 0;
	add_steps(facts, proof, crash, ret);
	add_alternatives(proofs, chosen, facts, ret);
	if (!ret->firm ||
	    (rule->class == VERDICT_USE_AFTER_FREE && proof->main->kind != EVIDENCE_REPORTED))
		rule_settles(facts, rule, &ret->next);
	take_signature(facts, proof, ret);
	ledger_fill(facts, rule, proof, ret);
}

static void give_up(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *crash = find_crash(facts, NULL);

	ret->class = VERDICT_NOT_CAUGHT;
	ret->crash = crash ? crash->id : 0;
	VEC_FOREACH (&facts->chain, link)
		if (link->watched > ret->watched)
			ret->watched = link->watched;
	if (crash)
		add_step(ret, "step:fails", &crash->crash->stack, crash);
	take_signature(facts, NULL, ret);
	ledger_fill(facts, NULL, NULL, ret);
	tell_not_caught(facts, ret);
}

static void weigh(const struct rule *rule, const struct facts *facts, struct proof *proof)
{
	rule->weigh(rule, facts, proof);
	if (!proof->fits)
		weigh_reported(rule, facts, proof);
	/* The tool saw the access itself: nothing here speaks against it. */
	if (proof->main && proof->main->kind != EVIDENCE_REPORTED)
		consider(rule, facts, proof);
}

void judge_evidence(const struct evidence_list *list, struct verdict *ret)
{
	struct proof *proofs = mem_alloc(rule_count * sizeof(*proofs));
	AUTO(facts_deinit) struct facts facts;
	size_t chosen;

	*ret = (struct verdict){ 0 };
	facts_init(&facts, list);
	ret->trials = facts.trials;
	for (size_t i = 0; i < rule_count; i++)
		weigh(&rules[i], &facts, &proofs[i]);
	chosen = choose(proofs);
	if (chosen < rule_count)
		state(proofs, chosen, &facts, ret);
	else
		give_up(&facts, ret);
	for (size_t i = 0; i < rule_count; i++)
		proof_deinit(&proofs[i]);
	mem_free(proofs);
}

bool judge_would_tell(const struct verdict *verdict, enum experiment_kind kind)
{
	return ledger_would_tell(verdict, kind);
}
