/*
 * Rules about blocks that were freed: pointers that outlive them, frees that go wrong.
 */
#include "base/cstr.h"
#include "judge/rules.h"

#include <string.h>

#include "judge/store_facts.h"

/* The freed block that the failing instruction itself touched; NULL. */
static const struct block_life *freed_in_crash(const struct crash *crash, bool *ret_recycled)
{
	VEC_FOREACH (&crash->blocks, block) {
		/* A pointer that has left its block is not to it, freed or not. */
		if (!block->telling || block->beyond ||
		    (block->state != BLOCK_FREED && !block->former))
			continue;
		/* Of a recycled place the pointer may be the new owner's: only when the fault
		 * itself was told so. */
		if (block->former && crash->fault != FAULT_RECYCLED)
			continue;
		*ret_recycled = block->former;
		return block;
	}
	return NULL;
}

static const struct block_life *freed_block(const struct evidence *e, bool *ret_recycled)
{
	*ret_recycled = false;
	if (e->kind == EVIDENCE_FREED_USE && e->freed_use->block &&
	    (e->freed_use->block->state == BLOCK_FREED || e->freed_use->block->former))
		return e->freed_use->block;
	if (e->kind == EVIDENCE_CRASH)
		return freed_in_crash(e->crash, ret_recycled);
	return NULL;
}

static bool holder_damns(const struct evidence *e)
{
	return e->kind == EVIDENCE_HOLDER && e->failing && e->holder->used && e->holder->target &&
	       (e->holder->target->state == BLOCK_FREED || e->holder->target->former);
}

/* Did the write store a pointer into that block? By the id where the target was looked up at the
 * store; else by the address (one below it, too: a tag may be taken off), unless another block
 * has the place now, whose pointer it may be. */
static bool stored_pointer_to(const struct write_seen *w, const struct block_life *block)
{
	if (w->target)
		/* It was right when it was stored: that is what makes it a holder and no bad
		 * write. */
		return w->target->id == block->id && w->target->id != 0 &&
		       w->target->state == BLOCK_LIVE && !w->target->former;
	return !block->former && w->value_len == 8 && block->start != 0 &&
	       w->new >= block->start - 1 && w->new - (block->start - 1) <= block->size;
}

const struct evidence *target_used_later(const struct facts *facts, const struct evidence *write)
{
	VEC_FOREACH (&facts->list->list, e) {
		const struct block_life *used;
		bool recycled;

		if (!e->failing || e->trial != write->trial)
			continue;
		used = holder_damns(e) ? e->holder->target : freed_block(e, &recycled);
		if (used && stored_pointer_to(write->write, used))
			return e;
	}
	return NULL;
}

bool freed_block_used(const struct facts *facts, uint64_t trial)
{
	bool recycled;

	return VEC_ANY(&facts->list->list, e,
		       e->failing && e->trial == trial && freed_block(e, &recycled) && !recycled);
}

/* The value leads into the middle of the block, and nobody saw it being stored: a damaged pointer
 * would look the same. */
bool holder_by_looks(const struct evidence *e)
{
	return holder_damns(e) && !e->holder->exact && !e->holder->frame &&
	       e->holder->written_by.count == 0;
}

/* The holder's home: of a sweep, or of a caught write of a pointer that went bad later. */
static const struct home *held_at(const struct facts *facts, const struct evidence *e)
{
	if (holder_damns(e))
		return holder_by_looks(e) ? NULL : &e->holder->home;
	if (e->kind == EVIDENCE_WRITE && e->failing && e->write->flags & WRITE_LAST &&
	    !(e->write->flags & WRITE_ASYNC) && target_used_later(facts, e))
		return &e->write->home;
	return NULL;
}

static bool nameless_stack(const struct evidence *e)
{
	return e->kind == EVIDENCE_HOLDER && e->holder->home.kind == HOME_STACK &&
	       !e->holder->home.name;
}

/* Places on a stack whose function is not known are told by what they pointed to. */
static bool same_holder(const struct evidence *a, const struct home *home, const struct evidence *b,
			const struct home *here)
{
	if (nameless_stack(a) && nameless_stack(b))
		return key_same_context(a->holder->target->key, b->holder->target->key);
	/* Which element of a table it is may go by chance. */
	return home_same(home, here) || same_variable(home, here);
}

