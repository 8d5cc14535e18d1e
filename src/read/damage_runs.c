#include "read/damage_runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Between the guards of two neighbours lies libc's own word, and the last bytes of a guard may have
 * been written over with what they were. */
#define GAP_MAX 16
#define GUARD_BEFORE 16 /* bytes: agent/guards/canary.h */

static uint64_t first_byte(const struct heap_finding *f)
{
	return f->address + (uint64_t)f->offset;
}

static uint64_t end_byte(const struct heap_finding *f)
{
	return first_byte(f) + f->length;
}

static int by_address(const void *a, const void *b)
{
	const struct heap_finding *const *x = a, *const *y = b;

	if (first_byte(*x) != first_byte(*y))
		return first_byte(*x) < first_byte(*y) ? -1 : 1;
	return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

static bool from_the_end(const struct heap_finding *f)
{
	return f->kind == HEAP_OVERFLOW && f->offset == (int64_t)f->size;
}

static bool to_the_start(const struct heap_finding *f)
{
	return f->kind == HEAP_UNDERFLOW && f->offset + (int64_t)f->length == 0;
}

/* From the very first byte of the guard on: where the block before may have had no guards, it may
 * have come from there. */
static bool from_before(const struct heap_finding *f)
{
	return f->sampled && f->kind == HEAP_UNDERFLOW && f->offset == -GUARD_BEFORE;
}

/* Does the damage of `a` go on in `b`, which comes next in memory? */
static bool goes_on(const struct heap_finding *a, const struct heap_finding *b)
{
	/* Right through a live block: what it holds may be anything, its guards tell. */
	if (a->id == b->id && to_the_start(a) && from_the_end(b))
		return true;
	/* One that lies over the other is of another time: the place had a new owner. */
	return first_byte(b) >= end_byte(a) && first_byte(b) - end_byte(a) <= GAP_MAX + a->gap;
}

/* A live block in the run that was left at both ends, or whose start the run ends at: a pointer
 * that ran out of it, as that of a sort does which never stops, leaves the same as one that ran
 * over it. */
static const char *left_block(struct heap_finding **run, size_t count,
			      const struct heap_finding *own)
{
	for (size_t i = 0; i < count; i++) {
		if (!to_the_start(run[i]) || run[i]->id == own->id)
			continue;
		if (i + 1 == count ? own->kind == HEAP_WRITE_AFTER_FREE
				   : run[i + 1]->id == run[i]->id && from_the_end(run[i + 1]))
			return run[i]->context;
	}
	return NULL;
}

/* The write may have come from either end of the run. */
static bool has_rival(const struct heap_finding *first, const struct heap_finding *last)
{
	return from_the_end(first) && last != first && to_the_start(last) && last->context &&
	       first->id != last->id;
}

static void mark_run(struct heap_finding **run, size_t count)
{
	const char *through;
	struct heap_finding *first = run[0], *last = run[count - 1], *own = first;

	if (first->kind != HEAP_WRITE_AFTER_FREE && !from_the_end(first) && to_the_start(last))
		own = last;
	if (own == first && has_rival(first, last))
		first->rival = mem_strdup(last->context);
	through = own != first	  ? (first->live ? first->context : NULL)
		  : !first->rival ? left_block(run, count, own)
				  : NULL;
	if (through)
		own->through = mem_strdup(through);
	if (from_before(own))
		own = NULL;
	for (size_t i = 0; i < count; i++)
		run[i]->continued = run[i] != own;
	first->far = count == 1 && first->kind == HEAP_UNDERFLOW && first->offset == -GUARD_BEFORE;
}

void runs_mark(struct heap_finding *findings, size_t count)
{
	AUTO(mem_freep)
	struct heap_finding **sorted = mem_alloc((count + 1) * sizeof(struct heap_finding *));
	size_t begin = 0;

	for (size_t i = 0; i < count; i++)
		sorted[i] = &findings[i];
	if (count > 1)
		qsort(sorted, count, sizeof(sorted[0]), by_address);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && goes_on(sorted[i - 1], sorted[i]))
			continue;
		mark_run(sorted + begin, i - begin);
		begin = i;
	}
}

static bool same_context(const struct heap_finding *f, const char *context)
{
	return f->context && strcmp(f->context, context) == 0;
}

static bool is_of_rival(const struct heap_finding *f, const char *rival)
{
	return to_the_start(f) && same_context(f, rival);
}

/* Was it the rival's in a trial that leaves no doubt, or does it fit another block's end elsewhere?
 */
static bool is_the_rivals(const struct heap_finding *findings, size_t count,
			  const struct heap_finding *contested)
{
	for (size_t i = 0; i < count; i++) {
		const struct heap_finding *f = &findings[i];

		if (!f->continued && is_of_rival(f, contested->rival))
			return true;
		if (f->rival && strcmp(f->rival, contested->rival) == 0 && contested->context &&
		    f->context && strcmp(f->context, contested->context) != 0)
			return true;
	}
	return false;
}

void runs_settle(struct heap_finding *findings, size_t count)
{
	AUTO(mem_freep) bool *theirs = mem_alloc((count + 1) * sizeof(*theirs));

	for (size_t i = 0; i < count; i++)
		theirs[i] = findings[i].rival && is_the_rivals(findings, count, &findings[i]);
	for (size_t i = 0; i < count; i++) {
		if (!theirs[i])
			continue;
		findings[i].continued = true;
		for (size_t k = 0; k < count; k++)
			if (is_of_rival(&findings[k], findings[i].rival))
				findings[k].continued = false;
	}
}
