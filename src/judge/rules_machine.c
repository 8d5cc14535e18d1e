/*
 * Rules about what is no bad write: files, the machine, growth, plain errors.
 */
#include "judge/rules.h"

#include "judge/ledger.h"
#include "judge/signs.h"

#define GROWTH_P 0.001

void weigh_mapping(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_MAPPING || !e->failing ||
		    e->mapping->present >= e->mapping->mapped)
			continue;
		if (!ret->main || (!ret->main->mapping->cut && e->mapping->cut))
			ret->main = e;
		proof_add(ret, e);
	}
	proof_seen(ret);
}

void tell_mapping(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct said *sentence)
{
	const struct mapping_cut *m = proof->main->mapping;

	evidence_say(proof->main, sentence);
	if (m->cut)
		stack_copy(&ret->writer, &m->cut->stack);
}

void weigh_host(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct host_signs *h;
	unsigned int signs = 0;

	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_HOST)
			ret->main = e; /* the latest has counted most */
	if (!ret->main)
		return;
	h = ret->main->host;
	VEC_PUSH(&ret->pieces, ret->main);
	signs += signs_flips(h);
	signs += signs_signals(h);
	signs += signs_core(h);
	signs += signs_node(h);
	ret->fits = (h->memory_tested && h->memory_errors > 0) || signs >= 2;
	if (facts_writer_twice(facts))
		ret->fits = h->memory_tested && h->memory_errors > 0;
	ret->caught = h->bit_flips;
	ret->watched = h->bit_flips;
}

void tell_host(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct said *sentence)
{
	evidence_say(proof->main, sentence);
}

void weigh_growth(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		const struct growth_seen *g = e->growth;

		if (e->kind != EVIDENCE_GROWTH || g->usable == 0 || g->trials < g->usable ||
		    !(g->p < GROWTH_P))
			continue;
		if (!ret->main || g->bytes_per_test > ret->main->growth->bytes_per_test)
			ret->main = e;
		proof_add(ret, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->main->growth->trials;
	ret->watched = ret->main->growth->usable;
}

void tell_growth(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		 struct said *sentence)
{
	const struct growth_seen *g = proof->main->growth;

	SAY(sentence, "told:growth", said_site(&g->site), said_real(g->blocks_per_test),
	    said_real(g->bytes_per_test), said_copied(&g->holder));
	stack_copy(&ret->writer, &g->site);
}

/* Seen in a failing trial, it has to do with memory. */
static bool is_memory_sign(const struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_FAILURE:
	case EVIDENCE_EXPERIMENT:
	case EVIDENCE_HOP:
	case EVIDENCE_WATCH:
	case EVIDENCE_HOST:
	case EVIDENCE_SIGHTING:
		return false;
	default:
		return e->failing;
	}
}

/* An exit status alone says nothing about memory. Experiments that see writes out of bounds, wrong
 * frees, and reads of freed and of fresh memory must have looked at enough failing trials. */
static bool memory_looked_at(const struct facts *facts)
{
	static const enum explanation needed[] = { HYP_OVERFLOW, HYP_STALE, HYP_DOUBLE_FREE,
						   HYP_DANGLING, HYP_UNINITIALISED };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!ledger_look(facts, needed[i]).excluded)
			return false;
	return true;
}

void weigh_plain(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct failure_seen *f = facts->failure;

	if (!f || f->failed == 0 || f->fault || !f->always || !memory_looked_at(facts))
		return;
	VEC_FOREACH (&facts->list->list, e)
		if (is_memory_sign(e))
			return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind == EVIDENCE_FAILURE)
			ret->main = e;
		if (e->kind == EVIDENCE_FAILURE || e->kind == EVIDENCE_EXPERIMENT)
			VEC_PUSH(&ret->pieces, e);
	}
	ret->fits = true;
	ret->caught = ret->watched = facts->made[EXPERIMENT_GUARDS].telling;
}

void tell_plain(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct said *sentence)
{
	SAY(sentence, "told:plain", said_number(proof->caught), said_evidence(proof->main));
}
