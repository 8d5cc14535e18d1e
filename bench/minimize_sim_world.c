#include "minimize_sim_world.h"

#include <errno.h>
#include <stdlib.h>

double world_random(struct world *w)
{
	uint64_t x = w->random += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static void mark(struct world *w, size_t count, uint8_t bit)
{
	while (count) {
		size_t i = (size_t)(world_random(w) * (double)w->n);

		count -= !(w->mark[i] & bit);
		w->mark[i] |= bit;
	}
}

int world_init(struct world *w, uint64_t seed)
{
	w->mark = calloc(w->n + 1, 1);
	if (!w->mark)
		return -ENOMEM;
	w->random = seed * 0xd1342543de82ef95u + 1;
	w->runs = 0;
	mark(w, w->kind == WORLD_THRESHOLD ? w->heavy : w->needed, 1);
	if (w->kind == WORLD_EITHER)
		mark(w, w->needed, 2);
	return 0;
}

void world_deinit(struct world *w)
{
	free(w->mark);
	w->mark = NULL;
}

double world_rate(const struct world *w, const uint32_t *list, size_t count, size_t skip)
{
	size_t first = 0, second = 0, size = 0;
	double left;

	for (size_t i = 0; i < count; i++) {
		if (i == skip || list[i] >= w->n)
			continue;
		first += w->mark[list[i]] & 1;
		second += w->mark[list[i]] >> 1;
		size++;
	}
	if (w->kind == WORLD_NEVER)
		return 0;
	if (first < w->needed && (w->kind != WORLD_EITHER || second < w->needed))
		return 0;
	left = (double)size / (double)w->n;
	return w->rate_last > 0 ? w->rate_last + (w->rate - w->rate_last) * left : w->rate;
}

enum world_outcome world_run(struct world *w, const uint32_t *list, size_t count)
{
	double rate = world_rate(w, list, count, SIZE_MAX);

	w->runs++;
	if (w->other > 0 && world_random(w) < w->other)
		return WORLD_OTHER;
	if (rate > 0 && world_random(w) < rate)
		return WORLD_TARGET;
	return w->lookalike > 0 && world_random(w) < w->lookalike ? WORLD_TARGET : WORLD_PASS;
}

bool world_right(const struct world *w, const uint32_t *list, size_t count)
{
	return world_rate(w, list, count, SIZE_MAX) > 0;
}

bool world_minimal(const struct world *w, const uint32_t *list, size_t count)
{
	if (!world_right(w, list, count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (list[i] < w->n && world_rate(w, list, count, i) > 0)
			return false;
	return true;
}
