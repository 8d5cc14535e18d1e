/*
 * What speaks for or against a verdict, a row each. See considerations.h.
 *
 * To be caught is no crime: a constructor, a rightful update and a copy of somebody else's bad
 * value are all last writes now and then. Each predicate answers one question; the table at the end
 * says about which classes it is asked, and what follows.
 */
#include "judge/considerations.h"

#include <string.h>

#include "judge/ledger.h"
#include "judge/store_facts.h"

/* Farther away than this, a write is an index gone wild, or a base pointer with an offset of the
 * compiler's, rather than a run over the end. */
#define NEAR_BYTES 65536

/* Who is accused by a comparison of trials alone is accused firmly from here on. */
#define SURE_P 0.001

/* A reader of vectors that runs over an end is seen nearer than this. */
#define BESIDE_BYTES 64

static const struct write_seen *store(const struct weighing *w)
{
	return w->write->write;
}

static bool is_store(const struct weighing *w)
{
	return w->write != NULL;
}

static bool main_is(const struct weighing *w, enum evidence_kind kind)
{
	return w->proof->main->kind == kind;
}

static bool nothing_lost(const struct weighing *w)
{
	return VEC_ANY(&w->proof->pieces, piece, !(*piece)->race->lost_update);
}

/* Where trials are told apart by what was seen in each. What a comparison of many trials says
 * (odds) counts by itself, and two threads that lost an update prove it in one. */
static bool counts_trials(const struct weighing *w)
{
	if (main_is(w, EVIDENCE_ODDS))
		return false;
	if (w->rule->class == VERDICT_RACE)
		return nothing_lost(w) || w->proof->caught < 2;
	return true;
}

static bool seen_once(const struct weighing *w)
{
	return counts_trials(w) && w->proof->caught < 2;
}

static bool not_in_all(const struct weighing *w)
{
	return counts_trials(w) && w->proof->caught < w->proof->watched;
}

static void add_not_in_all(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_number(w->proof->watched - w->proof->caught));
	said_add(doubt, said_number(w->proof->watched));
}

static bool value_not_seen(const struct weighing *w)
{
	return is_store(w) && w->proof->suspect && !w->proof->suspect->verified;
}

/* Half a value in a slot does no harm until somebody copies it. */
static bool harmless_before(const struct weighing *w)
{
	return is_store(w) && w->proof->suspect && w->proof->suspect->harmless.count > 0 &&
	       !value_copied_torn(w->facts, w->write);
}

static void add_harmless_before(const struct weighing *w, struct said *doubt)
{
	const struct suspect *s = w->proof->suspect;

	said_add(doubt, said_number(s->harmless.count));
	said_add(doubt, said_number(s->harmless.items[0]->id));
	said_add(doubt, said_number(s->harmless.items[0]->trial));
}

static bool nonpointer_before(const struct weighing *w)
{
	return is_store(w) && !harmless_before(w) && store_repeats(w->facts->list, w->write) > 0;
}

static void add_note(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_copied(&w->write->note));
}

static bool only_copied(const struct weighing *w)
{
	return is_store(w) && store(w)->flags & WRITE_COPIED;
}

static bool slot_writer_unknown(const struct weighing *w)
{
	return is_store(w) && !value_carrier(w->facts, w->write);
}

static bool mapped_then(const struct weighing *w)
{
	return is_store(w) && store_target_unmapped(w->facts, w->write);
}

static bool readable_address(const struct weighing *w)
{
	return is_store(w) && store(w)->fit == FIT_EXACT && store_leaves_readable(store(w));
}

static void add_clears_whole_field(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_flag(store(w)->new == 0));
}

static bool replaced_number(const struct weighing *w)
{
	return is_store(w) && store_over_number(w->facts->list, w->write);
}

/* On its way out of a neighbouring block it breaks that block's guards. Those that looked at enough
 * failing trials were whole. */
static bool guards_whole(const struct facts *facts)
{
	return facts->made[EXPERIMENT_GUARDS].trials > 0 &&
	       ledger_look(facts, HYP_OVERFLOW).excluded;
}

static bool in_loop(const struct weighing *w)
{
	return is_store(w) && store_in_loop(store(w)) && !guards_whole(w->facts);
}

static bool mid_field(const struct weighing *w)
{
	return is_store(w) && !store_in_loop(store(w)) && store_may_have_run(store(w)) &&
	       !guards_whole(w->facts);
}

static bool freed_block_too(const struct weighing *w)
{
	return is_store(w) && freed_block_used(w->facts, w->write->trial);
}