static uint64_t freed_use_trials(const struct facts *facts, uint64_t from)
{
	VEC(const struct evidence *) seen = { 0 };
	uint64_t trials;
	bool recycled;

	/* At a fence nobody looks for who holds the pointer. */
	VEC_FOREACH (&facts->list->list, e)
		if (e->failing && e->trial >= from && !evidence_fenced(e) &&
		    freed_block(e, &recycled))
			VEC_PUSH(&seen, e);
	trials = EVIDENCE_TRIALS(&seen);
	VEC_DEINIT(&seen);
	return trials;
}

/* The pointer is stale whoever put it there; but a bad write may have made it so. */
static uint32_t spared_by(const struct evidence *main)
{
	if (main->kind != EVIDENCE_HOLDER || main->holder->written_by.count > 0)
		return 0;
	return BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_CACHED) | BIT(HYP_OUTSIDE);
}

/* A holder tells more than the write that made it one; and one that was read there, by whoever used
 * the block first, more than one that was only found. */
static bool holder_tells_more(const struct evidence *e, const struct evidence *than)
{
	if (e->kind != EVIDENCE_HOLDER || than->kind != EVIDENCE_HOLDER)
		return e->kind == EVIDENCE_HOLDER && than->kind != EVIDENCE_HOLDER;
	return e->holder->written_by.count > 0 && !e->holder->on_stack_too &&
	       than->holder->on_stack_too;
}

/* The first trial in which the store of the pointer was watched; 0: it was not. */
static uint64_t stored_since(const struct proof *proof)
{
	uint64_t first = 0;

	VEC_FOREACH (&proof->pieces, piece)
		if ((*piece)->kind == EVIDENCE_HOLDER && (*piece)->holder->written_by.count > 0 &&
		    (first == 0 || (*piece)->trial < first))
			first = (*piece)->trial;
	return first;
}

void weigh_dangling(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct evidence *first = NULL;
	const struct home *home = NULL;

	VEC_FOREACH (&facts->list->list, e) {
		const struct home *here = held_at(facts, e);

		if (!here || (first && !same_holder(first, home, e, here)))
			continue;
		if (!first) {
			first = e;
			home = here;
		}
		if (!ret->main || holder_tells_more(e, ret->main))
			ret->main = e;
		proof_add(ret, e);
	}
	if (!ret->main)
		return;
	ret->caught = EVIDENCE_TRIALS(&ret->pieces);
	/* Who was watched could not be seen in the trials before that. */
	ret->watched = home_watched(facts, home, ret->watched);
	if (ret->watched == 0)
		ret->watched = freed_use_trials(facts, stored_since(ret));
	if (ret->watched < ret->caught)
		ret->watched = ret->caught;
	ret->fits = ret->caught * 2 > ret->watched;
	ret->spared = spared_by(ret->main);
}

/* Who put the pointer there, in the same trial as far as it is known. */
static const struct stack *put_by(const struct proof *proof)
{
	const struct evidence *main = proof->main;

	if (main->kind == EVIDENCE_WRITE)
		return &main->write->writer;
	return &main->holder->written_by;
}

static bool to_frame(const struct evidence *e)
{
	return e->kind == EVIDENCE_HOLDER && e->holder->frame;
}

static void take_holder(const struct facts *facts, const struct proof *proof, struct verdict *ret)
{
	const struct evidence *main = proof->main;
	const struct evidence *use;
	const struct block_life *target;
	bool recycled;

	if (main->kind == EVIDENCE_HOLDER) {
		ret->holder = main->id;
		home_copy(&ret->home, &main->holder->home);
		target = main->holder->target;
	} else {
		home_copy(&ret->home, &main->write->home);
		use = target_used_later(facts, main);
		target = holder_damns(use) ? use->holder->target : freed_block(use, &recycled);
	}
	if (to_frame(main)) {
		stack_copy(&ret->other, &target->allocated);
		return;
	}
	ret->victim = block_life_dup(target);
	stack_copy(&ret->freed_by, &target->freed);
}

/* Was this the write that put the holder's pointer there? */
static bool puts_pointer(const struct evidence *e, const struct evidence *main)
{
	const struct stack *by = &main->holder->written_by;

	return e->kind == EVIDENCE_WRITE && e->trial == main->trial && by->count > 0 &&
	       home_same(&e->write->home, &main->holder->home) &&
	       e->write->writer.count == by->count &&
	       e->write->writer.frames[0].address == by->frames[0].address;
}

