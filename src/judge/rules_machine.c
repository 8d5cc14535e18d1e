/*
 * Rules about what is no bad write: files, the machine, growth, plain errors.
 */
#include "judge/rules.h"

#include <inttypes.h>

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
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->watched = EVIDENCE_TRIALS(&ret->pieces);
}

void tell_mapping(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct strbuf *sentence)
{
	const struct mapping_cut *m = proof->main->mapping;

	evidence_describe(proof->main, sentence);
	if (m->cut)
		stack_copy(&ret->writer, &m->cut->stack);
}

/* ---- the machine ---- */

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
	ret->fits = (h->memory_tested && h->memory_errors > 0) || signs >= 2;
	if (facts_writer_twice(facts))
		ret->fits = h->memory_tested && h->memory_errors > 0;
	ret->caught = h->bit_flips;
	ret->watched = h->bit_flips;
}

void tell_host(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct strbuf *sentence)
{
	evidence_describe(proof->main, sentence);
}

/* ---- growth ---- */

void weigh_growth(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		const struct growth_seen *g = e->growth;

		if (e->kind != EVIDENCE_GROWTH || g->usable == 0 || g->trials < g->usable ||
		    !(g->p < GROWTH_P))
			continue;
		if (!ret->main || g->bytes_per_test > ret->main->growth->bytes_per_test)
			ret->main = e;
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->main->growth->trials;
	ret->watched = ret->main->growth->usable;
}

void tell_growth(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		 struct strbuf *sentence)
{
	const struct growth_seen *g = proof->main->growth;

	say_site(sentence, &g->site);
	strbuf_addf(sentence,
		    " allocates blocks that stay: %.1f blocks, %.0f bytes more with every test",
		    g->blocks_per_test, g->bytes_per_test);
	if (g->holder)
		strbuf_addf(sentence, "; %s still points to them", g->holder);
	stack_copy(&ret->writer, &g->site);
}

/* ---- plain errors ---- */

void weigh_plain(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		/* Any sign of memory trouble, and the plain error is a matter of its own. */
		if (e->failing && e->kind != EVIDENCE_PLAIN && e->kind != EVIDENCE_HOP &&
		    e->kind != EVIDENCE_WATCH && e->kind != EVIDENCE_HOST &&
		    e->kind != EVIDENCE_SIGHTING) {
			ret->main = NULL;
			VEC_DEINIT(&ret->pieces);
			return;
		}
		if (e->kind != EVIDENCE_PLAIN || !e->plain->always)
			continue;
		if (!ret->main)
			ret->main = e;
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->main->plain->failed;
	ret->watched = ret->main->plain->trials;
}

void tell_plain(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence)
{
	evidence_describe(proof->main, sentence);
}