static bool object_inside(const struct weighing *w)
{
	return is_store(w) && (store_in_piece(store(w)) || store_may_be_dealt_out(store(w))) &&
	       !store_is_update(store(w));
}

static bool another_thread(const struct weighing *w)
{
	if (!is_store(w))
		return false;
	return VEC_ANY(&w->facts->list->list, e,
		       e->kind == EVIDENCE_RACE && e->failing && !e->race->locked &&
			       e->race->first && e->race->second &&
			       e->race->first->tid != e->race->second->tid &&
			       home_same(&e->race->home, &store(w)->home));
}

/* Bytes between the end of the block and the store. The store counts, not the bytes that it
 * changed: it may have written what was there already. */
static uint64_t gap_bytes(const struct write_seen *s)
{
	uint64_t end = s->victim->start + s->victim->size;
	uint64_t first =
		s->store_start != 0 ? s->store_start : s->victim->start + (uint64_t)s->home.offset;

	return first > end ? first - end : 0;
}

/* A guard was hit, but not where it begins, and the pointer belongs to no block. */
static bool gap_before(const struct weighing *w)
{
	const struct block_life *meant;

	if (!is_store(w) || !store_on_guard(store(w)))
		return false;
	meant = store_meant_block(store(w));
	return store(w)->home.offset > 0 &&
	       (uint64_t)store(w)->home.offset > store(w)->victim->size &&
	       gap_bytes(store(w)) > 0 && (!meant || meant->id == 0);
}

static void add_gap_before(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_number(gap_bytes(store(w))));
}

/* The store begins in its own block, and only its length says that it left it. A hit field of
 * another block would prove that. */
static bool mask_unknown(const struct weighing *w)
{
	return is_store(w) && store(w)->flags & WRITE_AT_MOST && !store_on_guard(store(w)) &&
	       store(w)->base && store(w)->victim && store(w)->base->id == store(w)->victim->id;
}

static bool other_base(const struct weighing *w)
{
	return store(w)->base && store(w)->victim && store(w)->base->id != store(w)->victim->id;
}

static bool loop_between_blocks(const struct weighing *w)
{
	return in_loop(w) && !store_on_guard(store(w)) && other_base(w);
}

static bool loop_down_into_guard(const struct weighing *w)
{
	return is_store(w) && store_on_guard(store(w)) && store_loops_down(store(w));
}

static bool loop_up_into_guard(const struct weighing *w)
{
	return is_store(w) && store_on_guard(store(w)) && store_loops_up(store(w));
}

/* The damage fits another block as well, and no pointer says which was meant. What ends at a
 * block's start and does not begin at another's end is the first one's, unless a loop made it: it
 * may have skipped bytes. */
static bool damage_goes_on(const struct weighing *w)
{
	const struct block_life *meant;

	if (!is_store(w))
		return main_is(w, EVIDENCE_CANARY) && w->proof->main->canary->goes_on_at &&
		       w->proof->main->canary->side != CANARY_BEFORE;
	meant = store_meant_block(store(w));
	if ((store(w)->home.offset < 0 && !store_in_loop(store(w))) ||
	    (store_on_guard(store(w)) && meant && meant->id != 0))
		return false;
	return VEC_ANY(&w->facts->list->list, e,
		       e->kind == EVIDENCE_CANARY && e->canary->goes_on_at && e->canary->block &&
			       key_same_context(e->canary->block->key, store(w)->home.key));
}

static bool far_apart(const struct weighing *w)
{
	const struct write_seen *s = is_store(w) ? store(w) : NULL;

	return s && other_base(w) &&
	       store_beside(s->base, s->store_start, s->store_len) != VERDICT_NOT_CAUGHT &&
	       s->store_start >= s->base->start + s->base->size && store_distance(s) > NEAR_BYTES;
}

static void add_far_apart(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_number(store_distance(store(w))));
}

static bool found_afterwards(const struct weighing *w)
{
	return main_is(w, EVIDENCE_CANARY) && w->proof->main->canary->writer.count == 0;
}

static bool place_not_sure(const struct weighing *w)
{
	bool shared = false;

	if (main_is(w, EVIDENCE_FREED_USE) && w->rule->class == VERDICT_WRITE_AFTER_FREE)
		return place_shared(w->proof->main);
	if (w->rule->class != VERDICT_USE_AFTER_FREE)
		return false;
	VEC_FOREACH (&w->proof->pieces, piece) {
		shared |= place_shared(*piece);
		if ((*piece)->kind == EVIDENCE_FREED_USE && !place_shared(*piece))
			return false;
	}
	return shared;
}

