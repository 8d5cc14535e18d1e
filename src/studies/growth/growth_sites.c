#include "studies/growth/growth_sites.h"

#include <stdlib.h>

#include "base/auto.h"
#include "studies/growth/site_families.h"

/* One shared frame is often a wrapper around malloc, or what many parts of a program allocate with:
 * then it grows here and shrinks there. It counts where it never does. */
#define SHARED_MIN 2

struct sites_walk {
	const struct census *census;
	const struct census_context **sorted;
	struct families families;
	struct sites *ret;
};

/* Changes by moment. */
struct changes {
	int64_t *blocks, *bytes;
};

static struct changes changes_new(const struct sites_walk *w)
{
	return (struct changes){ mem_alloc(w->census->moments * sizeof(int64_t)),
				 mem_alloc(w->census->moments * sizeof(int64_t)) };
}

static void changes_free(struct changes *changes)
{
	mem_free(changes->blocks);
	mem_free(changes->bytes);
}

static void site_deinit(struct site *site)
{
	mem_free(site->blocks);
	mem_free(site->bytes);
	VEC_DEINIT(&site->contexts);
}

void sites_deinit(struct sites *sites)
{
	VEC_FREE(&sites->list, site, site_deinit(site));
}

static int by_frames(const void *a, const void *b)
{
	const struct census_context *x = *(const struct census_context *const *)a;
	const struct census_context *y = *(const struct census_context *const *)b;

	for (unsigned int i = 0; i < x->frame_count && i < y->frame_count; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return x->frame_count < y->frame_count ? -1 : x->frame_count > y->frame_count;
}

static int by_live(const void *a, const void *b)
{
	const struct census_context *x = *(const struct census_context *const *)a;
	const struct census_context *y = *(const struct census_context *const *)b;

	return x->blocks > y->blocks ? -1 : x->blocks < y->blocks;
}

/* Long series are read at TREND_READINGS_MAX moments, evenly spread. */
static struct trend trend_of_changes(const int64_t *changes, size_t moments)
{
	double readings[TREND_READINGS_MAX];
	size_t count = moments < TREND_READINGS_MAX ? moments : TREND_READINGS_MAX, next = 0;
	int64_t level = 0;

	for (size_t i = 0; i < moments; i++) {
		level += changes[i];
		if (i == (next * (moments - 1)) / (count - 1))
			readings[next++] = (double)level;
	}
	return trend_of(readings, next);
}

static int64_t *levels(const int64_t *changes, size_t moments)
{
	int64_t *ret = mem_alloc(moments * sizeof(ret[0])), level = 0;

	for (size_t i = 0; i < moments; i++)
		ret[i] = level += changes[i];
	return ret;
}

static uint64_t key_of(const struct census_context *context, unsigned int depth)
{
	uint64_t key = 0x72656468616e64u;

	for (unsigned int i = 0; i < depth; i++)
		key = (key ^ context->frames[i]) * 0x100000001b3u ^ key >> 31;
	return key;
}

/* Does it grow, by whichever tests it may be? */
static struct trend judge(const struct sites_walk *w, const int64_t *changes, const int64_t *levels)
{
	struct trend trend = trend_of_changes(changes, w->census->moments);

	return trend.verdict == TREND_LEVELS_OFF ? families_trend(&w->families, levels, &trend)
						 : trend;
}

/* Do its stacks share more than what allocates for everybody? An interpreter does that for all that
 * it runs. */
static bool shares_place(const struct site *site)
{
	return site->depth >= SHARED_MIN && site->depth > site->inside;
}

/* A buffer that is made larger and larger is one block all the time. Sizes change for many reasons:
 * only what never became less counts. */
static bool grows(struct sites_walk *w, const struct changes *changes, struct site *site)
{
	site->trend = judge(w, changes->blocks, site->blocks);
	if (site->trend.verdict == TREND_GROWS)
		return shares_place(site) || site->trend.fall == 0;
	if (site->trend.kept < 0 || !shares_place(site))
		return false;
	site->trend = judge(w, changes->bytes, site->bytes);
	return site->trend.verdict == TREND_GROWS && site->trend.fall == 0;
}

/* True when the changes are those of a site, which is in the list afterwards. */
static bool is_site(struct sites_walk *w, size_t low, size_t high, unsigned int depth,
		    const struct changes *changes)
{
	size_t moments = w->census->moments;
	struct site site = {
		.depth = depth,
		.inside = w->sorted[low]->inside,
		.blocks = levels(changes->blocks, moments),
		.bytes = levels(changes->bytes, moments),
		.moments = moments,
	};

	if (!grows(w, changes, &site)) {
		mem_free(site.blocks);
		mem_free(site.bytes);
		return false;
	}
	site.key = key_of(w->sorted[low], depth);
	for (size_t i = low; i < high; i++)
		if (w->sorted[i]->blocks > 0)
			VEC_PUSH(&site.contexts, w->sorted[i]);
	VEC_SORT(&site.contexts, by_live);
	VEC_PUSH(&w->ret->list, site);
	return true;
}

/* Contexts low to high-1 have the same whole stack: threads have a row each. */
static void visit_leaf(struct sites_walk *w, size_t low, size_t high, struct changes *rest)
{
	struct changes own = changes_new(w);
	size_t count = 0;

	for (size_t i = low; i < high; i++) {
		VEC_FOREACH (&w->sorted[i]->changes, change) {
			own.blocks[change->moment] += change->blocks;
			own.bytes[change->moment] += change->bytes;
			count++;
		}
	}
	if (count < TREND_RISES_MIN || !is_site(w, low, high, w->sorted[low]->frame_count, &own))
		for (size_t i = low; i < high; i++) {
			VEC_FOREACH (&w->sorted[i]->changes, change) {
				rest->blocks[change->moment] += change->blocks;
				rest->bytes[change->moment] += change->bytes;
			}
		}
	changes_free(&own);
}

/* Adds to `rest` what no site among the contexts low to high-1, which share `depth` frames,
 * explains. */
static void visit(struct sites_walk *w, size_t low, size_t high, unsigned int depth,
		  struct changes *rest)
{
	struct changes own;
	unsigned int branches = 0;

	if (by_frames(&w->sorted[low], &w->sorted[high - 1]) == 0) {
		visit_leaf(w, low, high, rest);
		return;
	}
	own = changes_new(w);
	for (size_t i = low, next; i < high; i = next, branches++) {
		const struct census_context *first = w->sorted[i];

		next = i + 1;
		if (first->frame_count == depth) {
			while (next < high && w->sorted[next]->frame_count == depth)
				next++;
			visit_leaf(w, i, next, &own);
			continue;
		}
		while (next < high && w->sorted[next]->frames[depth] == first->frames[depth])
			next++;
		visit(w, i, next, depth + 1, &own);
	}
	if (branches < 2 || depth == 0 || !is_site(w, low, high, depth, &own))
		for (size_t i = 0; i < w->census->moments; i++) {
			rest->blocks[i] += own.blocks[i];
			rest->bytes[i] += own.bytes[i];
		}
	changes_free(&own);
}

void sites_find(const struct census *census, struct sites *ret)
{
	AUTO(mem_freep)
	const struct census_context **sorted =
		mem_alloc((census->contexts.count + 1) * sizeof(sorted[0]));
	struct sites_walk w = { .census = census, .sorted = sorted, .ret = ret };
	struct changes rest;
	size_t count = 0;

	VEC_FOREACH (&census->contexts, context)
		if (context->changes.count > 0)
			sorted[count++] = context;
	if (count == 0 || census->moments < 2)
		return;
	qsort(sorted, count, sizeof(sorted[0]), by_frames);
	rest = changes_new(&w);
	w.families = families_of(census);
	visit(&w, 0, count, 0, &rest);
	families_deinit(&w.families);
	changes_free(&rest);
}

void sites_join(struct sites *sites, size_t site, size_t other)
{
	struct site *to = &sites->list.items[site], *from = &sites->list.items[other];

	for (size_t i = 0; i < to->moments; i++) {
		to->blocks[i] += from->blocks[i];
		to->bytes[i] += from->bytes[i];
	}
	VEC_FOREACH (&from->contexts, context)
		VEC_PUSH(&to->contexts, *context);
	VEC_SORT(&to->contexts, by_live);
	/* Each of them grows: the evidence is that of the better one. */
	if (from->trend.p < to->trend.p)
		to->trend = from->trend;
	to->key = from->key < to->key ? from->key : to->key;
	site_deinit(from);
	*from = sites->list.items[--sites->list.count];
}
