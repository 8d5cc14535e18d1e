/*
 * Every trial as a dot, the rate as it closed in, and the breadcrumbs around the places of death:
 * what pictures of a whole case are drawn from. No log is opened.
 */
#include "studies/overview/case_investigation.h"

#include <stdlib.h>
#include <string.h>

#include "search/stats/rate.h"

/* Lines that follow each other in runs that came to their end: a program that prints a counter has
 * as many as it has lines. */
#define CRUMBS_MAX 20000u

static size_t series_index(const struct investigation *inv, uint64_t id)
{
	for (size_t i = 0; i < inv->series.count; i++)
		if (inv->series.items[i].id == (int64_t)id)
			return i;
	return inv->series.count;
}

static bool is_always(const struct investigation *inv, const char *id)
{
	VEC_FOREACH (&inv->summary.signatures.list, s)
		if (strcmp(s->signature.id, id) == 0)
			return s->always;
	return false;
}

/* The family that has it, or that would have it: the summary is of one series. */
static int family_with(struct case_store *cs, const struct investigation *inv, const char *id)
{
	const struct failure_families *families = &inv->summary.families;
	AUTO(signature_deinit) struct signature s = { 0 };

	for (size_t i = 0; i < families->list.count; i++)
		if (family_has(&families->list.items[i], id))
			return (int)i;
	if (is_always(inv, id))
		return DOT_ALWAYS;
	if (case_signature(cs, id, &s, NULL) < 0)
		return DOT_OTHER;
	for (size_t i = 0; i < families->list.count; i++)
		if (family_takes(&families->list.items[i], &s))
			return (int)i;
	/* What no test tells apart is one family (studies/series/families.c). */
	return families->list.count == 1 && !(s.test && family_test(&families->list.items[0]))
		       ? 0
		       : DOT_OTHER;
}

/* What comes and goes tells more than what every run shows. */
static int family_index(struct case_store *cs, const struct investigation *inv,
			const char *signatures)
{
	char id[SIGNATURE_ID_LEN + 1];
	int found = signatures[0] == '\0' ? DOT_PASSED : DOT_ALWAYS;

	for (const char *at = signatures; (at = signature_next_id(at, id)) != NULL;) {
		int family = family_with(cs, inv, id);

		if (family >= 0)
			return family;
		found = family == DOT_OTHER ? DOT_OTHER : found;
	}
	return found;
}

static size_t node_index(struct trial_dots *dots, const char *node)
{
	size_t i = 0;

	while (i < dots->nodes.count && strcmp(dots->nodes.items[i], node) != 0)
		i++;
	if (i == dots->nodes.count)
		strv_add(&dots->nodes, node);
	return i;
}

static void add_dot(struct case_store *cs, const struct investigation *inv, struct trial_line *line,
		    struct trial_dots *ret)
{
	size_t series = series_index(inv, line->series);
	int family = family_index(cs, inv, line->signatures);

	/* Of another command than the one that the verdict is about. */
	if (series == inv->series.count)
		return;
	VEC_PUSH(&ret->list, ((struct trial_dot){
				     .number = line->number,
				     .series = series,
				     .slot = line->slot,
				     .node = node_index(ret, line->node ? line->node : ""),
				     .family = family,
				     .started_ms = line->started_ms,
				     .wall_ns = line->wall_ns,
				     .summary = family != DOT_PASSED ? TAKE(line->summaries) : NULL,
				     .crumb = TAKE(line->crumb) }));
}

/* Counted as the summary counts: failures that come and go, where there are any. */
static bool counts(const struct investigation *inv, const struct trial_dot *dot)
{
	const struct failure_family *family;

	if (dot->family == DOT_PASSED)
		return false;
	if (!inv->summary.intermittent)
		return true;
	if (dot->family < 0)
		return false;
	family = &inv->summary.families.list.items[dot->family];
	return VEC_ANY(&inv->summary.signatures.list, s,
		       family_has(family, s->signature.id) && !s->always);
}