static bool all_recycled(const struct weighing *w)
{
	return VEC_ALL(&w->proof->pieces, piece, freed_block_recycled(*piece));
}

static bool only_by_poison(const struct weighing *w)
{
	return !VEC_ANY(&w->proof->pieces, piece,
			(*piece)->kind != EVIDENCE_FREED_USE || !(*piece)->freed_use->poison);
}

/* What stood in such a block came out of trials that passed, too. */
static bool read_in_passing(const struct weighing *w)
{
	const struct evidence *main = w->proof->main;

	if (main->kind != EVIDENCE_FREED_USE || !main->freed_use->block)
		return false;
	return VEC_ANY(&w->facts->list->list, e,
		       e->kind == EVIDENCE_FREED_USE && !e->failing && e->freed_use->poison &&
			       e->freed_use->block &&
			       key_same_context(e->freed_use->block->key,
						main->freed_use->block->key));
}

static bool same_place(const struct stack *a, const struct stack *b)
{
	const struct frame *x = stack_site(a), *y = stack_site(b);

	return x && y && x->function && y->function && strcmp(x->function, y->function) == 0;
}

/* A crash by a pointer that the same function read outside of such a block. */
static bool crash_shows_read(const struct weighing *w, const struct freed_use *read)
{
	VEC_FOREACH (&w->facts->list->list, e) {
		if (e->kind != EVIDENCE_CRASH || !e->failing ||
		    !same_place(&e->crash->stack, &read->user))
			continue;
		VEC_FOREACH (&e->crash->blocks, block)
			if (block->left && key_same_context(block->key, read->block->key))
				return true;
	}
	return false;
}

/* Seen at a closed page in trials that failed, and let through: that it leads to the failure is
 * likely, and not shown. Where nothing fails, the access itself is what was looked for. */
static bool let_through(const struct weighing *w)
{
	bool failed = false;

	if (main_is(w, EVIDENCE_OVER_READ) && crash_shows_read(w, w->proof->main->freed_use))
		return false;
	VEC_FOREACH (&w->proof->pieces, piece)
		if (!evidence_fenced(*piece))
			return false;
	for (unsigned int i = 0; i < EXPERIMENT_KINDS; i++)
		failed |= w->facts->made[i].telling > 0;
	return failed || w->facts->list->failed > 0;
}

/* Who runs over an end is seen at the end, and an index keeps the block's address in a register.
 * Elsewhere only the page tells the block: the pointer may have come from somewhere else. */
static bool stray_pointer(const struct weighing *w)
{
	const struct freed_use *use = w->proof->main->freed_use;
	int64_t behind;

	if (!main_is(w, EVIDENCE_OVER_READ) || !use->unpointed || !use->block)
		return false;
	behind = use->offset - (int64_t)use->block->size;
	return behind >= 0 ? behind >= BESIDE_BYTES : -use->offset > BESIDE_BYTES;
}

static const struct holder_seen *holder(const struct weighing *w)
{
	return main_is(w, EVIDENCE_HOLDER) ? w->proof->main->holder : NULL;
}

/* In the trials that it was seen in, all that points to the block are values that look like it. */
static bool inexact_holder(const struct weighing *w)
{
	bool found = false;

	VEC_FOREACH (&w->facts->list->list, e) {
		if (e->kind != EVIDENCE_HOLDER || !e->failing || !e->holder->used)
			continue;
		if (!holder_by_looks(e))
			return false;
		found = true;
	}
	return found;
}

static bool pointer_on_stack(const struct weighing *w)
{
	return holder(w) && holder(w)->on_stack_too;
}

/* Who stored the pointer to that block, and whether it was counted, is known. */
static bool keeper_known(const struct facts *facts, const struct block_life *block)
{
	return VEC_ANY(&facts->list->list, e,
		       e->kind == EVIDENCE_HOLDER && e->failing && e->holder->target &&
			       (e->holder->counted || e->holder->written_by.count > 0) &&
			       key_same_context(e->holder->target->key, block->key));
}

/* Then the reference was there, and somebody gave it back who had none. */
static bool holder_counted(const struct weighing *w)
{
	return VEC_ANY(&w->proof->pieces, piece,
		       (*piece)->kind == EVIDENCE_HOLDER && (*piece)->holder->counted);
}

