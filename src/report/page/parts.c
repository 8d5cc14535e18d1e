/*
 * What several sections of a page are made of: places in code, commands to copy, tables.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/percent.h"
#include "base/source_file.h"
#include "model/signature.h"
#include "report/wording.h"

#define STACK_FRAMES 40u
#define AROUND 2u /* lines of source before and after */
#define SOURCE_COLUMNS 160u

void el_numbered(const struct page *page, const char *tag, const char *prefix, uint64_t number)
{
	AUTO(mem_freep) char *id = mem_printf("%s%" PRIu64, prefix, number);

	el(page->h, tag, "id", id, NULL);
}

/* "function (file:line)". */
static void put_frame(const struct page *page, const struct frame *frame)
{
	AUTO(strbuf_deinit) struct strbuf place = { 0 };
	struct frame shown = *frame;

	if (frame->function) {
		el_txt(page->h, "b", "function", frame->function);
		txt(page->h, " ");
	}
	if (frame->file && frame->line > 0) {
		strbuf_addf(&place, "%s:%" PRIu32, investigation_path(page->inv, frame->file),
			    frame->line);
	} else {
		shown.function = NULL;
		if (frame->file)
			shown.file = (char *)investigation_path(page->inv, frame->file);
		frame_describe(&shown, &place);
	}
	el_txt(page->h, "span", "place", strbuf_str(&place));
}

void put_field(const struct page *page, const struct home *home)
{
	AUTO(strbuf_deinit) struct strbuf words = { 0 };

	words_field(home, &words);
	if (home->field)
		el_txt(page->h, "b", "function", strbuf_str(&words));
	else
		txt(page->h, strbuf_str(&words));
}

void put_keyed_field(const struct page *page, const struct home *home)
{
	put_field(page, home);
	if (home->kind != HOME_BLOCK || !home->key)
		return;
	txt(page->h, " ");
	el_txt(page->h, "code", "key", home->key);
}

static void put_source_line(const struct page *page, uint32_t number, char *line, bool here)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	size_t len = strcspn(line, "\r\n");

	strbuf_addf(&text, "%5" PRIu32 " %c ", number, here ? '>' : ' ');
	for (size_t i = 0; i < len && text.len < SOURCE_COLUMNS; i++)
		if (line[i] == '\t')
			strbuf_adds(&text, "    ");
		else
			strbuf_add(&text, line + i, 1);
	el_txt(page->h, "span", here ? "line here" : "line", strbuf_str(&text));
	txt(page->h, "\n");
}

/* A file that is not at hand any more is no trouble: the place is named. */
static void put_source(const struct page *page, const struct frame *frame)
{
	FILE *source =
		frame->file && frame->line > 0 ? source_open(frame->file, frame->module) : NULL;
	uint32_t first = frame->line > AROUND ? frame->line - AROUND : 1;
	char *line = NULL;
	size_t room = 0;
	bool open = false;

	if (!source)
		return;
	for (uint32_t n = 1; n <= frame->line + AROUND && getline(&line, &room, source) >= 0; n++) {
		if (n < first)
			continue;
		if (!open)
			el(page->h, "pre", "class", "source", "tabindex", "0", NULL);
		open = true;
		put_source_line(page, n, line, n == frame->line);
	}
	if (open)
		el_end(page->h);
	(void)fclose(source);
	free(line);
}

static void put_stack(const struct page *page, const struct stack *stack)
{
	el(page->h, "details", NULL);
	el_txtf(page->h, "summary", NULL, "stack, %zu frame%s", stack->count,
		stack->count == 1 ? "" : "s");
	el(page->h, "ol", "class", "stack", "start", "0", NULL);
	for (size_t i = 0; i < stack->count && i < STACK_FRAMES; i++) {
		el(page->h, "li", NULL);
		put_frame(page, &stack->frames[i]);
		el_end(page->h);
	}
	el_end(page->h);
	if (stack->count > STACK_FRAMES)
		el_txtf(page->h, "p", "dim", "… and %zu more", stack->count - STACK_FRAMES);
	el_end(page->h);
}

void put_place(const struct page *page, const struct stack *stack)
{
	const struct frame *site = stack_site_or_top(stack);

	if (site)
		put_frame(page, site);
}

void put_site(const struct page *page, const struct stack *stack)
{
	const struct frame *site = stack_site_or_top(stack);

	if (!site)
		return;
	el(page->h, "p", "class", "site", NULL);
	put_frame(page, site);
	el_end(page->h);
	put_source(page, site);
	put_stack(page, stack);
}

void put_copy(const struct page *page, const char *label, const char *text)
{
	AUTO(mem_freep) char *say = mem_printf("Copy: %s", label);

	el(page->h, "div", "class", "copy", NULL);
	el(page->h, "pre", "tabindex", "0", "aria-label", label, NULL);
	el(page->h, "code", NULL);
	txt_exact(page->h, text);
	el_end(page->h);
	el_end(page->h);
	el_of(page->h, "Copy", "button", "type", "button", "class", "js", "data-copy", "",
	      "aria-label", say, NULL);
	el_end(page->h);
}

void put_evidence_ids(const struct page *page, const uint64_t *items, size_t count)
{
	for (size_t i = 0; i < count && i < 8; i++) {
		AUTO(mem_freep) char *id = mem_printf("e%" PRIu64, items[i]);
		bool shown = false;

		VEC_FOREACH (&page->inv->evidence.list, e)
			if (e->id == items[i])
				shown = page->evidence_shown[e - page->inv->evidence.list.items];
		txt(page->h, i > 0 ? ", " : "");
		if (shown)
			el_link(page->h, NULL, id, "#%s", id);
		else
			txt(page->h, id);
	}
	if (count > 8)
		txtf(page->h, " and %zu more", count - 8);
}

void put_time(const struct page *page, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		el_txt(page->h, "span", "when", text);
}

void put_rate(const struct page *page, const struct rate *rate)
{
	if (rate->trials == 0) {
		txt(page->h, "not run");
		return;
	}
	txtf(page->h, "%" PRIu64 " of %" PRIu64 " failed, %s %% (95 %%: %s–%s %%)", rate->failed,
	     rate->trials, PERCENT(rate->rate), PERCENT(rate->low), PERCENT(rate->high));
}

void cell_rate(const struct page *page, const struct rate *rate)
{
	el(page->h, "td", NULL);
	put_rate(page, rate);
	el_end(page->h);
}

void cell_ids(const struct page *page, const uint64_t *items, size_t count)
{
	el(page->h, "td", NULL);
	put_evidence_ids(page, items, count);
	el_end(page->h);
}

void row_head_text(const struct page *page, const char *text)
{
	el_of(page->h, text, "th", "scope", "row", NULL);
}

void table_begin(const struct page *page, const char *label)
{
	el(page->h, "div", "class", "scroll", "tabindex", "0", "role", "group", "aria-label", label,
	   NULL);
	el(page->h, "table", NULL);
}

void table_end(const struct page *page)
{
	el_end(page->h);
	el_end(page->h);
	el_end(page->h);
}

/* Opens the body as well. */
void put_head(const struct page *page, const char *first, ...)
{
	va_list args;

	el(page->h, "thead", NULL);
	el(page->h, "tr", NULL);
	va_start(args, first);
	for (const char *name = first; name; name = va_arg(args, const char *)) {
		el_of(page->h, name, "th", "scope", "col", NULL);
	}
	va_end(args);
	el_end(page->h);
	el_end(page->h);
	el(page->h, "tbody", NULL);
}
