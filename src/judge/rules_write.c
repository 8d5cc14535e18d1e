/*
 * Rules about caught writes: by one thread, and by two.
 *
 * To be caught is no crime: a constructor, a rightful update and a copy of somebody else's bad
 * value are all last writes now and then. What speaks for them becomes a doubt, and a verdict with
 * doubts is not firm.
 */
#include "judge/rules.h"

#include <inttypes.h>
#include <string.h>

/* Farther away than this, a write is an index gone wild or a base pointer with a bias of the
 * compiler's rather than a run over the end. */
#define NEAR_BYTES 65536

#define DEALT_OUT_BYTES 512 /* and larger: a block that objects may be laid out in */

#define CONTESTED \
	"the damage goes on at the guards of another block: it may have come out of that one"

static bool is_freed(const struct block_life *block)
{
	return block && (block->state == BLOCK_FREED || block->former);
}

/* Where the store lies relative to a live block that it did not mean to leave. */
static enum verdict_class beside(const struct block_life *block, uint64_t start, uint64_t len)
{
	uint64_t end = block->start + block->size;

	if (start == 0 || len == 0)
		return VERDICT_NOT_CAUGHT;
	if (start >= end || (start >= block->start && len > end - start))
		return VERDICT_OVERFLOW;
	return start < block->start ? VERDICT_UNDERFLOW : VERDICT_NOT_CAUGHT;
}

/* A canary was watched: the home lies beside its own block. */
static bool is_canary(const struct write_seen *w)
{
	return w->victim && w->home.kind == HOME_BLOCK &&
	       (w->home.offset < 0 || (uint64_t)w->home.offset >= w->victim->size);
}

/* The block that the store's pointer is to. On a canary one that has left its block says nothing,
 * nor does one that runs: it came from elsewhere.
 */
static const struct block_life *meant_block(const struct write_seen *w)
{
	bool gone = w->flags & WRITE_RUNS || (w->base && w->base->beyond);

	return gone && is_canary(w) ? NULL : w->base;
}

/* Between two blocks a canary is the one's behind as well as the other's before, so a pointer into
 * one of them says more than whose canary it is. */
static enum verdict_class on_canary(const struct write_seen *w)
{
	const struct block_life *meant = meant_block(w);
	enum verdict_class class = VERDICT_NOT_CAUGHT;

	if (!is_canary(w))
		return VERDICT_NOT_CAUGHT;
	/* A pointer that runs in a copy is in the next block, freed or not. */
	if (meant && meant->id != 0 && !is_freed(meant))
		class = beside(meant, w->store_start, w->store_len);
	if (class != VERDICT_NOT_CAUGHT)
		return class;
	return w->home.offset < 0 ? VERDICT_UNDERFLOW : VERDICT_OVERFLOW;
}

static enum verdict_class by_fit(const struct write_seen *w)
{
	if (w->fit == FIT_WIDE)
		return VERDICT_WIDE_WRITE;
	return w->fit == FIT_UNKNOWN ? VERDICT_NOT_CAUGHT : VERDICT_NARROW_WRITE;
}

static enum verdict_class on_live_block(const struct write_seen *w)
{
	enum verdict_class class = on_canary(w);

	/* What keeps a frame together is nobody's variable: it was run over. */
	if (w->home.kind == HOME_STACK && w->home.field && !(w->flags & WRITE_NAMED))
		return VERDICT_OVERFLOW;
	if (class != VERDICT_NOT_CAUGHT)
		return class;
	if (w->base && w->base->id != 0 && (!w->victim || w->base->id != w->victim->id)) {
		class = beside(w->base, w->store_start, w->store_len);
		if (class != VERDICT_NOT_CAUGHT)
			return class;
	}
	/* Out of the very block that it meant. */
	if (w->base && w->victim && w->base->id == w->victim->id && w->victim->size > 0 &&
	    w->store_start >= w->victim->start &&
	    beside(w->victim, w->store_start, w->store_len) == VERDICT_OVERFLOW)
		return VERDICT_OVERFLOW;
	return by_fit(w);
}

/* The guard of a live block was hit by a store that lies outside of the freed block that its
 * pointer is to: it came from the live one. */
static bool ran_into_freed(const struct write_seen *w)
{
	return is_canary(w) && !is_freed(w->victim) && w->store_start != 0 &&
	       (w->store_start < w->base->start ||
		w->store_start >= w->base->start + w->base->size);
}

/* A pointer that runs was in a freed block when it stored to the live one beside it: it came by,
 * from the one side or the other, and nobody kept a pointer to what was freed. */