/* A list that has ended may still point to its items: it is kept to be given out again. */
static bool is_interpreters_own(const struct block_life *block)
{
	const struct frame *made = block ? stack_site(&block->allocated) : NULL;

	return made && frame_is_interpreter(made) && made->function &&
	       strncmp(made->function, "PyList_", 7) == 0;
}

/* Who holds an object of Python's may have its reference: the store shows it. */
static bool store_unseen(const struct weighing *w)
{
	return holder(w) && (holder(w)->target->python || is_interpreters_own(holder(w)->holder)) &&
	       !VEC_ANY(&w->proof->pieces, piece,
			(*piece)->kind == EVIDENCE_HOLDER &&
				(*piece)->holder->written_by.count > 0);
}

/* An object that counts its references: the first to touch it after its end takes one, and has the
 * pointer from somebody who kept it. */
static bool takes_reference(const struct weighing *w)
{
	const struct evidence *main = w->proof->main, *use = NULL;

	if (is_store(w))
		use = first_use(w->facts, store(w)->victim);
	else if (main->kind == EVIDENCE_FREED_USE)
		use = first_use(w->facts, main->freed_use->block);
	return use && !use->freed_use->fenced && keeper_known(w->facts, use->freed_use->block);
}

static bool by_exclusion(const struct weighing *w)
{
	return release_by_exclusion(w->proof->main, false);
}

static bool by_several(const struct weighing *w)
{
	return release_by_exclusion(w->proof->main, true);
}

static bool freer_unknown(const struct weighing *w)
{
	return holder(w) && holder(w)->target->freed.count == 0 && !holder(w)->frame;
}

static bool freed_pointer_before(const struct weighing *w)
{
	return bad_free_after_stale_use(w->facts, w->proof->main);
}

static bool only_passing(const struct weighing *w)
{
	return !VEC_ANY(&w->proof->pieces, piece, (*piece)->failing);
}

static bool mere_mismatch(const struct weighing *w)
{
	return w->proof->main->bad_free->kind == BAD_FREE_MISMATCHED;
}

static bool own_allocator(const struct weighing *w)
{
	return w->proof->main->bad_free->named;
}

static bool foreign_pointer(const struct weighing *w)
{
	if (w->proof->main->bad_free->kind != BAD_FREE_FOREIGN)
		return false;
	return !VEC_ANY(&w->facts->list->list, e,
			e->kind == EVIDENCE_CRASH && e->trial == w->proof->main->trial);
}

static bool bytes_not_found(const struct weighing *w)
{
	return main_is(w, EVIDENCE_ODDS) && w->proof->main->odds->home.len == 0;
}

/* Of a thousand such findings one is chance. */
static bool may_be_chance(const struct weighing *w)
{
	return main_is(w, EVIDENCE_ODDS) &&
	       !VEC_ANY(&w->proof->pieces, piece,
			(*piece)->kind == EVIDENCE_ODDS && (*piece)->odds->p <= SURE_P);
}

static void add_chance(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_real(w->proof->main->odds->p * 100));
}

static bool one_bit(const struct weighing *w)
{
	VEC_FOREACH (&w->proof->pieces, piece) {
		uint64_t changed = (*piece)->outside->old ^ (*piece)->outside->new;

		if ((changed & (changed - 1)) != 0)
			return false;
	}
	return true;
}

static bool system_calls_unseen(const struct weighing *w)
{
	return VEC_ANY(&w->proof->pieces, piece, !(*piece)->outside->kernel_writes);
}

static bool instances_noted(const struct weighing *w)
{
	return said_anything(&w->proof->main->note);
}

static void add_instances_noted(const struct weighing *w, struct said *doubt)
{
	said_add(doubt, said_copied(&w->proof->main->note));
}

static bool not_watched_between(const struct weighing *w)
{
	return VEC_ANY(&w->proof->pieces, piece, !(*piece)->conflation->watched);
}

static bool cutter_unknown(const struct weighing *w)
{
	return !VEC_ANY(&w->proof->pieces, piece, (*piece)->mapping->cut);
}

/* It may have been made to die of this: by the time that an observer takes, or by what that writes
 * into blocks. */
static bool only_disturbed(const struct weighing *w)
{
	return VEC_ALL(&w->proof->pieces, piece, said_anything(&(*piece)->note));
}

static bool no_memory_test(const struct weighing *w)
{
	const struct host_signs *h = w->proof->main->host;

	return h->memory_errors == 0 || !h->memory_tested;
}

static bool writer_caught(const struct weighing *w)
{
	return facts_writer_twice(w->facts);
}

#define TAKEN_LEAST 5u

