/*
 * Rules about caught writes: by one thread, and by two.
 */
#include "judge/rules.h"

#include "judge/considerations.h"
#include "judge/store_facts.h"

/* Was the slot given another value soon after this copy was made? */
static bool replaced_after(const struct facts *facts, const struct evidence *carrier)
{
	return VEC_ANY(&facts->list->list, e,
		       e->kind == EVIDENCE_WRITE && e->trial == carrier->trial &&
			       home_same(&e->write->home, &carrier->write->source) &&
			       e->write->when_ns > carrier->write->when_ns &&
			       write_changed(e->write));
}

static bool from_bad_slot(const struct facts *facts, const struct evidence *carrier,
			  const struct write_seen *slot_write)
{
	const struct write_seen *w = carrier->write;

	if (!(w->flags & WRITE_COPIED) || w->source.kind == HOME_UNKNOWN)
		return false;
	return w->source_state == SOURCE_CHANGED || w->source_state == SOURCE_TORN ||
	       (slot_write && slot_write->fit == FIT_NARROW) || replaced_after(facts, carrier);
}

/* Who copied it on from the home of this link, in the same trial; NULL at the first link. */
static const struct evidence *carrier_of(const struct facts *facts, const struct chain_link *link,
					 const struct evidence *write)
{
	size_t index = (size_t)(link - facts->chain.items);

	if (index == 0)
		return NULL;
	VEC_FOREACH (&facts->chain.items[index - 1].suspects, suspect)
		VEC_FOREACH (&suspect->writes, w)
			if ((*w)->trial == write->trial)
				return *w;
	return NULL;
}

/* The class of one caught write; VERDICT_NOT_CAUGHT when it says too little (rules_write.c). */
static enum verdict_class write_class(const struct facts *facts, const struct chain_link *link,
				      const struct evidence *write)
{
	const struct evidence *carrier = carrier_of(facts, link, write);

	if (target_used_later(facts, write))
		return VERDICT_DANGLING_HOLDER;
	if (carrier && from_bad_slot(facts, carrier, write->write))
		return VERDICT_STALE_CACHED_VALUE;
	if (!carrier && from_bad_slot(facts, write, NULL))
		return VERDICT_STALE_CACHED_VALUE;
	return store_by_place(write->write);
}

/* Where the free is only inferred, both that and what it is without it fit. */
static bool may_be(const struct rule *rule, const struct facts *facts,
		   const struct chain_link *link, const struct evidence *write)
{
	if ((rule->class == VERDICT_NARROW_WRITE || rule->class == VERDICT_WIDE_WRITE) &&
	    consider_cleared(facts, write))
		return false;
	return write_class(facts, link, write) == rule->class ||
	       (store_free_inferred(write->write) &&
		store_on_live_block(write->write) == rule->class);
}

static const struct suspect *best_suspect(const struct rule *rule, const struct facts *facts,
					  const struct chain_link *link, uint64_t *ret_caught)
{
	const struct suspect *best = NULL;

	*ret_caught = 0;
	VEC_FOREACH (&link->suspects, suspect) {
		uint64_t caught = 0;

		VEC_FOREACH (&suspect->writes, w)
			caught += may_be(rule, facts, link, *w);
		if (caught > *ret_caught) {
			*ret_caught = caught;
			best = suspect;
		}
	}
	return best;
}

const struct evidence *value_carrier(const struct facts *facts, const struct evidence *write)
{
	return carrier_of(facts, facts_origin(facts), write);
}

bool value_copied_torn(const struct facts *facts, const struct evidence *write)
{
	const struct evidence *carrier = value_carrier(facts, write);

	return carrier && carrier->write->source_state == SOURCE_TORN;
}

/* A freed block's poison or a canary was damaged, or the crash itself was a store into a freed
 * block: damage that nobody was caught at, or that is its own proof. */
static bool is_damage(const struct rule *rule, const struct evidence *e)
{
	if (e->kind == EVIDENCE_FREED_USE)
		return rule->class == VERDICT_WRITE_AFTER_FREE && e->freed_use->write &&
		       block_is_freed(e->freed_use->block);
	if (e->kind != EVIDENCE_CANARY || !e->canary->block)
		return false;
	switch (e->canary->side) {
	case CANARY_AFTER:
		return rule->class == VERDICT_OVERFLOW;
	case CANARY_BEFORE:
		return rule->class == VERDICT_UNDERFLOW;
	default:
		return rule->class == VERDICT_WRITE_AFTER_FREE;
	}
}