static const struct write_seen *pointer_write(const struct facts *facts, const struct proof *proof)
{
	VEC_FOREACH (&proof->pieces, piece)
		if ((*piece)->kind == EVIDENCE_WRITE)
			return (*piece)->write;
	VEC_FOREACH (&facts->list->list, e)
		if (proof->main->kind == EVIDENCE_HOLDER && puts_pointer(e, proof->main))
			return e->write;
	return NULL;
}

static void take_pointer_write(const struct facts *facts, const struct proof *proof,
			       struct verdict *ret)
{
	const struct write_seen *w = pointer_write(facts, proof);

	if (w)
		take_store(ret, w);
}

void tell_dangling(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		   struct said *sentence)
{
	stack_copy(&ret->writer, put_by(proof));
	take_pointer_write(facts, proof, ret);
	take_holder(facts, proof, ret);
	SAY(sentence, "told:dangling", said_home(&ret->home), said_flag(to_frame(proof->main)),
	    said_site(&ret->other), said_site(&ret->freed_by), said_site(&ret->writer),
	    proof->main->kind == EVIDENCE_HOLDER ? said_copied(&proof->main->note) : said_none());
}

bool freed_block_recycled(const struct evidence *e)
{
	bool recycled;

	return freed_block(e, &recycled) && recycled;
}

bool place_shared(const struct evidence *e)
{
	bool recycled;
	const struct block_life *block;

	if (e->kind == EVIDENCE_FREED_USE)
		return e->freed_use->place_reused;
	block = freed_block(e, &recycled);
	return block && !block->poison &&
	       (block->python || block->value - block->start >= BLOCK_MIDST);
}

/* The one to tell of two: more than a crash, then one that the failure goes with, then one that
 * leaves no doubt about the block. */
static bool tells_better(const struct evidence *e, const struct evidence *than)
{
	if (e->kind != than->kind)
		return e->kind == EVIDENCE_FREED_USE;
	if (e->kind == EVIDENCE_FREED_USE && e->freed_use->fenced != than->freed_use->fenced)
		return !e->freed_use->fenced;
	/* What came out does not say who had read it. */
	if (e->kind == EVIDENCE_FREED_USE &&
	    (e->freed_use->user.count == 0) != (than->freed_use->user.count == 0))
		return e->freed_use->user.count > 0;
	return !place_shared(e) && place_shared(than);
}

void weigh_freed_use(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		bool recycled;

		if (!e->failing || !freed_block(e, &recycled))
			continue;
		if (!ret->main || tells_better(e, ret->main))
			ret->main = e;
		proof_add(ret, e);
	}
	proof_seen(ret);
}

const struct evidence *first_use(const struct facts *facts, const struct block_life *block)
{
	return VEC_FIND(&facts->list->list, e,
			e->kind == EVIDENCE_FREED_USE && e->freed_use->first &&
				e->freed_use->block && block &&
				key_same_stack(e->freed_use->block->key, block->key));
}

static bool same_function(const struct frame *a, const struct frame *b)
{
	return cstr_known_same(a->function, b->function) && cstr_known_same(a->module, b->module);
}

/* The innermost call that both stacks come out of: as far as both are the same from the outside
 * on, and the function in which they part. Empty: one knows too little. */
static void part_in(const struct stack *a, const struct stack *b, struct stack *ret)
{
	size_t common = 0;

	while (common < a->count && common < b->count) {
		const struct frame *x = &a->frames[a->count - 1 - common];
		const struct frame *y = &b->frames[b->count - 1 - common];

		if (!same_function(x, y))
			break;
		common++;
		if (x->offset != y->offset)
			break;
	}
	if (common > 0 && common < b->count)
		*ret = (struct stack){ .frames = &b->frames[b->count - common], .count = common };
}

/* Whoever read the stale pointer out of the block is to be told, not who followed it: a failure
 * shows the latter, a closed page the former. */
static const struct stack *reader(const struct facts *facts, const struct evidence *main,
				  const struct block_life *block)
{
	const struct evidence *first = first_use(facts, block);

	if (first && first->freed_use->user.count > 0)
		return &first->freed_use->user;
	return main->kind == EVIDENCE_CRASH ? &main->crash->stack : &main->freed_use->user;
}

