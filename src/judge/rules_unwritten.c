/*
 * Rules about values that no caught write explains: something outside wrote them, nobody did, or
 * they are another object's.
 */
#include "base/cstr.h"
#include "judge/rules.h"

#include "judge/store_facts.h"

static bool somebody_caught(const struct facts *facts, uint64_t trial)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			VEC_FOREACH (&suspect->writes, w)
				if (trial == 0 || (*w)->trial == trial)
					return true;
	return false;
}

void weigh_outside(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		uint64_t changed;

		if (e->kind != EVIDENCE_OUTSIDE || !e->failing || e->outside->gap)
			continue;
		changed = e->outside->old ^ e->outside->new;
		if (changed == 0 || somebody_caught(facts, e->trial))
			continue;
		proof_add(ret, e);
	}
	if (!ret->main)
		return;
	ret->caught = ret->watched = EVIDENCE_TRIALS(&ret->pieces);
	ret->watched = home_watched(facts, &ret->main->outside->home, ret->watched);
	ret->fits = ret->caught * 2 > ret->watched;
}

void tell_outside(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct said *sentence)
{
	const struct outside_change *o = proof->main->outside;

	evidence_say(proof->main, sentence);
	home_copy(&ret->home, &o->home);
	ret->victim = block_life_dup(o->victim);
	ret->values_known = true;
	ret->old = o->old;
	ret->new = o->new;
	ret->value_len = o->value_len;
}

/* A variable in its function's own frame, above which are its arguments. */
static bool is_local(const struct home *home)
{
	return home->kind == HOME_STACK && home->offset < 0 && !home->field;
}

static bool never_written(const struct facts *facts, const struct evidence *e)
{
	const struct watch_account *w = e->watch;

	if (e->kind != EVIDENCE_WATCH || !e->failing || !w->victim_watched || !w->since_birth ||
	    !w->value_known || w->hits > 0 || w->value != w->birth_value)
		return false;
	/* Zero is what calloc() leaves there, too, and what many a field is meant to begin with;
	 * but nobody clears frames. */
	if (w->value == 0 && !is_local(&w->home))
		return false;
	VEC_FOREACH (&facts->list->list, other)
		if (other->kind == EVIDENCE_OUTSIDE && other->trial == e->trial)
			return false;
	return !somebody_caught(facts, e->trial);
}

/* What stood in new blocks decides whether it fails: somebody uses it before it is written. */
static bool weigh_odds(const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_ODDS)
			continue;
		if (!ret->main || (e->odds->home.len > 0 && ret->main->odds->home.len == 0))
			ret->main = e;
		proof_add(ret, e);
	}
	if (!ret->main)
		return false;
	ret->fits = true;
	ret->caught = ret->watched = ret->main->odds->garbage_failed;
	return true;
}

void weigh_uninitialised(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	if (weigh_odds(facts, ret))
		return;

	VEC_FOREACH (&facts->list->list, e) {
		if (!never_written(facts, e))
			continue;
		proof_add(ret, e);
	}
	if (!ret->main)
		return;
	ret->caught = ret->watched = EVIDENCE_TRIALS(&ret->pieces);
	ret->watched = home_watched(facts, &ret->main->watch->home, ret->watched);
	ret->fits = ret->caught * 2 > ret->watched;
}

static void tell_odds(const struct evidence *e, struct verdict *ret, struct said *sentence)
{
	evidence_say(e, sentence);
	home_copy(&ret->home, &e->odds->home);
	ret->victim = mem_alloc(sizeof(*ret->victim));
	*ret->victim = (struct block_life){ .via = mem_strdup("the odds"),
					    .key = cstr_dup(e->odds->home.key),
					    .state = BLOCK_LIVE };
	stack_copy(&ret->victim->allocated, &e->odds->allocated);
}

void tell_uninitialised(const struct facts *facts, const struct proof *proof, struct verdict *ret,
			struct said *sentence)
{
	const struct watch_account *w = proof->main->watch;

	if (proof->main->kind == EVIDENCE_ODDS) {
		tell_odds(proof->main, ret, sentence);
		return;
	}

	SAY(sentence, "told:unwritten", said_home(&w->home), said_number(w->value),
	    said_flag(is_local(&w->home)), said_flag(w->victim != NULL),
	    said_site(w->victim ? &w->victim->allocated : NULL));
	home_copy(&ret->home, &w->home);
	ret->victim = block_life_dup(w->victim);
}

static bool is_conflation(const struct facts *facts, const struct evidence *e)
{
	const struct conflation_seen *c = e->conflation;

	if (e->kind != EVIDENCE_CONFLATION || !e->failing || c->first_id == c->second_id ||
	    c->first_id == 0 || c->second_id == 0)
		return false;
	/* Somebody wrote that value into the second block, and not as its first: then a write
	 * happened. */
	return !VEC_ANY(
		&facts->list->list, other,
		other->kind == EVIDENCE_WRITE && other->trial == e->trial &&
			other->write->home.block_id == c->second_id &&
			other->write->home.offset == c->offset && write_changed(other->write) &&
			other->write->new == c->second_value && !store_is_first(other->write));
}

void weigh_conflation(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (!is_conflation(facts, e))
			continue;
		proof_add(ret, e);
	}
	proof_seen(ret);
}

/* What the failure found in the home that it read first, and who put that there. */
static const struct evidence *what_failed(const struct facts *facts, uint64_t trial)
{
	return VEC_FIND(&facts->list->list, e,
			e->kind == EVIDENCE_WRITE && e->failing && e->trial == trial &&
				e->write->flags & WRITE_LAST && facts->chain.count > 0 &&
				home_same(&e->write->home, facts->chain.items[0].home));
}

void tell_conflation(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		     struct said *sentence)
{
	const struct conflation_seen *c = proof->main->conflation;
	const struct evidence *failed = what_failed(facts, proof->main->trial);
	struct evidence bare = *proof->main;

	bare.note = (struct said){ 0 }; /* a doubt, told as such */
	SAY(sentence, "told:conflation", said_evidence(&bare));
	if (failed) {
		said_add(sentence, said_flag(true));
		said_add(sentence, said_number(failed->write->new));
		said_add(sentence, said_home(&failed->write->home));
		said_add(sentence, said_site(&failed->write->writer));
	}
	ret->victim = block_life_dup(c->second);
	ret->home = (struct home){ .kind = HOME_BLOCK,
				   .key = cstr_dup(c->second_key),
				   .block_id = c->second_id,
				   .offset = c->offset,
				   .address = c->address + (uint64_t)c->offset };
	ret->values_known = true;
	ret->old = c->first_value;
	ret->new = c->second_value;
	ret->value_len = c->value_len;
	if (c->first)
		stack_copy(&ret->freed_by, &c->first->freed);
}