static bool has_writer(const struct evidence *e)
{
	return e->kind != EVIDENCE_CANARY || e->canary->writer.count > 0;
}

static void weigh_damage(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (!e->failing || !is_damage(rule, e))
			continue;
		/* The one with a writer says more, and one that leaves no doubt about the block. */
		if (!ret->main || (!has_writer(ret->main) && has_writer(e)) ||
		    (place_shared(ret->main) && e->kind == ret->main->kind && !place_shared(e)))
			ret->main = e;
		proof_add(ret, e);
	}
	proof_seen(ret);
}

void weigh_write(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct chain_link *link = facts_origin(facts);
	const struct suspect *suspect = NULL;
	uint64_t caught = 0;

	if (link)
		suspect = best_suspect(rule, facts, link, &caught);
	/* Caught in half of them or fewer, it is one of several stories, not the story. */
	if (!suspect || caught * 2 <= link->watched) {
		weigh_damage(rule, facts, ret);
		return;
	}
	ret->fits = true;
	ret->caught = caught;
	ret->watched = link->watched;
	VEC_FOREACH (&suspect->writes, w) {
		if (!may_be(rule, facts, link, *w))
			continue;
		if (!ret->main)
			ret->main = *w;
		VEC_PUSH(&ret->pieces, *w);
	}
	ret->suspect = suspect;
}

static void take_write(const struct write_seen *w, struct verdict *ret)
{
	take_store(ret, w);
	home_copy(&ret->home, &w->home);
	ret->victim = block_life_dup(w->victim);
	ret->base = block_life_dup(store_meant_block(w));
	/* Of a store that ran out of its block, the register may point to whoever lies there. */
	if (block_is_freed(w->base) && ret->class != VERDICT_OVERFLOW &&
	    ret->class != VERDICT_UNDERFLOW)
		stack_copy(&ret->freed_by, &w->base->freed);
	else if (block_is_freed(w->victim))
		stack_copy(&ret->freed_by, &w->victim->freed);
}

#define HUGE_LEN (UINT64_C(1) << 31) /* hardly meant: a negative number taken for a length */

static struct said_value bytes_value(const struct write_seen *w)
{
	struct said said = { 0 };

	if (w->copy && w->store_len >= HUGE_LEN)
		SAY(&said, "wrote:huge", said_number(w->store_len),
		    said_signed((int64_t)w->store_len), said_flag(w->store_len == COPY_NEGATIVE));
	else
		SAY(&said, "wrote:bytes", said_count(w->width),
		    said_flag(w->flags & WRITE_AT_MOST));
	return said_part(&said);
}

/* Where it went: into the field itself unless the class says otherwise. */
static struct said_value place_value(const struct write_seen *w, enum verdict_class class)
{
	const struct block_life *meant = store_meant_block(w);
	bool beside = class == VERDICT_OVERFLOW || class == VERDICT_UNDERFLOW;
	bool variable = meant && !meant->via && meant->key; /* no pointer led to it: its name did */
	struct said said = { 0 };

	if (class == VERDICT_WRITE_AFTER_FREE)
		SAY(&said, "place:freed");
	else if (class == VERDICT_WIDE_WRITE)
		SAY(&said, "place:over");
	else if (beside && !w->victim && (w->home.kind == HOME_STACK || variable))
		SAY(&said, "place:variable", said_flag(class == VERDICT_OVERFLOW),
		    variable ? said_text(meant->key) : said_none());
	else if (beside)
		SAY(&said, "place:beside", said_flag(class == VERDICT_OVERFLOW),
		    meant && w->victim && w->base->id != w->victim->id ? said_number(w->base->size)
								       : said_none());
	else
		SAY(&said, "place:field");
	return said_part(&said);
}

static void say_write(const struct write_seen *w, enum verdict_class class, struct said *sentence)
{
	SAY(sentence, "told:write", said_site(&w->writer), bytes_value(w), place_value(w, class),
	    said_home(&w->home), said_change(w->old, w->new, w->value_len));
}

static void tell_cached(const struct facts *facts, const struct evidence *main, struct verdict *ret,
			struct said *sentence)
{
	const struct evidence *carrier = value_carrier(facts, main) ?: main;