void tell_freed_use(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		    struct said *sentence)
{
	bool recycled;
	const struct block_life *block = freed_block(proof->main, &recycled);
	const struct stack *user = reader(facts, proof->main, block);
	struct stack both = { 0 }; /* borrowed */

	if (user->count == 0)
		SAY(sentence, "told:freed-read", said_number(block->size), said_site(&block->freed),
		    said_site(&block->allocated));
	else {
		part_in(&block->freed, user, &both);
		SAY(sentence, "told:freed-use", said_site(user), said_number(block->size),
		    said_site(&block->freed), said_site(&block->allocated),
		    both.count > 0 ? said_site(&both) : said_none());
	}
	take_block(ret, block, (int64_t)(block->value - block->start));
}

void weigh_over_read(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	(void)rule;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_OVER_READ || !e->failing || !e->freed_use->block)
			continue;
		/* Accesses to other blocks are other defects. */
		if (ret->main &&
		    !key_same_context(ret->main->freed_use->block->key, e->freed_use->block->key))
			continue;
		proof_add(ret, e);
	}
	proof_seen(ret);
}

void tell_over_read(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		    struct said *sentence)
{
	const struct freed_use *read = proof->main->freed_use;
	const struct block_life *block = read->block;

	(void)facts;
	SAY(sentence, "told:over-read", said_site(&read->user), said_count(read->width),
	    said_flag(read->offset < 0),
	    said_signed(read->offset < 0 ? -read->offset : read->offset - (int64_t)block->size),
	    said_number(block->size), said_site(&block->allocated));
	take_block(ret, block, read->offset);
	ret->width = (unsigned int)read->width;
	ret->instruction = cstr_dup(read->instruction);
}

static bool is_bad_free(const struct rule *rule, const struct evidence *e)
{
	bool twice;

	if (e->kind != EVIDENCE_BAD_FREE)
		return false;
	twice = e->bad_free->kind == BAD_FREE_DOUBLE && e->bad_free->block;
	return rule->class == VERDICT_DOUBLE_FREE ? twice : e->bad_free->kind != BAD_FREE_DOUBLE;
}

/* The one to tell of two: no mere mismatch, then one of a failing trial. */
static bool tells_more(const struct evidence *e, const struct evidence *than)
{
	bool mere = e->bad_free->kind == BAD_FREE_MISMATCHED;

	if (mere != (than->bad_free->kind == BAD_FREE_MISMATCHED))
		return !mere;
	return e->failing && !than->failing;
}

/* A block that was written to after its free can make its owner free anything. */
bool bad_free_after_stale_use(const struct facts *facts, const struct evidence *bad)
{
	const struct block_life *block = bad->bad_free->block;

	if (!block || !block->key)
		return false;
	return VEC_ANY(&facts->list->list, e,
		       holder_damns(e) && e->failing && e->holder->target->key &&
			       !key_same_context(block->key, e->holder->target->key));
}

/* An object of Python's ends with its last reference. That it ended twice says that its count went
 * on after its end; who did that is what is asked. */
static bool counted_on(const struct facts *facts, const struct evidence *bad)
{
	const struct block_life *block = bad->bad_free->block;
	bool recycled;

	if (!block || !block->python || !block->key)
		return false;
	VEC_FOREACH (&facts->list->list, e) {
		const struct block_life *used =
			holder_damns(e) ? e->holder->target : freed_block(e, &recycled);

		if (e->failing && used && used->key && key_same_context(used->key, block->key))
			return true;
	}
	return false;
}

/* Was the pointer read in a freed block, by the very function that freed it? Then it is garbage,
 * and what is wrong is the reading. */
static bool out_of_freed_block(const struct facts *facts, const struct evidence *bad)
{
	const struct frame *freer = stack_site(&bad->bad_free->second), *reader;
	bool recycled;

	if (bad->bad_free->kind != BAD_FREE_FOREIGN || !freer)
		return false;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_FREED_USE || e->trial != bad->trial ||
		    e->freed_use->write || !freed_block(e, &recycled))
			continue;
		reader = stack_site(&e->freed_use->user);
		if (reader && cstr_known_same(reader->function, freer->function))
			return true;
	}
	return false;
}

/* Who moved the pointer before it was freed. */
static const struct evidence *mover(const struct facts *facts, const struct evidence *bad)
{
	return VEC_FIND(&facts->list->list, e,
			e->kind == EVIDENCE_WRITE && e->trial == bad->trial &&
				store_moves_freed(facts, e));
}