/* Every run fails, none with guards does, and the guards were damaged each time: what would have
 * been hit lies behind a guard then. */
static bool guards_take_it(const struct facts *facts)
{
	const struct failure_seen *f = facts->failure;
	const struct experiment_made *g = &facts->made[EXPERIMENT_GUARDS];

	return f && f->always && g->telling == 0 && g->trials >= TAKEN_LEAST &&
	       g->shown_passing == g->trials;
}

/* It fails without a fault, and not in just those trials in which memory was damaged. */
static bool damage_apart(const struct weighing *w)
{
	const struct failure_seen *f = w->facts->failure;
	const struct experiment_made *g = &w->facts->made[EXPERIMENT_GUARDS];

	return f && f->failed > 0 && !f->fault && g->shown + g->shown_passing > 0 &&
	       (g->shown_passing > 0 || g->shown < g->telling) && !guards_take_it(w->facts);
}

/* The opposite: guards are damaged in place of whatever lies there without them, and it fails all
 * the same. */
static bool fails_all_the_same(const struct weighing *w)
{
	const struct failure_seen *f = w->facts->failure;
	const struct experiment_made *g = &w->facts->made[EXPERIMENT_GUARDS];

	return f && f->always && !f->fault && (!is_store(w) || store_on_guard(store(w))) &&
	       g->trials >= TAKEN_LEAST && g->telling == g->trials && g->shown == g->trials;
}

static uint32_t not_excluded(const struct facts *facts)
{
	uint32_t left = 0;

	for (unsigned int i = 0; i < HYPOTHESES; i++)
		if (i != HYP_PLAIN && i != HYP_GROWTH && i != HYP_HOST &&
		    !ledger_look(facts, i).excluded)
			left |= BIT(i);
	return left;
}

static bool memory_not_excluded(const struct weighing *w)
{
	return not_excluded(w->facts) != 0;
}

static void add_memory_not_excluded(const struct weighing *w, struct said *doubt)
{
	uint32_t left = not_excluded(w->facts);

	for (unsigned int i = 0; i < HYPOTHESES; i++)
		if (left & BIT(i))
			said_add(doubt, said_text(ledger_id(i)));
}

/* Damage that would explain the fault shows itself to guards and fences. */
static bool damage_not_looked_for(const struct weighing *w)
{
	static const enum explanation needed[] = { HYP_OVERFLOW, HYP_STALE, HYP_DOUBLE_FREE };

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!ledger_look(w->facts, needed[i]).excluded)
			return true;
	return w->facts->made[EXPERIMENT_FENCES].telling == 0;
}

/* Whatever it is, something else was wrong in a failing trial. */
static bool memory_signs_too(const struct weighing *w)
{
	return VEC_ANY(&w->facts->list->list, e,
		       e->failing &&
			       (e->kind == EVIDENCE_FREED_USE || e->kind == EVIDENCE_OVER_READ ||
				e->kind == EVIDENCE_CANARY || e->kind == EVIDENCE_BAD_FREE ||
				e->kind == EVIDENCE_HOLDER || e->kind == EVIDENCE_OUTSIDE ||
				e->kind == EVIDENCE_CONFLATION || e->kind == EVIDENCE_RACE ||
				e->kind == EVIDENCE_ODDS));
}

static bool divisor_unknown(const struct weighing *w)
{
	return !fault_value_of(w->facts, w->proof->main);
}

/* Did the field hold a number that a division used? */
static bool is_divisor(const struct weighing *w)
{
	return VEC_ANY(&w->facts->list->list, e,
		       e->kind == EVIDENCE_FAULT_VALUE && e->trial == w->write->trial &&
			       e->fault_value->divisor &&
			       home_same(&e->fault_value->home, &store(w)->home));
}

static bool one_measurement(const struct weighing *w)
{
	return w->proof->caught < 2;
}

static bool fills_recycled_block(const struct weighing *w)
{
	return store_fills_own_block(store(w)) && store_place_recycled(store(w));
}

static bool stores_numbers_often(const struct weighing *w)
{
	return repeats_with_numbers(w->facts->list, w->write);
}

static bool stores_nonpointer_often(const struct weighing *w)
{
	return store_repeats(w->facts->list, w->write) >= REPEATED;
}

static bool number_in_passing(const struct weighing *w)
{
	return store_has_twin(store(w)) && store_numbers_pass(w->facts->list, w->write);
}

static bool smaller_fields(const struct weighing *w)
{
	return store(w)->fit == FIT_NARROW && store_by_parts(store(w));
}

