/*
 * What the trials of a case show together: the rate strip, observers, where they died, which tests
 * it takes, which of them failed.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "model/family.h"
#include "report/draw/canvas.h"

#define CELLS_MOST 400u
#define PLACES_SHOWN 20u

static const char *const mark_signs[] = { "◆", "▲", "■", "✕", "✚", "○" };

static void put_sign(const struct page *page, int family)
{
	AUTO(mem_freep) char *class = NULL;

	if (family == DOT_PASSED) {
		el_txt(page->h, "span", "sign passed", "●");
		return;
	}
	class = mem_printf("sign %s", mark_class(family_mark(family)));
	el_txt(page->h, "span", class, mark_signs[family_mark(family)]);
}

static uint64_t count_dots(const struct trial_dots *dots, int family)
{
	uint64_t count = 0;

	VEC_FOREACH (&dots->list, dot)
		count += dot->family == family;
	return count;
}

static void put_legend(const struct page *page)
{
	const struct failure_families *families = &page->inv->summary.families;
	static const struct {
		int family;
		const char *words;
	} rest[] = {
		{ DOT_OTHER, "failed in another way" },
		{ DOT_ALWAYS, "only what every run shows: no failure of the kind that is hunted" },
		{ DOT_PASSED, "passed" },
	};

	el(page->h, "ul", "class", "legend", NULL);
	for (size_t i = 0; i < families->list.count && i < 12; i++) {
		const struct failure_family *family = &families->list.items[i];

		el(page->h, "li", NULL);
		put_sign(page, (int)i);
		txtf(page->h, " %" PRIu64 "× %s", count_dots(page->dots, (int)i),
		     family_name(family)->summary);
		if (family->members.count > 1)
			txtf(page->h, " and %zu alike", family->members.count - 1);
		el_end(page->h);
	}
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		uint64_t count = count_dots(page->dots, rest[i].family);

		if (count == 0)
			continue;
		el(page->h, "li", NULL);
		put_sign(page, rest[i].family);
		txtf(page->h, " %" PRIu64 "× %s", count, rest[i].words);
		el_end(page->h);
	}
	el_end(page->h);
}

bool has_strip(const struct page *page)
{
	return page->dots->list.count > 0;
}

void page_strip(const struct page *page)
{
	put_legend(page);
	draw_strip(page->h, page->inv, page->dots);
	if (page->inv->counted) {
		el(page->h, "p", NULL);
		txt(page->h, "The command as it is run: ");
		put_rate(page, &page->inv->summary.rate);
		txt(page->h, page->dots->closing.count >= CLOSING_LEAST
				     ? ". How the interval closed in:"
				     : ".");
		el_end(page->h);
		draw_closing(page->h, page->dots);
	}
}

static const struct rate *rate_without(const struct investigation *inv)
{
	VEC_FOREACH (&inv->observers, o)
		if (strcmp(o->name, "none") == 0)
			return &o->rate;
	return inv->counted ? &inv->summary.rate : NULL;
}

/* What it does, for who does not know it by name. */
static void put_observer(const struct page *page, const char *name)
{
	static const char *const does[][2] = {
		{ "none", "the program alone" },
		{ "valgrind", "the program under Memcheck" },
		{ "crash", "crashes are recorded" },
		{ "ids", "allocations are numbered" },
		{ "watch", "stores to fields are caught" },
		{ "heap", "guards around blocks" },
		{ "fence", "closed pages around blocks" },
	};

	el(page->h, "th", "scope", "row", NULL);
	txt(page->h, name);
	for (size_t i = 0; i < ARRAY_SIZE(does); i++)
		if (strcmp(name, does[i][0]) == 0)
			el_txtf(page->h, "small", NULL, " %s", does[i][1]);
	el_end(page->h);
}