static bool came_by(const struct write_seen *w)
{
	return w->flags & WRITE_RUNS && is_freed(w->base) && w->victim && !is_freed(w->victim) &&
	       w->store_start != 0 &&
	       (w->store_start < w->base->start ||
		w->store_start >= w->base->start + w->base->size);
}

static enum verdict_class by_place(const struct write_seen *w)
{
	if (came_by(w) && !is_canary(w))
		return by_fit(w);

	if ((is_freed(w->base) && !ran_into_freed(w)) || is_freed(w->victim))
		return VERDICT_WRITE_AFTER_FREE;
	return on_live_block(w);
}

/* Was the slot given another value soon after this copy was made? */
static bool replaced_after(const struct facts *facts, const struct evidence *carrier)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_WRITE && e->trial == carrier->trial &&
		    home_same(&e->write->home, &carrier->write->source) &&
		    e->write->when_ns > carrier->write->when_ns && write_changed(e->write))
			return true;
	return false;
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

/* Who copied it on from the home of this stage, in the same trial; NULL at the first stage. */
static const struct evidence *carrier_of(const struct facts *facts, const struct stage *stage,
					 const struct evidence *write)
{
	size_t index = (size_t)(stage - facts->chain.items);

	if (index == 0)
		return NULL;
	VEC_FOREACH (&facts->chain.items[index - 1].suspects, suspect)
		VEC_FOREACH (&suspect->writes, w)
			if ((*w)->trial == write->trial)
				return *w;
	return NULL;
}

enum verdict_class write_class(const struct facts *facts, const struct stage *stage,
			       const struct evidence *write)
{
	const struct evidence *carrier = carrier_of(facts, stage, write);

	if (target_used_later(facts, write))
		return VERDICT_DANGLING_HOLDER;
	if (carrier && from_bad_slot(facts, carrier, write->write))
		return VERDICT_STALE_CACHED_VALUE;
	if (!carrier && from_bad_slot(facts, write, NULL))
		return VERDICT_STALE_CACHED_VALUE;
	return by_place(write->write);
}

/* Where the free is only inferred, both that and what it is without it fit. */
static bool may_be(const struct rule *rule, const struct facts *facts, const struct stage *stage,
		   const struct evidence *write)
{
	/* A pointer to a live block is what belongs there; and who means the field and leaves what
	 * may stand there is its owner. */
	if ((write->write->flags & WRITE_SOUND || write_excuse(facts, write)) &&
	    (rule->class == VERDICT_NARROW_WRITE || rule->class == VERDICT_WIDE_WRITE))
		return false;
	return write_class(facts, stage, write) == rule->class ||
	       (write->write->flags & WRITE_FREE_INFERRED &&
		on_live_block(write->write) == rule->class);
}

static const struct suspect *best_suspect(const struct rule *rule, const struct facts *facts,
					  const struct stage *stage, uint64_t *ret_caught)
{
	const struct suspect *best = NULL;

	*ret_caught = 0;
	VEC_FOREACH (&stage->suspects, suspect) {
		uint64_t caught = 0;

		VEC_FOREACH (&suspect->writes, w)
			caught += may_be(rule, facts, stage, *w);
		if (caught > *ret_caught) {
			*ret_caught = caught;
			best = suspect;
		}
	}
	return best;
}

static bool other_thread_near(const struct facts *facts, const struct write_seen *w)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_RACE && e->failing && !e->race->locked && e->race->first &&
		    e->race->second && e->race->first->tid != e->race->second->tid &&
		    home_same(&e->race->home, &w->home))
			return true;
	return false;
}

static uint64_t distance(const struct write_seen *w)
{
	uint64_t end = w->base->start + w->base->size;

	return w->store_start >= end ? w->store_start - end : w->base->start - w->store_start;
}

/* memcpy, strcpy and the like write as many bytes at once as the machine can: how wide one of their
 * stores is says nothing, where they did not begin in this block. */
static bool in_a_copy(const struct write_seen *w)
{
	bool here =
		w->victim ? w->base && w->base->id == w->victim->id : w->home.kind == HOME_STACK;

	return here && w->writer.count > 0 && frame_is_runtime(&w->writer.frames[0]) &&
	       !(w->flags & WRITE_KERNEL) && w->instruction &&
	       (strstr(w->instruction, "mm") || strncmp(w->instruction, "rep ", 4) == 0);
}

