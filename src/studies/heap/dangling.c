#include "studies/heap/dangling.h"

#include <stdlib.h>
#include <string.h>

static int rank(const struct heap_holder *holder)
{
	bool lasting = strcmp(holder->kind, "block") == 0 || strcmp(holder->kind, "global") == 0;

	return (holder->used ? 0 : 2) + (lasting ? 0 : 1);
}

static int by_rank(const void *a, const void *b)
{
	const struct heap_holder *x = a, *y = b;

	return rank(x) - rank(y) ?: ORDER(y->count, x->count);
}

static int by_use(const void *a, const void *b)
{
	const struct heap_dangling *x = a, *y = b;

	if (x->used != y->used)
		return x->used ? -1 : 1;
	if (heap_dangling_held(x) != heap_dangling_held(y))
		return heap_dangling_held(x) ? -1 : 1;
	return x->blocks > y->blocks ? -1 : x->blocks < y->blocks;
}

/* Used, and only one that lasts points there: then that is the one. */
static void settle_use(struct heap_dangling *dangling)
{
	struct heap_holder *only = NULL;

	if (!dangling->used)
		return;
	VEC_FOREACH (&dangling->holders, holder) {
		if (holder->used)
			return;
		if (strcmp(holder->kind, "block") != 0 && strcmp(holder->kind, "global") != 0)
			continue;
		if (only)
			return;
		only = holder;
	}
	if (only)
		only->used = true;
}

static void drop_leftovers(struct heap_report *report)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->dangling.count; i++) {
		struct heap_dangling *dangling = &report->dangling.items[i];

		if (dangling->leftover && !dangling->used)
			heap_dangling_deinit(dangling);
		else
			report->dangling.items[kept++] = *dangling;
	}
	report->dangling.count = kept;
}

void dangling_sort(struct heap_report *report)
{
	drop_leftovers(report);
	VEC_FOREACH (&report->dangling, dangling)
		settle_use(dangling);
	VEC_FOREACH (&report->dangling, dangling)
		VEC_SORT(&dangling->holders, by_rank);
	VEC_SORT(&report->dangling, by_use);
}