static void put_effect(const struct page *page, const struct observer_rate *o)
{
	static const char *const words[] = { [EFFECT_NONE] = "no sign that it changes the rate",
					     [EFFECT_HIDES] = "hides it",
					     [EFFECT_RARER] = "makes it rarer",
					     [EFFECT_MORE_OFTEN] = "brings it out more often" };

	if (o->effect == EFFECT_UNKNOWN)
		txt(page->h, "not compared");
	else
		txtf(page->h, "%s (p = %.2g)", words[o->effect], o->p);
}

static void put_more_runs(const struct page *page, const struct observer_rate *o)
{
	if (o->effect > EFFECT_NONE || o->enough == 0)
		txt(page->h, "–");
	else if (o->effect == EFFECT_UNKNOWN)
		txtf(page->h, "%" PRIu64 " runs without it would, if it halves or doubles the rate",
		     o->enough);
	else if (o->enough > o->rate.trials)
		txtf(page->h, "%" PRIu64 " more runs would show a halving, four times in five",
		     o->enough - o->rate.trials);
	else
		txt(page->h, "a halving would have shown");
}

bool has_observers(const struct page *page)
{
	return page->inv->observers.count > 0;
}

void page_observers(const struct page *page)
{
	const struct rate *without = rate_without(page->inv);

	draw_forest(page->h, page->inv, without,
		    without == &page->inv->summary.rate ? "the command as it is run"
							: "no observer");
	table_begin(page, "Rate under each observer");
	put_head(page, "observer", "rate", "effect", "seconds", "would more runs tell?", NULL);
	VEC_FOREACH (&page->inv->observers, o) {
		el(page->h, "tr", NULL);
		put_observer(page, o->name);
		cell_rate(page, &o->rate);
		el(page->h, "td", NULL);
		put_effect(page, o);
		el_end(page->h);
		el_txtf(page->h, "td", NULL, o->seconds > 0 ? "%.3g" : "–", o->seconds);
		el(page->h, "td", NULL);
		put_more_runs(page, o);
		el_end(page->h);
		el_end(page->h);
	}
	table_end(page);
}

static void put_cell(const struct page *page, const struct trigger_cell *cell)
{
	static const struct {
		const char *class, *sign, *words;
	} states[] = {
		[CELL_NOT_NEEDED] = { "cell", "·", "not needed" },
		[CELL_NEEDED] = { "cell needed", "■", "needed" },
		[CELL_UNSURE] = { "cell unsure", "?", "unsure" },
		[CELL_VICTIM] = { "cell fails", "◆", "fails" },
	};

	el(page->h, "li", "class", states[cell->state].class, NULL);
	el_txtf(page->h, "span", NULL, "%s ", states[cell->state].sign);
	txt(page->h, cell->name);
	el_txtf(page->h, "small", NULL, " %s", states[cell->state].words);
	el_end(page->h);
}

static void put_cells(const struct page *page)
{
	size_t idle = 0, shown = 0;

	el(page->h, "ul", "class", "cells", NULL);
	VEC_FOREACH (&page->inv->trigger.cells, cell)
		if (cell->state != CELL_NOT_NEEDED)
			put_cell(page, cell);
		else
			idle++;
	el_end(page->h);
	if (idle == 0)
		return;
	el(page->h, "details", NULL);
	el_txtf(page->h, "summary", NULL, "%zu not needed", idle);
	el(page->h, "ul", "class", "cells", NULL);
	VEC_FOREACH (&page->inv->trigger.cells, cell)
		if (cell->state == CELL_NOT_NEEDED && shown++ < CELLS_MOST)
			put_cell(page, cell);
	el_end(page->h);
	if (idle > CELLS_MOST)
		el_txtf(page->h, "p", "dim", "… and %zu more", idle - CELLS_MOST);
	el_end(page->h);
}

