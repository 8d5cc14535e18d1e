/*
 * What the raw evidence about one caught store means. See store_facts.h.
 */
#include "judge/store_facts.h"

#include <string.h>

#define LOWEST_ADDRESS 0x400000ull /* that programs are linked to */
#define ADDRESS_REACH 65536	   /* of a fault, from the pointer that it went through */
#define DEALT_OUT_BYTES 512	   /* and larger: a block that objects may be laid out in */

bool block_is_freed(const struct block_life *block)
{
	return block && (block->state == BLOCK_FREED || block->former);
}

bool store_on_guard(const struct write_seen *w)
{
	return w->victim && w->home.kind == HOME_BLOCK &&
	       (w->home.offset < 0 || (uint64_t)w->home.offset >= w->victim->size);
}

/* On a guard, a pointer that has left its block says nothing. Nor does a pointer that a loop moves:
 * it came from elsewhere. */
const struct block_life *store_meant_block(const struct write_seen *w)
{
	bool gone = store_in_loop(w) || (w->base && w->base->beyond);

	return gone && store_on_guard(w) ? NULL : w->base;
}

enum verdict_class store_beside(const struct block_life *block, uint64_t start, uint64_t len)
{
	uint64_t end = block->start + block->size;

	if (start == 0 || len == 0)
		return VERDICT_NOT_CAUGHT;
	if (start >= end || (start >= block->start && len > end - start))
		return VERDICT_OVERFLOW;
	return start < block->start ? VERDICT_UNDERFLOW : VERDICT_NOT_CAUGHT;
}

uint64_t store_distance(const struct write_seen *w)
{
	uint64_t end = w->base->start + w->base->size;

	return w->store_start >= end ? w->store_start - end : w->base->start - w->store_start;
}

/* Between two blocks a guard lies behind the one and before the other. So a pointer into one of
 * them says more than whose guard it is. */
static enum verdict_class by_guard(const struct write_seen *w)
{
	const struct block_life *meant = store_meant_block(w);
	enum verdict_class class = VERDICT_NOT_CAUGHT;

	if (!store_on_guard(w))
		return VERDICT_NOT_CAUGHT;
	/* The pointer of a running copy is in the next block, freed or not. */
	if (meant && meant->id != 0 && !block_is_freed(meant))
		class = store_beside(meant, w->store_start, w->store_len);
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

enum verdict_class store_on_live_block(const struct write_seen *w)
{
	enum verdict_class class = by_guard(w);