/* A pointer that a loop moves on, or a few bytes of a field, of text mostly, through a pointer to
 * somewhere in its block: it may have run there out of a neighbour, and guards stop what looks at
 * the bytes that it runs over. */
static bool may_have_run(const struct write_seen *w)
{
	if (w->flags & WRITE_RUNS)
		return true;
	return w->victim && w->base && w->base->id == w->victim->id && w->fit == FIT_NARROW &&
	       w->base->value != w->victim->start && !(w->flags & WRITE_NAMED) &&
	       w->store_len > 0 && w->store_len < 4 && w->value_len == 8;
}

/* The first piece of an arena begins where its block does, so the pointer does not tell; the size
 * may. */
static bool may_be_dealt_out(const struct write_seen *w)
{
	return w->victim && w->victim->size >= DEALT_OUT_BYTES && w->base &&
	       w->base->id == w->victim->id;
}

/* A guard was hit, but not where it begins, by a pointer that is to no block: bytes between the
 * block and the damage are whole. */
static bool is_apart(const struct write_seen *w)
{
	const struct block_life *meant = meant_block(w);

	return is_canary(w) && w->home.offset > 0 && (uint64_t)w->home.offset > w->victim->size &&
	       (!meant || meant->id == 0);
}

/* The damage fits another block as well, and no pointer says which was meant. One into a freed
 * block may have run there. What ends at a block's start and does not begin at another's end is the
 * first one's, unless it runs: then bytes may have been skipped. */
static bool is_contested(const struct facts *facts, const struct write_seen *w)
{
	const struct block_life *meant = meant_block(w);

	if ((w->home.offset < 0 && !(w->flags & WRITE_RUNS)) ||
	    (is_canary(w) && meant && meant->id != 0))
		return false;
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_CANARY && e->canary->contested && e->canary->block &&
		    key_same_context(e->canary->block->key, w->home.key))
			return true;
	return false;
}

static bool copied_torn(const struct facts *facts, const struct evidence *slot_write)
{
	const struct evidence *carrier = carrier_of(facts, facts_origin(facts), slot_write);

	return carrier && carrier->write->source_state == SOURCE_TORN;
}