	SAY(sentence, "told:cached", said_site(&carrier->write->writer),
	    said_home(&carrier->write->source), said_home(&carrier->write->home),
	    carrier == main ? said_none() : said_site(&main->write->writer));
	if (carrier == main)
		return;
	/* The field that failed is what was damaged; the slot's writer is who did it. */
	stack_copy(&ret->other, &carrier->write->writer);
	home_deinit(&ret->home);
	home_copy(&ret->home, &carrier->write->home);
	block_life_free(ret->victim);
	ret->victim = block_life_dup(carrier->write->victim);
}

static void tell_damage(const struct evidence *main, struct verdict *ret, struct said *sentence)
{
	const struct block_life *block =
		main->kind == EVIDENCE_CANARY ? main->canary->block : main->freed_use->block;

	evidence_say(main, sentence);
	take_block(ret, block,
		   main->kind == EVIDENCE_CANARY ? main->canary->offset : main->freed_use->offset);
	if (main->kind == EVIDENCE_FREED_USE) {
		stack_copy(&ret->writer, &main->freed_use->user);
		if (main->freed_use->instruction)
			ret->instruction = mem_strdup(main->freed_use->instruction);
	} else {
		stack_copy(&ret->writer, &main->canary->writer);
		if (main->canary->instruction)
			ret->instruction = mem_strdup(main->canary->instruction);
	}
}

void tell_write(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct said *sentence)
{
	if (proof->main->kind != EVIDENCE_WRITE) {
		tell_damage(proof->main, ret, sentence);
		return;
	}
	take_write(proof->main->write, ret);
	if (ret->class == VERDICT_STALE_CACHED_VALUE)
		tell_cached(facts, proof->main, ret, sentence);
	else
		say_write(proof->main->write, ret->class, sentence);
}

/* A trap keeps its thread, and a lock that it has, for longer than this: who writes within it was
 * not ordered by that lock. */
#define TOGETHER_NS 3000u

static bool is_race(const struct evidence *e)
{
	return e->kind == EVIDENCE_RACE && e->failing && e->race->first && e->race->second &&
	       e->race->first->tid != e->race->second->tid && !e->race->locked &&
	       (e->race->lost_update || e->race->gap_ns < TOGETHER_NS) &&
	       !((e->race->first->flags | e->race->second->flags) & WRITE_ASYNC);
}

/* Where an update was lost, that home is the one. */
static const struct evidence *main_race(const struct facts *facts)
{
	const struct evidence *main = NULL;

	VEC_FOREACH (&facts->list->list, e)
		if (is_race(e) && (!main || (e->race->lost_update && !main->race->lost_update)))
			main = e;
	return main;
}

void weigh_race(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct chain_link *link = facts->chain.count > 0 ? &facts->chain.items[0] : NULL;

	ret->main = main_race(facts);
	if (!ret->main)
		return;
	VEC_FOREACH (&facts->list->list, e)
		if (is_race(e) && home_same(&e->race->home, &ret->main->race->home))
			VEC_PUSH(&ret->pieces, e);
	ret->caught = EVIDENCE_TRIALS(&ret->pieces);
	ret->watched = ret->caught;
	if (link && home_same(link->home, &ret->main->race->home) && link->watched > ret->watched)
		ret->watched = link->watched;
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_HOP && home_same(&e->hop->home, &ret->main->race->home) &&
		    e->hop->watched > ret->watched)
			ret->watched = e->hop->watched;
	ret->fits = ret->caught * 2 > ret->watched;
}

void tell_race(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct said *sentence)
{
	const struct race_seen *race = proof->main->race;

	take_write(race->second, ret);
	home_deinit(&ret->home);
	home_copy(&ret->home, &race->home);
	stack_copy(&ret->other, &race->first->writer);
	SAY(sentence, "told:race", said_home(&race->home), said_real((double)race->gap_ns / 1000),
	    said_site(&race->first->writer), said_site(&race->second->writer),
	    said_flag(race->lost_update));
	/* What came of it. */
	VEC_FOREACH (&facts->list->list, e)
		if (race->lost_update && e->kind == EVIDENCE_FREED_USE && e->failing &&
		    ret->freed_by.count == 0 && e->freed_use->block &&
		    e->freed_use->block->freed.count > 0) {
			stack_copy(&ret->freed_by, &e->freed_use->block->freed);
			said_add(sentence, said_site(&ret->freed_by));
		}
}