	/* What keeps a frame together is nobody's variable: it was run over. */
	if (w->home.kind == HOME_STACK && w->home.field && !store_names_field(w))
		return VERDICT_OVERFLOW;
	if (class != VERDICT_NOT_CAUGHT)
		return class;
	if (w->base && w->base->id != 0 && (!w->victim || w->base->id != w->victim->id)) {
		class = store_beside(w->base, w->store_start, w->store_len);
		if (class != VERDICT_NOT_CAUGHT)
			return class;
	}
	/* Out of the very block that it meant. */
	if (w->base && w->victim && w->base->id == w->victim->id && w->victim->size > 0 &&
	    w->store_start >= w->victim->start &&
	    store_beside(w->victim, w->store_start, w->store_len) == VERDICT_OVERFLOW)
		return VERDICT_OVERFLOW;
	return by_fit(w);
}

static bool outside_base(const struct write_seen *w)
{
	return w->store_start != 0 && (w->store_start < w->base->start ||
				       w->store_start >= w->base->start + w->base->size);
}

/* The guard of a live block was hit, and the store lies outside of the freed block that its pointer
 * is to: it came from the live one. */
static bool ran_into_freed(const struct write_seen *w)
{
	return store_on_guard(w) && !block_is_freed(w->victim) && outside_base(w);
}

/* A pointer in a loop was in a freed block when it stored to the live one beside it. It came by;
 * nobody kept a pointer to what was freed. */
static bool came_by(const struct write_seen *w)
{
	return store_in_loop(w) && block_is_freed(w->base) && w->victim &&
	       !block_is_freed(w->victim) && outside_base(w);
}

enum verdict_class store_by_place(const struct write_seen *w)
{
	if (came_by(w) && !store_on_guard(w))
		return by_fit(w);
	if ((block_is_freed(w->base) && !ran_into_freed(w)) || block_is_freed(w->victim))
		return VERDICT_WRITE_AFTER_FREE;
	return store_on_live_block(w);
}

/* Of a copy it is known where it began. */
bool store_in_loop(const struct write_seen *w)
{
	return w->code.motion != 0 && !w->copy;
}

bool store_loops_up(const struct write_seen *w)
{
	return store_in_loop(w) && w->code.motion & MOTION_UP;
}

bool store_loops_down(const struct write_seen *w)
{
	return store_in_loop(w) && w->code.motion & MOTION_DOWN;
}

bool store_names_field(const struct write_seen *w)
{
	const struct store_code *c = &w->code;

	if (!c->certain || c->form == FORM_OTHER || c->string || c->indexed)
		return false;
	if (c->base == ADDRESS_FIXED || c->base == ADDRESS_FRAME)
		return true;
	if (c->base != ADDRESS_POINTER || c->moves_base || !w->victim ||
	    c->pointer != w->victim->start)
		return false;
	/* A pointer that runs over many objects is at the start of each of them once. */
	return w->home.offset != 0 || (c->source != POINTER_UNKNOWN && !c->changed && !c->joined);
}

/* One plain store through a pointer that is not moved on. */
static bool is_plain(const struct store_code *c)
{
	return c->certain && c->form == FORM_PLAIN && !c->string && !c->indexed &&
	       c->base == ADDRESS_POINTER && !c->moves_base;
}

bool store_in_piece(const struct write_seen *w)
{
	const struct store_code *c = &w->code;

	if (!is_plain(c) || store_names_field(w) || !w->victim)
		return false;
	if (c->pointer <= w->victim->start || c->pointer > w->home.address)
		return false;
	/* A constant, so and so far behind a pointer: nothing that runs. */
	if (c->immediate && c->displacement > 0)
		return !c->changed;
	return (c->source == POINTER_LOADED || c->source == POINTER_GIVEN ||
		c->source == POINTER_RETURNED) &&
	       !c->changed && !c->joined;
}

/* The first piece of an arena begins where its block does, so the pointer does not tell; the size
 * may. */
bool store_may_be_dealt_out(const struct write_seen *w)
{
	return w->victim && w->victim->size >= DEALT_OUT_BYTES && w->base &&
	       w->base->id == w->victim->id;
}

/* CPython's objects begin behind what the interpreter keeps in front of them: two words of the
 * collector's, and two more where instances have dictionaries. */
static bool is_objects_own(const struct block_life *block, uint64_t pointer)
{
	bool pythons = block->python || (block->allocated.count > 0 &&
					 frame_is_interpreter(&block->allocated.frames[0]));

	return pointer == block->start ||
	       (pythons && (pointer - block->start == 16 || pointer - block->start == 32));
}

bool store_may_have_run(const struct write_seen *w)
{
	if (store_in_loop(w))
		return true;
	return w->victim && w->base && w->base->id == w->victim->id && w->fit == FIT_NARROW &&
	       !is_objects_own(w->victim, w->base->value) && !store_names_field(w) &&
	       w->store_len > 0 && w->store_len < 4 && w->value_len == 8;
}

bool store_in_copy(const struct write_seen *w)
{
	bool here =
		w->victim ? w->base && w->base->id == w->victim->id : w->home.kind == HOME_STACK;

	return here && w->writer.count > 0 && frame_is_runtime(&w->writer.frames[0]) &&
	       !(w->flags & WRITE_KERNEL) && w->instruction &&
	       (strstr(w->instruction, "mm") || strncmp(w->instruction, "rep ", 4) == 0);
}

bool store_covers_block(const struct write_seen *w)
{
	return w->victim && w->victim->size > 0 && w->store_start != 0 &&
	       w->store_start <= w->victim->start &&
	       w->store_len >= w->victim->size + (w->victim->start - w->store_start);
}

bool store_clears_field(const struct write_seen *w)
{
	bool marks = w->value_len == 8 && w->new == UINT64_MAX;

	return w->fit == FIT_EXACT && w->value_len > 0 && (w->new == 0 || marks) && w->old != 0 &&
	       (!w->base || !w->victim || w->base->id == w->victim->id);
}

/* A pointer to the live block that the next home is in did what it should. The one that the fault
 * itself went through did if it is that block's address: whatever was wrong, it was not this. But
 * nobody may jump there, and an index is no pointer. */
static bool leads_to_live(const struct value_found *f)
{
	return f->leads == LEADS_TO_LIVE && !f->leads_recycled &&
	       (f->step > 0 || (!f->jumped && !f->indexed && f->at_start));
}

/* A variable that its own function set, to something that it did not copy from elsewhere; or there
 * is another home that tells where. */
static bool is_own_variable(const struct value_found *f, const struct write_seen *w)
{
	return w && w->home.kind == HOME_STACK && store_names_field(w) &&
	       !(w->flags & WRITE_COPIED && f->steps == 1);
}

#define TAG_BITS 0xfull /* that pointers to blocks leave free */

/* Whoever means to store a pointer stores all of it: what a narrower store makes of one leads to
 * whatever happens to lie there, living or freed. Its lowest bits may be a tag. */
bool store_bends_pointer(const struct write_seen *w)
{
	return w->fit == FIT_NARROW && w->value_len == 8 && w->store_len > 0 && w->store_len < 8 &&
	       w->old >= LOWEST_ADDRESS && w->old >> 47 == 0 &&
	       ((w->old ^ w->new) & ~TAG_BITS) != 0;
}

bool value_is_right(const struct value_found *f, const struct write_seen *w)
{
	if (!f->known || (w && store_bends_pointer(w)))
		return false;
	/* Whose place it is has nothing to do with it; and what is the library's, it sets itself.
	 */
	if (f->strayed ||
	    (f->runtime && w && w->writer.count > 0 && frame_is_runtime(&w->writer.frames[0])))
		return true;
	return !f->outlived && (f->replaced || leads_to_live(f) || is_own_variable(f, w));
}

bool store_leaves_live_pointer(const struct write_seen *w)
{
	return value_is_right(&w->found, w);
}

bool store_leaves_readable(const struct write_seen *w)
{
	return w->found.known && w->found.step > 0 && w->found.read_by_code &&
	       w->found.leads == LEADS_NOWHERE;
}

bool store_leaves_block_address(const struct write_seen *w)
{
	return w->new_was_block;
}

bool store_is_first(const struct write_seen *w)
{
	return w->nth_of_object == 1;
}

static bool store_opens_block(const struct write_seen *w)
{
	return w->nth_of_block == 1;
}

bool store_is_update(const struct write_seen *w)
{
	return w->flags & WRITE_UPDATE;
}

bool store_by_parts(const struct write_seen *w)
{
	return w->parts.known && w->parts.whole == 0 && w->parts.writers > 1 && w->parts.covered;
}

/* Through a pointer to it (in a copy: one that runs): where that place was another's, or all of
 * it. */
bool store_fills_own_block(const struct write_seen *w)
{
	return (store_place_recycled(w) || (store_opens_block(w) && store_covers_block(w))) &&
	       !store_is_update(w) && w->age <= 1 && w->victim &&
	       (!w->base || w->base->id == w->victim->id);
}

bool store_place_recycled(const struct write_seen *w)
{
	return w->found.place_reused && !w->found.owner_reached;
}

bool store_has_twin(const struct write_seen *w)
{
	return w->found.other_places > 0;
}

bool store_free_inferred(const struct write_seen *w)
{
	return w->free_basis == FREE_INFERRED;
}

bool store_free_unknown(const struct write_seen *w)
{
	return w->free_basis == FREE_UNSEEN;
}

/* Where libraries, stacks and mappings are. */
bool store_target_unmapped(const struct facts *facts, const struct evidence *write)
{
	const struct write_seen *w = write->write;

	if (w->fit != FIT_EXACT || w->value_len != 8 || w->new >> 32 == 0 || w->new >> 47 != 0)
		return false;
	return VEC_ANY(&facts->list->list, e,
		       e->kind == EVIDENCE_CRASH && e->trial == write->trial &&
			       (e->crash->fault == FAULT_UNMAPPED ||
				e->crash->fault == FAULT_READ_ONLY) &&
			       e->crash->address - w->new < ADDRESS_REACH);
}

/* Neither where programs are linked to nor where the kernel maps anything; or far below what stood
 * there before, and no block of malloc's. */
static bool is_no_address(const struct write_seen *w, uint64_t value)
{
	if (value == 0)
		return false;
	return value < LOWEST_ADDRESS || value >> 47 != 0 ||
	       (value >> 32 == 0 && w->old >> 32 != 0 && !store_leaves_block_address(w));
}

static bool leaves_no_address(const struct write_seen *w)
{
	return (w->fit == FIT_EXACT || w->fit == FIT_WIDE) && w->value_len == 8 &&
	       is_no_address(w, w->new) && !(w->flags & WRITE_ASYNC) &&
	       (is_no_address(w, w->old) || !store_is_update(w));
}

/* … and was there an address before, as well or as little as in the other's case? */
static bool same_before(const struct write_seen *a, const struct write_seen *b)
{
	return is_no_address(a, a->old) == is_no_address(b, b->old);
}

uint64_t store_repeats(const struct evidence_list *list, const struct evidence *write)
{
	uint64_t times = 0;

	if (!leaves_no_address(write->write))
		return 0;
	VEC_FOREACH (&list->list, e)
		times += e->kind == EVIDENCE_WRITE && e != write &&
			 !(e->failing && e->write->flags & WRITE_LAST) &&
			 home_same(&e->write->home, &write->write->home) &&
			 same_store(e->write, write->write) && leaves_no_address(e->write) &&
			 same_before(e->write, write->write);
	return times;
}

bool repeats_with_numbers(const struct evidence_list *list, const struct evidence *write)
{
	return store_repeats(list, write) >= REPEATED &&
	       (write->write->old == 0 || is_no_address(write->write, write->write->old));
}

bool store_over_number(const struct evidence_list *list, const struct evidence *write)
{
	const struct write_seen *w = write->write;

	if (!leaves_no_address(w) || !is_no_address(w, w->old) || store_opens_block(w) ||
	    store_is_first(w))
		return false;
	return !VEC_ANY(&list->list, e,
			e->kind == EVIDENCE_WRITE && e->trial == write->trial && e != write &&
				home_same(&e->write->home, &w->home) && same_store(e->write, w) &&
				write_changed(e->write) && !is_no_address(e->write, e->write->old));
}

bool store_numbers_pass(const struct evidence_list *list, const struct evidence *write)
{
	uint64_t before = 0;

	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_WRITE && !e->failing && e->write->value_len == 8 &&
		    is_no_address(e->write, e->write->new) &&
		    home_same(&e->write->home, &write->write->home)) {
			if (before != 0 && before != e->trial)
				return true;
			before = e->trial;
		}
	return false;
}

const struct bad_free *store_of_freed(const struct facts *facts, const struct evidence *write)
{
	const struct evidence *found;

	if (!write->failing || !(write->write->flags & WRITE_LAST))
		return NULL;
	found = VEC_FIND(&facts->list->list, e,
			 e->kind == EVIDENCE_BAD_FREE && e->failing && e->trial == write->trial &&
				 e->bad_free->kind != BAD_FREE_DOUBLE &&
				 e->bad_free->kind != BAD_FREE_MISMATCHED &&
				 e->bad_free->pointer == write->write->new);
	return found ? found->bad_free : NULL;
}

bool store_moves_freed(const struct facts *facts, const struct evidence *write)
{
	const struct bad_free *freed = store_of_freed(facts, write);
	const struct write_seen *w = write->write;

	if (!freed)
		return false;
	if (freed->block && w->old >= freed->block->start &&
	    w->old - freed->block->start <= freed->block->size)
		return w->old != w->new && freed->owners == 0;
	/* Out of its block no cursor goes. Of what never led to a block the free is wrong. */
	return store_bends_pointer(w) || w->flags & WRITE_LEFT_BLOCK;
}