static void doubt_writer(const struct rule *rule, const struct facts *facts,
			 const struct suspect *suspect, struct proof *ret)
{
	const struct write_seen *w = ret->main->write;
	bool beside_block = rule->class == VERDICT_OVERFLOW || rule->class == VERDICT_UNDERFLOW;

	if (!suspect->verified)
		proof_doubt(ret, "the value that it left was not seen to be the one that failed");
	/* Half a value in a slot does no harm until somebody copies it. */
	if (suspect->harmless.count > 0 && !copied_torn(facts, ret->main))
		proof_doubt(ret,
			    "the same instruction made the same change %zu time%s without harm "
			    "(evidence %" PRIu64 ", trial %" PRIu64 ")",
			    suspect->harmless.count, suspect->harmless.count == 1 ? "" : "s",
			    suspect->harmless.items[0]->id, suspect->harmless.items[0]->trial);
	else if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
		 write_habit(facts->list, ret->main) > 0)
		proof_doubt(ret,
			    "the same instruction left what is no address there before, without "
			    "harm");
	if (w->flags & WRITE_TWIN)
		proof_doubt(ret,
			    "the bad value stood in other places, too: that it was read from this "
			    "one was not seen");
	if (w->flags & WRITE_FREE_INFERRED)
		proof_doubt(ret, "%s",
			    ret->main->note ? ret->main->note
					    : "that the block had been freed is inferred");
	if (w->flags & WRITE_FREE_UNKNOWN)
		proof_doubt(ret, "whether the object had been given back by then was not seen%s%s",
			    ret->main->note ? "; " : "", ret->main->note ? ret->main->note : "");
	if (w->flags & WRITE_FIRST && !beside_block && rule->class != VERDICT_WRITE_AFTER_FREE)
		proof_doubt(ret, "it gave the field its first value, it did not spoil one");
	if (w->flags & WRITE_COPIED && rule->class != VERDICT_STALE_CACHED_VALUE)
		proof_doubt(ret, "it only copied the value, and nobody was caught at its source");
	if (rule->class == VERDICT_STALE_CACHED_VALUE &&
	    !carrier_of(facts, facts_origin(facts), ret->main))
		proof_doubt(ret, "nobody was caught writing the slot that it was copied from");
	if (rule->class == VERDICT_NARROW_WRITE && may_have_been_mapped(facts, ret->main))
		proof_doubt(ret, "it looks like an address: something may have been mapped there "
				 "when it was stored");
	if (rule->class == VERDICT_NARROW_WRITE && w->fit == FIT_EXACT && w->flags & WRITE_READABLE)
		proof_doubt(ret, "what it stored is an address that could be read: of a variable "
				 "that has ended, or rightly so");
	if (rule->class == VERDICT_NARROW_WRITE && clears_field(w))
		proof_doubt(ret,
			    "it %s the whole field, as whoever is done with it does: the one who "
			    "reads it may be wrong instead",
			    w->new == 0 ? "cleared" : "set all bits of");
	if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
	    write_over_number(facts->list, ret->main))
		proof_doubt(ret,
			    "what it replaced was no address either: whoever reads it as one may "
			    "take the object for another kind");
	if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
	    may_have_run(w))
		proof_doubt(ret,
			    w->flags & WRITE_RUNS
				    ? "a loop moves its pointer on: it may have run there out of "
				      "the block before or behind"
				    : "it wrote part of the field through a pointer to its "
				      "middle: one that may have run there out of the block "
				      "before or behind");
	if (rule->class == VERDICT_WIDE_WRITE && covers_block(w))
		proof_doubt(ret, "it wrote the whole block: a reset or a copy, no slip in width");
	if (rule->class == VERDICT_WIDE_WRITE && in_a_copy(w))
		proof_doubt(ret, "it is a piece of a copy by the C library: where that began was "
				 "not seen");
	if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
	    freed_block_used(facts, ret->main->trial))
		proof_doubt(ret, "the failure went through a freed block as well");
	if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
	    w->flags & WRITE_RECYCLED)
		proof_doubt(ret,
			    "another kind of block had that place before: whoever reads it may "
			    "have kept a pointer to that one");
	if ((rule->class == VERDICT_WIDE_WRITE || rule->class == VERDICT_NARROW_WRITE) &&
	    (w->flags & WRITE_PIECE || may_be_dealt_out(w)) && !(w->flags & WRITE_UPDATE))
		proof_doubt(ret,
			    "it set a field of an object inside the block: if the program deals "
			    "out pieces of it (--allocator), whoever reads it may have kept a "
			    "pointer to an earlier one");
	if (rule->class == VERDICT_OVERFLOW && is_apart(w))
		proof_doubt(ret,
			    "%" PRIu64 " bytes behind the block's end are whole: it may have come "
			    "from the block behind, or from afar",
			    (uint64_t)w->home.offset - w->victim->size);
	if (beside_block && w->flags & WRITE_RUNS && !is_canary(w) && w->victim && w->base &&
	    w->base->id != w->victim->id)
		proof_doubt(ret,
			    "a loop moves its pointer on: out of which of the two blocks it came "
			    "was not seen");
	if (is_canary(w) && (rule->class == VERDICT_OVERFLOW ? w->flags & WRITE_RUNS_DOWN
							     : rule->class == VERDICT_UNDERFLOW &&
								       w->flags & WRITE_RUNS_UP))
		proof_doubt(ret,
			    "a loop moves its pointer %s: it may have come out of the block %s",
			    rule->class == VERDICT_OVERFLOW ? "down" : "up",
			    rule->class == VERDICT_OVERFLOW ? "behind" : "before");
	if ((beside_block || rule->class == VERDICT_WRITE_AFTER_FREE) && is_contested(facts, w))
		proof_doubt(ret, CONTESTED);
	if (other_thread_near(facts, w))
		proof_doubt(ret, "another thread wrote the field at nearly the same time");
	if (beside_block && w->base && w->victim && w->base->id != w->victim->id &&
	    beside(w->base, w->store_start, w->store_len) != VERDICT_NOT_CAUGHT &&
	    w->store_start >= w->base->start + w->base->size && distance(w) > NEAR_BYTES)
		proof_doubt(ret, "the two blocks lie %" PRIu64 " bytes apart", distance(w));
}

/* A freed block's poison or a canary was damaged, or the crash itself was a store into a freed
 * block: damage that nobody was caught at, or that is its own proof. */
static bool is_damage(const struct rule *rule, const struct evidence *e)
{
	if (e->kind == EVIDENCE_FREED_USE)
		return rule->class == VERDICT_WRITE_AFTER_FREE && e->freed_use->write &&
		       is_freed(e->freed_use->block);
	if (e->kind != EVIDENCE_CANARY || !e->canary->block)
		return false;
	switch (e->canary->side) {
	case CANARY_AFTER:
		return rule->class == VERDICT_OVERFLOW && e->canary->adjacent;
	case CANARY_BEFORE:
		return rule->class == VERDICT_UNDERFLOW && e->canary->adjacent;
	default:
		return rule->class == VERDICT_WRITE_AFTER_FREE;
	}
}

