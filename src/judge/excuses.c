/*
 * What speaks for whoever was the last to write: the owner of a field does that, too.
 */
#include "judge/rules.h"

#define ADDRESS_REACH 65536 /* of a fault, from the pointer that it went through */

/* A pointer set to NULL, or to the mark that all bits make, by a store of its own: nobody's slip.
 */
bool clears_field(const struct write_seen *w)
{
	bool marks = w->value_len == 8 && w->new == UINT64_MAX;

	return w->fit == FIT_EXACT && w->value_len > 0 && (w->new == 0 || marks) && w->old != 0 &&
	       (!w->base || !w->victim || w->base->id == w->victim->id);
}

/* A whole address was stored, where libraries, stacks and mappings are, and the failure found
 * nothing mapped there, or nothing that may be written: that says nothing about the time of the
 * store. */
bool may_have_been_mapped(const struct facts *facts, const struct evidence *write)
{
	const struct write_seen *w = write->write;

	if (w->fit != FIT_EXACT || w->value_len != 8 || w->new >> 32 == 0 || w->new >> 47 != 0)
		return false;
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_CRASH && e->trial == write->trial &&
		    (e->crash->fault == FAULT_UNMAPPED || e->crash->fault == FAULT_READ_ONLY) &&
		    e->crash->address - w->new < ADDRESS_REACH)
			return true;
	return false;
}

/* What was stored led to memory that could be read when it failed, and no block was ever there: a
 * mapping, a stack. */
static bool leads_to_memory(const struct write_seen *w)
{
	return w->fit == FIT_EXACT && w->value_len == 8 && w->flags & WRITE_READABLE;
}

/* A reset or a copy of the whole object is no slip of a store's width. */
bool covers_block(const struct write_seen *w)
{
	return w->victim && w->victim->size > 0 && w->store_start != 0 &&
	       w->store_start <= w->victim->start &&
	       w->store_len >= w->victim->size + (w->victim->start - w->store_start);
}

/* Into a block that has just been made, through a pointer to it (which runs, in a copy): where that
 * place was another's, or all of it. */
static bool fills_own(const struct write_seen *w)
{
	return (w->flags & WRITE_RECYCLED || (w->flags & WRITE_OPENS && covers_block(w))) &&
	       !(w->flags & WRITE_UPDATE) && w->age <= 1 && w->victim &&
	       (!w->base || w->base->id == w->victim->id);
}

const char *write_excuse(const struct facts *facts, const struct evidence *write)
{
	const struct write_seen *w = write->write;

	if (fills_own(w))
		return w->flags & WRITE_RECYCLED
			       ? "it filled its own new block, whose place was another's before: "
				 "whoever reads it may have kept a pointer to that one"
			       : "it filled its own new block: whoever reads it takes it for "
				 "something else";
	if (write_of_habit(facts->list, write))
		return "it puts numbers there again and again, where no address was before, without "
		       "harm: whoever reads one as an address takes the object for another kind";
	if (write_habit(facts->list, write) >= HABIT)
		return "it left what is no address there again and again, without harm: the place seems "
		       "to belong to another kind of object then, and whoever reads it may have "
		       "kept a pointer to an earlier one (does the program have an allocator of "
		       "its own? --allocator)";
	if (w->flags & WRITE_TWIN && write_of_numbers(facts->list, write))
		return "what stands there is no address in trials that pass either: the value that "
		       "was read stood elsewhere as well";
	if (w->fit == FIT_NARROW && w->flags & WRITE_PARTS)
		return "to whoever writes it, it is several smaller fields, each set on its own: "
		       "whoever reads it as one takes the block for something else";
	/* By its place in the block, or in an object that is a piece of it. */
	if (!(w->flags & (WRITE_NAMED | WRITE_PIECE)) || w->flags & WRITE_UPDATE)
		return NULL;
	if (w->home.kind == HOME_STACK)
		return "it is a function's own variable, set by its own code";
	if (clears_field(w))
		return w->new == 0
			       ? "it cleared the whole field, by name, as whoever is done with it does"
			       : "it set all bits of the field, by name: a mark that means 'none' or "
				 "'deleted' and that whoever reads it has to know";
	if (may_have_been_mapped(facts, write) || leads_to_memory(w))
		return "it stored a whole address, by name, that may have been right at that time";
	if (w->fit == FIT_EXACT && w->flags & WRITE_POINTER)
		return "it stored the address of a block, by name: that belongs there, and whether "
		       "it was still the right one is another question";
	return NULL;
}