/* Did a store that meant something else make the pointer what was freed, in most of the trials in
 * which it was watched? Then the free did as it should. */
static bool was_bent(const struct facts *facts)
{
	size_t bent = 0, stored = 0;

	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_WRITE || !store_of_freed(facts, e))
			continue;
		stored++;
		bent += store_moves_freed(facts, e) && e->write->fit != FIT_EXACT;
	}
	return bent * 2 > stored;
}

void weigh_bad_free(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	bool moved = false;

	if (rule->class == VERDICT_INVALID_FREE && was_bent(facts))
		return;
	VEC_FOREACH (&facts->list->list, e) {
		const struct evidence *by = is_bad_free(rule, e) ? mover(facts, e) : NULL;

		if (!is_bad_free(rule, e) || counted_on(facts, e) || out_of_freed_block(facts, e))
			continue;
		/* The one whose pointer was watched says more. */
		if (!ret->main || tells_more(e, ret->main) || (by && !moved && e->failing))
			ret->main = e;
		moved |= by != NULL;
		proof_add(ret, e);
		if (by)
			VEC_PUSH(&ret->pieces, by);
	}
	proof_seen(ret);
}

void tell_bad_free(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		   struct said *sentence)
{
	const struct bad_free *bad = proof->main->bad_free;
	const struct evidence *by = mover(facts, proof->main);

	if (by) {
		take_store(ret, by->write);
		home_copy(&ret->home, &by->write->home);
		ret->victim = block_life_dup(by->write->victim);
		stack_copy(&ret->freed_by, &bad->second);
		SAY(sentence, "told:moved-free", said_site(&ret->writer), said_home(&ret->home),
		    said_change(ret->old, ret->new, ret->value_len), said_site(&bad->second));
		return;
	}
	evidence_say(proof->main, sentence);
	stack_copy(&ret->writer, &bad->second);
	if (bad->block)
		take_block(ret, bad->block, (int64_t)(bad->pointer - bad->block->start));
}

/* The one that gave back more than it took; NULL: none did, or several. */
static const struct reference_party *over_releaser(const struct evidence *e)
{
	const struct reference_party *found = NULL;

	VEC_FOREACH (&e->account->parties, party) {
		if (party->given == party->taken && !party->alone)
			continue;
		/* What one function takes another may give back for it. */
		if (found || party->taken > party->given)
			return NULL;
		found = party;
	}
	return found && found->at.count > 0 && found->at.frames[0].function ? found : NULL;
}

void weigh_release(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	const struct reference_party *first = NULL;
	VEC(const struct evidence *) accounts = { 0 };

	(void)rule;
	VEC_FOREACH (&facts->list->list, e) {
		const struct reference_party *party;

		if (e->kind != EVIDENCE_ACCOUNT || !e->failing)
			continue;
		VEC_PUSH(&accounts, e);
		party = over_releaser(e);
		if (!party || (first && strcmp(first->at.frames[0].function,
					       party->at.frames[0].function) != 0))
			continue;
		first = first ? first : party;
		proof_add(ret, e);
	}
	ret->watched = EVIDENCE_TRIALS(&accounts);
	VEC_DEINIT(&accounts);
	if (!ret->main)
		return;
	ret->caught = EVIDENCE_TRIALS(&ret->pieces);
	ret->fits = ret->caught * 2 > ret->watched;
}

bool release_by_exclusion(const struct evidence *e, bool several)
{
	const struct reference_party *party = over_releaser(e);

	return party && party->alone && (party->given > party->taken) == several;
}

void tell_release(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		  struct said *sentence)
{
	const struct reference_account *account = proof->main->account;
	const struct reference_party *party = over_releaser(proof->main);

	(void)facts;
	SAY(sentence,
	    release_by_exclusion(proof->main, true) ? "told:release-together"
	    : party->alone			    ? "told:release-alone"
						    : "told:release",
	    said_site(&party->at), said_number(party->given), said_number(party->taken),
	    said_site(account->block ? &account->block->freed : NULL));
	if (account->block && account->block->freed.count > 0)
		stack_copy(&ret->freed_by, &account->block->freed);
	stack_copy(&ret->writer, &party->at);
	ret->victim = block_life_dup(account->block);
	home_copy(&ret->home, &account->home);
}