static void weigh_damage(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (!e->failing || !is_damage(rule, e))
			continue;
		/* The one with a writer says more, and one that leaves no doubt about the block. */
		if (!ret->main ||
		    (ret->main->kind == EVIDENCE_CANARY && e->kind != ret->main->kind) ||
		    (place_shared(ret->main) && e->kind == ret->main->kind && !place_shared(e)))
			ret->main = e;
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->watched = EVIDENCE_TRIALS(&ret->pieces);
	doubt_counts(ret);
	if (place_shared(ret->main))
		proof_doubt(ret, SHARED_PLACE);
	if (ret->main->kind == EVIDENCE_CANARY && ret->main->canary->contested &&
	    ret->main->canary->side != CANARY_BEFORE)
		proof_doubt(ret, CONTESTED);
	if (ret->main->kind == EVIDENCE_CANARY)
		proof_doubt(ret, "the damage was found afterwards; its writer was not caught");
}

void weigh_write(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct stage *stage = facts_origin(facts);
	const struct suspect *suspect = NULL;
	uint64_t caught = 0;

	if (stage)
		suspect = best_suspect(rule, facts, stage, &caught);
	/* Caught in half of them or fewer, it is one of several stories, not the story. */
	if (!suspect || caught * 2 <= stage->watched) {
		weigh_damage(rule, facts, ret);
		return;
	}
	ret->fits = true;
	ret->caught = caught;
	ret->watched = stage->watched;
	VEC_FOREACH (&suspect->writes, w) {
		if (!may_be(rule, facts, stage, *w))
			continue;
		if (!ret->main)
			ret->main = *w;
		VEC_PUSH(&ret->pieces, *w);
	}
	doubt_counts(ret);
	doubt_writer(rule, facts, suspect, ret);
}

static void take_write(const struct write_seen *w, struct verdict *ret)
{
	stack_copy(&ret->writer, &w->writer);
	ret->instruction = w->instruction ? mem_strdup(w->instruction) : NULL;
	ret->width = w->width;
	ret->fit = w->fit;
	ret->values_known = w->value_len > 0;
	ret->old = w->old;
	ret->new = w->new;
	ret->value_len = w->value_len;
	ret->tid = w->tid;
	home_copy(&ret->home, &w->home);
	ret->victim = block_life_dup(w->victim);
	ret->base = block_life_dup(meant_block(w));
	if (is_freed(w->base))
		stack_copy(&ret->freed_by, &w->base->freed);
	else if (is_freed(w->victim))
		stack_copy(&ret->freed_by, &w->victim->freed);
}

static void say_bytes(struct strbuf *sb, const struct write_seen *w)
{
	if (w->width > 0)
		strbuf_addf(sb, " wrote %u byte%s ", w->width, w->width == 1 ? "" : "s");
	else
		strbuf_adds(sb, " wrote ");
}

static void say_write(const struct write_seen *w, enum verdict_class class, struct strbuf *sb)
{
	say_site(sb, &w->writer);
	say_bytes(sb, w);
	switch (class) {
	case VERDICT_WRITE_AFTER_FREE:
		strbuf_adds(sb, "through a pointer to a block that had been freed, into ");
		break;
	case VERDICT_OVERFLOW:
	case VERDICT_UNDERFLOW:
		if (!w->victim && w->home.kind == HOME_STACK) {
			strbuf_adds(sb, "over the end of a variable on the stack, into ");
			break;
		}
		if (meant_block(w) && w->victim && w->base->id != w->victim->id)
			strbuf_addf(sb, "%s a block of %" PRIu64 " bytes, into ",
				    class == VERDICT_OVERFLOW ? "behind the end of"
							      : "before the start of",
				    w->base->size);
		else
			strbuf_addf(sb, "%s its block, at ",
				    class == VERDICT_OVERFLOW ? "behind the end of"
							      : "before the start of");
		break;
	case VERDICT_WIDE_WRITE:
		strbuf_adds(sb, "that reach over ");
		break;
	default:
		strbuf_adds(sb, "into ");
	}
	home_describe(&w->home, sb);
	if (w->value_len > 0) {
		strbuf_adds(sb, ": ");
		say_values(sb, w->old, w->new, w->value_len);
	}
}