static void close_in(const struct investigation *inv, struct trial_dots *dots)
{
	uint64_t trials = 0, failed = 0, all = 0;

	VEC_FOREACH (&dots->list, dot)
		all += dot->series == inv->main_series;
	VEC_FOREACH (&dots->list, dot) {
		if (dot->series != inv->main_series)
			continue;
		trials++;
		failed += counts(inv, dot);
		if (trials == all ||
		    trials * RATE_POINTS / (all + 1) != (trials - 1) * RATE_POINTS / (all + 1))
			VEC_PUSH(&dots->closing, ((struct rate_point){ rate_wilson(
							 trials, failed, RATE_CONFIDENCE) }));
	}
}

struct crumb_order {
	VEC(struct crumb_pair) pairs; /* by `from` */
};

static int by_from(const void *a, const void *b)
{
	return strcmp(((const struct crumb_pair *)a)->from, ((const struct crumb_pair *)b)->from);
}

/* The most frequent successor of each comes first, and is the one that is kept. */
static void add_pair(void *ctx, const char *from, const char *to)
{
	struct crumb_order *order = ctx;

	if (order->pairs.count < CRUMBS_MAX)
		VEC_PUSH(&order->pairs, ((struct crumb_pair){ mem_strdup(from), mem_strdup(to) }));
}

static const char *after(const struct crumb_order *order, const char *crumb)
{
	struct crumb_pair key = { .from = (char *)crumb };
	const struct crumb_pair *found = order->pairs.count > 0
						 ? bsearch(&key, order->pairs.items,
							   order->pairs.count, sizeof(key), by_from)
						 : NULL;

	return found ? found->to : NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Places of death, sorted; the texts are the dots'. */
struct death_places {
	VEC(char *) list;
};

static bool is_place(const struct death_places *places, const char *crumb)
{
	return places->list.count > 0 && bsearch(&crumb, places->list.items, places->list.count,
						 sizeof(char *), by_text) != NULL;
}

static void collect_places(const struct trial_dots *dots, struct death_places *ret)
{
	VEC_FOREACH (&dots->list, dot)
		if (dot->crumb)
			VEC_PUSH(&ret->list, dot->crumb);
	VEC_SORT(&ret->list, by_text);
}

#define PLACES_MAX 60u

static void list_place(struct trial_dots *dots, const char *crumb)
{
	if (crumb && dots->crumbs.count < PLACES_MAX && !strv_has(&dots->crumbs, crumb))
		strv_add(&dots->crumbs, crumb);
}

/* From the first line on, by what follows most often; places that this way does not come by stand
 * at the end. */
static void order_places(const struct crumb_order *order, struct trial_dots *dots)
{
	struct death_places places = { 0 };
	const char *at = CRUMB_START;

	collect_places(dots, &places);
	for (size_t steps = 0; at && steps <= order->pairs.count; steps++) {
		if (is_place(&places, at)) {
			list_place(dots, at);
			list_place(dots, after(order, at));
		}
		at = after(order, at);
	}
	VEC_FOREACH (&dots->list, dot)
		list_place(dots, dot->crumb);
	VEC_DEINIT(&places.list);
}

static int read_places(struct case_store *cs, const struct investigation *inv,
		       struct trial_dots *dots, struct err *err)
{
	struct crumb_order order = { 0 };
	struct series_id main = { inv->main_series < inv->series.count
					  ? inv->series.items[inv->main_series].id
					  : 0 };
	int r = case_crumb_order(cs, main, add_pair, &order, err);

	if (r == 0)
		order_places(&order, dots);
	VEC_FREE(&order.pairs, pair, MEM_FREE(pair->from, pair->to));
	return r;
}

int dots_read(struct case_store *cs, const struct investigation *inv, struct trial_dots *ret,
	      struct err *err)
{
	AUTO(trial_lines_deinit) struct trial_lines lines = { 0 };
	struct trial_dots dots = { 0 };
	int r = case_trial_lines(cs, &lines, err);

	VEC_FOREACH (&lines.list, line)
		add_dot(cs, inv, line, &dots);
	if (r == 0)
		r = read_places(cs, inv, &dots, err);
	if (r < 0) {
		trial_dots_deinit(&dots);
		return r;
	}
	close_in(inv, &dots);
	*ret = dots;
	return 0;
}