static void put_without(const struct page *page)
{
	const struct trigger_set *trigger = &page->inv->trigger;

	table_begin(page, "Rate with and without each test");
	put_head(page, "list", "result", NULL);
	el(page->h, "tr", NULL);
	el_txtf(page->h, "td", NULL, "all %zu", trigger->total);
	cell_rate(page, &trigger->full);
	el_end(page->h);
	el(page->h, "tr", NULL);
	el_txtf(page->h, "td", NULL, "these %zu", trigger->items.count);
	cell_rate(page, &trigger->minimal);
	el_end(page->h);
	VEC_FOREACH (&trigger->items, item) {
		if (item->victim)
			continue;
		el(page->h, "tr", NULL);
		el_txtf(page->h, "td", NULL, "without %s", item->name);
		cell_rate(page, &item->without);
		el_end(page->h);
	}
	table_end(page);
}

bool has_minimal(const struct page *page)
{
	return page->inv->trigger.known;
}

void page_minimal(const struct page *page)
{
	const struct trigger_set *trigger = &page->inv->trigger;

	el_txtf(page->h, "p", "why", "%zu of %zu%s", trigger->items.count, trigger->total,
		trigger->proven
			? "; without any one of the others the one that fails never did."
			: "; the search is not finished, so some of them may not be needed.");
	put_cells(page);
	put_without(page);
	if (page->inv->reproduce) {
		el_txt(page->h, "p", NULL, "The shortest list as a command:");
		put_copy(page, "command with the shortest list", page->inv->reproduce);
	}
}

bool has_breadcrumbs(const struct page *page)
{
	return page->dots->crumbs.count > 0;
}

void page_breadcrumbs(const struct page *page)
{
	size_t shown = 0;

	draw_crumbs(page->h, page->dots);
	table_begin(page, "Last lines of failing trials");
	put_head(page, "died after", "before", "trials", "example", NULL);
	VEC_FOREACH (&page->inv->summary.signatures.list, s)
		VEC_FOREACH (&s->windows, window) {
			if (shown++ == PLACES_SHOWN)
				break;
			el(page->h, "tr", NULL);
			el_txt(page->h, "td", "log", window->last);
			el_txt(page->h, "td", "log", window->next ? window->next : "–");
			el_txtf(page->h, "td", NULL, "%" PRIu64, window->count);
			el_txtf(page->h, "td", NULL, "trial %" PRIu64, window->trial);
			el_end(page->h);
		}
	table_end(page);
}

bool has_trials(const struct page *page)
{
	return count_dots(page->dots, DOT_PASSED) < page->dots->list.count;
}

static void put_trial(const struct page *page, const struct trial_dot *dot)
{
	el_numbered(page, "tr", "t", dot->number);
	row_head(page, "%" PRIu64, dot->number);
	el(page->h, "td", NULL);
	put_sign(page, dot->family);
	txt(page->h, " ");
	txt(page->h, dot->summary);
	el_end(page->h);
	el_txt(page->h, "td", NULL, page->inv->series.items[dot->series].command);
	el_txtf(page->h, "td", NULL, "%u", dot->slot);
	el(page->h, "td", NULL);
	put_time(page, dot->started_ms);
	el_end(page->h);
	el_txtf(page->h, "td", NULL, "%" PRIu64 ".%03" PRIu64 " s", dot->wall_ns / 1000000000,
		dot->wall_ns / 1000000 % 1000);
	el_txt(page->h, "td", "log", dot->crumb ? dot->crumb : "–");
	el_end(page->h);
}

void page_trials(const struct page *page)
{
	size_t shown = 0, failed = 0;

	table_begin(page, "Failing trials");
	put_head(page, "trial", "what", "run by", "slot", "when (UTC)", "took", "last line", NULL);
	VEC_FOREACH (&page->dots->list, dot) {
		if (dot->family == DOT_PASSED)
			continue;
		failed++;
		if (shown == TRIAL_ROWS)
			continue;
		shown++;
		put_trial(page, dot);
	}
	table_end(page);
	if (failed > shown)
		el_txtf(page->h, "p", "dim",
			"The first %zu of %zu: redhand case trials lists them all.", shown, failed);
}