static void tell_cached(const struct facts *facts, const struct evidence *main, struct verdict *ret,
			struct strbuf *sb)
{
	const struct evidence *carrier = carrier_of(facts, facts_origin(facts), main) ?: main;

	say_site(sb, &carrier->write->writer);
	strbuf_adds(sb, " copied a value that was not whole, or no longer valid, from ");
	home_describe(&carrier->write->source, sb);
	strbuf_adds(sb, " into ");
	home_describe(&carrier->write->home, sb);
	if (carrier == main)
		return;
	strbuf_adds(sb, "; it had been put there by ");
	say_site(sb, &main->write->writer);
	/* The field that failed is what was damaged; the slot's writer is who did it. */
	stack_copy(&ret->other, &carrier->write->writer);
	home_deinit(&ret->home);
	home_copy(&ret->home, &carrier->write->home);
	block_life_free(ret->victim);
	ret->victim = block_life_dup(carrier->write->victim);
}

static void tell_damage(const struct evidence *main, struct verdict *ret, struct strbuf *sb)
{
	const struct block_life *block =
		main->kind == EVIDENCE_CANARY ? main->canary->block : main->freed_use->block;

	evidence_describe(main, sb);
	ret->victim = block_life_dup(block);
	ret->home =
		(struct home){ .kind = HOME_BLOCK,
			       .key = block->key ? mem_strdup(block->key) : NULL,
			       .block_id = block->id,
			       .offset = main->kind == EVIDENCE_CANARY ? main->canary->offset
								       : main->freed_use->offset };
	stack_copy(&ret->freed_by, &block->freed);
	if (main->kind == EVIDENCE_FREED_USE) {
		stack_copy(&ret->writer, &main->freed_use->user);
		if (main->freed_use->instruction)
			ret->instruction = mem_strdup(main->freed_use->instruction);
	}
}

void tell_write(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence)
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

/* ---- two threads ---- */

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

void weigh_race(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct stage *stage = facts->chain.count > 0 ? &facts->chain.items[0] : NULL;
	bool lost = true;

	/* Where an update was lost, that home is the one. */
	VEC_FOREACH (&facts->list->list, e)
		if (is_race(e) &&
		    (!ret->main || (e->race->lost_update && !ret->main->race->lost_update)))
			ret->main = e;
	VEC_FOREACH (&facts->list->list, e) {
		if (!is_race(e) || !home_same(&e->race->home, &ret->main->race->home))
			continue;
		lost = lost && e->race->lost_update;
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->caught = EVIDENCE_TRIALS(&ret->pieces);
	ret->watched = ret->caught;
	if (stage && home_same(stage->home, &ret->main->race->home) &&
	    stage->watched > ret->watched)
		ret->watched = stage->watched;
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_HOP && home_same(&e->hop->home, &ret->main->race->home) &&
		    e->hop->watched > ret->watched)
			ret->watched = e->hop->watched;
	ret->fits = ret->caught * 2 > ret->watched;
	/* Once two threads have interleaved, it is proven; that it does so in most failures says
	 * that these come from it. */
	if (!lost || ret->caught < 2)
		doubt_counts(ret);
	if (!lost)
		proof_doubt(ret, "no update was seen to be lost: two threads may well write one "
				 "field one after the other");
}

void tell_race(const struct facts *facts, const struct proof *proof, struct verdict *ret,
	       struct strbuf *sentence)
{
	const struct race_seen *race = proof->main->race;

	take_write(race->second, ret);
	home_deinit(&ret->home);
	home_copy(&ret->home, &race->home);
	stack_copy(&ret->other, &race->first->writer);
	strbuf_adds(sentence, "two threads wrote ");
	home_describe(&race->home, sentence);
	strbuf_addf(sentence, " within %.3f µs: ", (double)race->gap_ns / 1000);
	say_site(sentence, &race->first->writer);
	strbuf_adds(sentence, ", then ");
	say_site(sentence, &race->second->writer);
	if (race->lost_update)
		strbuf_adds(sentence, ", from a value that the first had replaced");
	/* What came of it. */
	VEC_FOREACH (&facts->list->list, e)
		if (race->lost_update && e->kind == EVIDENCE_FREED_USE && e->failing &&
		    ret->freed_by.count == 0 && e->freed_use->block &&
		    e->freed_use->block->freed.count > 0) {
			stack_copy(&ret->freed_by, &e->freed_use->block->freed);
			strbuf_adds(sentence, "; a block was freed too early by ");
			say_site(sentence, &ret->freed_by);
		}
}