/* By its place in the block, or in an object that is a piece of it. */
static bool means_field(const struct weighing *w)
{
	return (store_names_field(store(w)) || store_in_piece(store(w))) &&
	       !store_is_update(store(w));
}

static bool own_variable(const struct weighing *w)
{
	return means_field(w) && store(w)->home.kind == HOME_STACK;
}

static bool clears_own_field(const struct weighing *w)
{
	return means_field(w) && store_clears_field(store(w)) && store(w)->new == 0;
}

static bool marks_own_field(const struct weighing *w)
{
	return means_field(w) && store_clears_field(store(w)) && store(w)->new != 0;
}

static bool address_may_have_been_right(const struct weighing *w)
{
	const struct write_seen *s = store(w);

	return means_field(w) &&
	       (store_target_unmapped(w->facts, w->write) ||
		(s->fit == FIT_EXACT && s->value_len == 8 && store_leaves_readable(s)));
}

static bool stores_divisor(const struct weighing *w)
{
	return means_field(w) && is_divisor(w);
}

static bool block_address(const struct weighing *w)
{
	return means_field(w) && store(w)->fit == FIT_EXACT && store_leaves_block_address(store(w));
}

/* Fences saw the function that failed read outside of a block of its own: what it found there is
 * its own affair. */
static bool reader_strayed(const struct weighing *w)
{
	VEC_FOREACH (&w->facts->list->list, e) {
		if (e->kind != EVIDENCE_OVER_READ || !e->failing || !e->freed_use->fenced)
			continue;
		VEC_FOREACH (&w->facts->list->list, crash)
			if (crash->kind == EVIDENCE_CRASH && crash->failing &&
			    same_place(&crash->crash->stack, &e->freed_use->user))
				return true;
	}
	return false;
}

/* A pointer into a block may be meant to be one: it is the free that was wrong. */
static bool freed_as_stored(const struct weighing *w)
{
	return store_of_freed(w->facts, w->write) && !store_moves_freed(w->facts, w->write);
}

#define CLASS(name) BIT(VERDICT_##name)
#define IN_FIELD (CLASS(NARROW_WRITE) | CLASS(WIDE_WRITE))
#define BESIDE (CLASS(OVERFLOW) | CLASS(UNDERFLOW))
#define STORES (IN_FIELD | BESIDE | CLASS(WRITE_AFTER_FREE) | CLASS(STALE_CACHED_VALUE))
#define BAD_FREES (CLASS(DOUBLE_FREE) | CLASS(INVALID_FREE))
#define FAULTS                                                                    \
	(CLASS(NULL_POINTER) | CLASS(DIVISION_BY_ZERO) | CLASS(STACK_EXHAUSTED) | \
	 CLASS(ILLEGAL_INSTRUCTION))
#define COUNTED                                                                  \
	(STORES | CLASS(RACE) | CLASS(DANGLING_HOLDER) | CLASS(USE_AFTER_FREE) | \
	 CLASS(OVER_READ) | CLASS(OVER_RELEASE) | CLASS(UNINITIALISED) |         \
	 CLASS(INSTANCE_CONFLATION) | CLASS(OUTSIDE_WRITER))

/* Doubts in the order in which they are told; of the rows that clear a writer the first that holds
 * is told. */
const struct consideration considerations[] = {
	{ "seen-once", COUNTED, seen_once, DOUBT, NULL },
	{ "not-in-all", COUNTED, not_in_all, DOUBT, add_not_in_all },
	{ "value-not-seen", STORES, value_not_seen, DOUBT, NULL },
	{ "harmless-before", STORES, harmless_before, DOUBT, add_harmless_before },
	{ "nonpointer-before", IN_FIELD, nonpointer_before, DOUBT, NULL },
	{ "other-places", STORES, .of_store = store_has_twin },
	{ "free-inferred", STORES, .of_store = store_free_inferred, .add = add_note },
	{ "free-unknown", STORES, .of_store = store_free_unknown, .add = add_note },
	{ "first-value", IN_FIELD | CLASS(STALE_CACHED_VALUE), .of_store = store_is_first },
	{ "only-copied", STORES & ~CLASS(STALE_CACHED_VALUE), only_copied, DOUBT, NULL },
	{ "slot-writer-unknown", CLASS(STALE_CACHED_VALUE), slot_writer_unknown, DOUBT, NULL },
	{ "mapped-then", CLASS(NARROW_WRITE), mapped_then, DOUBT, NULL },
	{ "readable-address", CLASS(NARROW_WRITE), readable_address, DOUBT, NULL },
	{ "clears-field", CLASS(NARROW_WRITE), .of_store = store_clears_field,
	  .add = add_clears_whole_field },
	{ "replaced-number", IN_FIELD, replaced_number, DOUBT, NULL },
	{ "in-loop", IN_FIELD, in_loop, DOUBT, NULL },
	{ "mid-field", IN_FIELD, mid_field, DOUBT, NULL },
	{ "whole-block", CLASS(WIDE_WRITE), .of_store = store_covers_block },
	{ "copy-piece", CLASS(WIDE_WRITE), .of_store = store_in_copy },
	{ "freed-block-too", IN_FIELD, freed_block_too, DOUBT, NULL },
	{ "recycled-place", IN_FIELD, .of_store = store_place_recycled },
	{ "object-inside", IN_FIELD, object_inside, DOUBT, NULL },
	{ "gap-before", CLASS(OVERFLOW), gap_before, DOUBT, add_gap_before },
	{ "mask-unknown", CLASS(OVERFLOW), mask_unknown, DOUBT, NULL },
	{ "loop-between-blocks", BESIDE, loop_between_blocks, DOUBT, NULL },
	{ "loop-down", CLASS(OVERFLOW), loop_down_into_guard, DOUBT, NULL },
	{ "loop-up", CLASS(UNDERFLOW), loop_up_into_guard, DOUBT, NULL },
	{ "damage-goes-on", BESIDE | CLASS(WRITE_AFTER_FREE), damage_goes_on, DOUBT, NULL },
	{ "another-thread", STORES, another_thread, DOUBT, NULL },
	{ "far-apart", BESIDE, far_apart, DOUBT, add_far_apart },
	{ "freed-block-recycled", CLASS(USE_AFTER_FREE), all_recycled, DOUBT, NULL },
	{ "place-shared", CLASS(WRITE_AFTER_FREE) | CLASS(USE_AFTER_FREE), place_not_sure, DOUBT,
	  NULL },
	{ "only-by-poison", CLASS(USE_AFTER_FREE), only_by_poison, DOUBT, NULL },
	{ "read-in-passing", CLASS(USE_AFTER_FREE), read_in_passing, DOUBT, NULL },
	{ "let-through",
	  CLASS(OVER_READ) | CLASS(USE_AFTER_FREE) | CLASS(WRITE_AFTER_FREE) | BESIDE, let_through,
	  DOUBT, NULL },
	{ "stray-pointer", CLASS(OVER_READ), stray_pointer, DOUBT, NULL },
	{ "writer-not-caught", BESIDE | CLASS(WRITE_AFTER_FREE), found_afterwards, DOUBT, NULL },
	{ "inexact-holder", CLASS(USE_AFTER_FREE) | CLASS(WRITE_AFTER_FREE), inexact_holder, DOUBT,
	  NULL },
	{ "pointer-on-stack", CLASS(DANGLING_HOLDER), pointer_on_stack, DOUBT, NULL },
	{ "freer-unknown", CLASS(DANGLING_HOLDER), freer_unknown, DOUBT, NULL },
	{ "holder-counted", CLASS(DANGLING_HOLDER), holder_counted, DOUBT, NULL },
	{ "store-unseen", CLASS(DANGLING_HOLDER), store_unseen, DOUBT, NULL },
	{ "takes-reference", CLASS(WRITE_AFTER_FREE) | CLASS(USE_AFTER_FREE), takes_reference,
	  DOUBT, NULL },
	{ "by-exclusion", CLASS(OVER_RELEASE), by_exclusion, DOUBT, NULL },
	{ "by-several", CLASS(OVER_RELEASE), by_several, DOUBT, NULL },
	{ "stale-use-before", BAD_FREES, freed_pointer_before, DOUBT, NULL },
	{ "only-passing", BAD_FREES, only_passing, DOUBT, NULL },
	{ "mere-mismatch", BAD_FREES, mere_mismatch, DOUBT, NULL },
	{ "own-allocator", BAD_FREES, own_allocator, DOUBT, NULL },
	{ "foreign-pointer", BAD_FREES, foreign_pointer, DOUBT, NULL },
	{ "bytes-not-found", CLASS(UNINITIALISED), bytes_not_found, DOUBT, NULL },
	{ "may-be-chance", CLASS(UNINITIALISED), may_be_chance, DOUBT, add_chance },
	{ "one-bit", CLASS(OUTSIDE_WRITER), one_bit, DOUBT, NULL },
	{ "system-calls-unseen", CLASS(OUTSIDE_WRITER), system_calls_unseen, DOUBT, NULL },
	{ "instances-noted", CLASS(INSTANCE_CONFLATION), instances_noted, DOUBT,
	  add_instances_noted },
	{ "not-watched-between", CLASS(INSTANCE_CONFLATION), not_watched_between, DOUBT, NULL },
	{ "nothing-lost", CLASS(RACE), nothing_lost, DOUBT, NULL },
	{ "cutter-unknown", CLASS(MAPPING_TRUNCATED), cutter_unknown, DOUBT, NULL },
	{ "only-disturbed", CLASS(MAPPING_TRUNCATED) | FAULTS, only_disturbed, DOUBT, NULL },
	{ "no-memory-test", CLASS(HOST_SUSPECTED), no_memory_test, DOUBT, NULL },
	{ "writer-caught", CLASS(HOST_SUSPECTED), writer_caught, DOUBT, NULL },
	{ "damage-apart", STORES | BAD_FREES | CLASS(USE_AFTER_FREE) | CLASS(DANGLING_HOLDER),
	  damage_apart, DOUBT, NULL },
	{ "fails-all-the-same", BESIDE, fails_all_the_same, DOUBT, NULL },
	{ "memory-not-excluded", CLASS(NOT_MEMORY), memory_not_excluded, DOUBT,
	  add_memory_not_excluded },
	{ "damage-not-looked-for", FAULTS, damage_not_looked_for, DOUBT, NULL },
	{ "memory-signs-too", FAULTS, memory_signs_too, DOUBT, NULL },
	{ "divisor-unknown", CLASS(DIVISION_BY_ZERO), divisor_unknown, DOUBT, NULL },
	{ "one-measurement", CLASS(LEAK_GROWTH), one_measurement, DOUBT, NULL },
	{ "fills-recycled-block", IN_FIELD, fills_recycled_block, CLEARS, NULL },
	{ "fills-own-block", IN_FIELD, .of_store = store_fills_own_block, .effect = CLEARS },
	{ "numbers-often", IN_FIELD, stores_numbers_often, CLEARS, NULL },
	{ "nonpointer-often", IN_FIELD, stores_nonpointer_often, CLEARS, NULL },
	{ "number-in-passing", IN_FIELD, number_in_passing, CLEARS, NULL },
	{ "smaller-fields", IN_FIELD, smaller_fields, CLEARS, NULL },
	{ "own-variable", IN_FIELD, own_variable, CLEARS, NULL },
	{ "clears-own-field", IN_FIELD, clears_own_field, CLEARS, NULL },
	{ "marks-own-field", IN_FIELD, marks_own_field, CLEARS, NULL },
	{ "address-then", IN_FIELD, address_may_have_been_right, CLEARS, NULL },
	{ "stores-divisor", IN_FIELD, stores_divisor, CLEARS, NULL },
	{ "block-address", IN_FIELD, block_address, CLEARS, NULL },
	{ "live-pointer", IN_FIELD, .of_store = store_leaves_live_pointer, .effect = CLEARS },
	{ "reader-strayed", IN_FIELD, reader_strayed, CLEARS, NULL },
	{ "freed-as-stored", IN_FIELD, freed_as_stored, CLEARS, NULL },
};

const size_t consideration_count = ARRAY_SIZE(considerations);

bool consideration_holds(const struct consideration *c, const struct weighing *w)
{
	return c->of_store ? is_store(w) && c->of_store(store(w)) : c->holds(w);
}

void consider(const struct rule *rule, const struct facts *facts, struct proof *proof)
{
	struct weighing w = { .rule = rule, .facts = facts, .proof = proof };

	if (proof->main->kind == EVIDENCE_WRITE)
		w.write = proof->main;
	for (size_t i = 0; i < consideration_count; i++) {
		const struct consideration *c = &considerations[i];
		struct said *doubt;

		if (c->effect != DOUBT || !(c->classes & BIT(rule->class)) ||
		    !consideration_holds(c, &w))
			continue;
		doubt = said_new(&proof->doubts);
		SAY(doubt, c->name);
		if (c->add)
			c->add(&w, doubt);
	}
}

const struct consideration *consider_cleared(const struct facts *facts,
					     const struct evidence *write)
{
	struct weighing w = { .facts = facts, .write = write };

	for (size_t i = 0; i < consideration_count; i++)
		if (considerations[i].effect == CLEARS &&
		    consideration_holds(&considerations[i], &w))
			return &considerations[i];
	return NULL;
}
