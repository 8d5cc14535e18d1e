/*
 * The ledger of explanations, the journal of what was done, all evidence, and the other formats.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "report/report_investigation.h"
#include "report/text.h"
#include "report/wording.h"

/* A document that is longer is made by a command. */
#define EXPORT_BYTES_MOST (128u * 1024u)

static void put_status(const struct page *page, enum ledger_status status)
{
	static const struct {
		const char *class, *sign;
	} signs[] = { [LEDGER_UNTESTED] = { "status untested", "○" },
		      [LEDGER_OPEN] = { "status open", "?" },
		      [LEDGER_EXCLUDED] = { "status excluded", "✕" },
		      [LEDGER_CONFIRMED] = { "status confirmed", "✔" } };

	el_txtf(page->h, "span", signs[status].class, "%s %s", signs[status].sign,
		words_status(status));
}

static void put_hypothesis(const struct page *page, const struct ledger_entry *h)
{
	AUTO(mem_freep) char *id = mem_printf("h-%s", h->id);
	AUTO(mem_freep) char *text = words_of(&h->text);
	AUTO(mem_freep) char *because = words_of(&h->because);

	el(page->h, "tr", "id", id, NULL);
	el(page->h, "td", NULL);
	put_status(page, h->status);
	el_end(page->h);
	el(page->h, "td", NULL);
	el_txt(page->h, "code", NULL, h->id);
	txtf(page->h, " %s", text ? text : "");
	el_end(page->h);
	el(page->h, "td", NULL);
	if (h->by != EXPERIMENT_KINDS)
		txtf(page->h, "%s, %" PRIu64 " trial%s", words_experiment(h->by), h->telling,
		     h->telling == 1 ? "" : "s");
	if (h->status == LEDGER_EXCLUDED && h->by != EXPERIMENT_KINDS)
		txtf(page->h, ", chance to miss it: %.2g %%", h->missed * 100);
	el_end(page->h);
	el_txt(page->h, "td", NULL, because);
	cell_ids(page, h->evidence.items, h->evidence.count);
	el_end(page->h);
}

bool has_ledger(const struct page *page)
{
	return page->inv->verdict.ledger.count + page->inv->own_hypotheses.count > 0;
}

void page_ledger(const struct page *page)
{
	static const enum ledger_status order[] = { LEDGER_CONFIRMED, LEDGER_OPEN, LEDGER_EXCLUDED,
						    LEDGER_UNTESTED };

	section_begin(page, "ledger", "Every explanation, and what became of it", NULL);
	table_begin(page, "Explanations");
	put_head(page, "status", "explanation", "experiment", "because", "evidence", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		VEC_FOREACH (&page->inv->verdict.ledger, h)
			if (h->status == order[i])
				put_hypothesis(page, h);
		VEC_FOREACH (&page->inv->own_hypotheses, h)
			if (h->status == order[i])
				put_hypothesis(page, h);
	}
	table_end(page);
	section_end(page);
}

static void put_entry(const struct page *page, int64_t ms, const char *stage, const char *text)
{
	el(page->h, "li", NULL);
	put_time(page, ms);
	txt(page->h, " ");
	el_txt(page->h, "b", NULL, stage);
	txtf(page->h, " %s", text);
	el_end(page->h);
}

static void put_choice(const struct page *page, const struct choice_record *c)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	AUTO(mem_freep) char *why = words_of(&c->why);
	AUTO(mem_freep) char *brought = words_of(&c->brought);

	strbuf_addf(&text, "experiment %s: %s", c->experiment, why ? why : "");
	if (c->ended)
		strbuf_addf(&text,
			    "; it took %" PRIu64 " trials (expected %.0f), %" PRIu64
			    " of them failed, and brought: %s",
			    c->trials, c->expected_trials, c->failures,
			    brought ? brought : "nothing");
	put_entry(page, c->time_ms, c->question, strbuf_str(&text));
}

bool has_journal(const struct page *page)
{
	return page->inv->decisions.list.count + page->inv->choices.list.count +
		       page->inv->notes.list.count >
	       0;
}

void page_journal(const struct page *page)
{
	const struct investigation *inv = page->inv;
	size_t d = 0, c = 0;

	section_begin(page, "journal", "What was done, and why", NULL);
	el(page->h, "ol", "class", "journal", NULL);
	while (d < inv->decisions.list.count || c < inv->choices.list.count) {
		bool decision = c == inv->choices.list.count ||
				(d < inv->decisions.list.count &&
				 inv->decisions.list.items[d].time_ms <=
					 inv->choices.list.items[c].time_ms);

		if (decision) {
			const struct decision *made = &inv->decisions.list.items[d++];
			AUTO(mem_freep) char *text = words_of(&made->said);

			put_entry(page, made->time_ms, made->stage, text ? text : "");
		} else {
			put_choice(page, &inv->choices.list.items[c++]);
		}
	}
	VEC_FOREACH (&inv->notes.list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		el(page->h, "li", NULL);
		el_txt(page->h, "b", NULL, "note");
		txtf(page->h, " %s", text);
		el_end(page->h);
	}
	el_end(page->h);
	section_end(page);
}

bool has_evidence(const struct page *page)
{
	return page->inv->evidence.list.count > 0;
}

static void put_kinds(const struct page *page)
{
	uint64_t counts[EVIDENCE_KINDS] = { 0 };

	VEC_FOREACH (&page->inv->evidence.list, e)
		counts[e->kind]++;
	el(page->h, "p", "class", "why", NULL);
	txtf(page->h, "%zu piece%s:", page->inv->evidence.list.count,
	     page->inv->evidence.list.count == 1 ? "" : "s");
	for (unsigned int kind = 0; kind < EVIDENCE_KINDS; kind++)
		if (counts[kind] > 0)
			txtf(page->h, " %s %" PRIu64, evidence_kind_name(kind), counts[kind]);
	txt(page->h, ".");
	el_end(page->h);
}

static void put_piece(const struct page *page, const struct evidence *e)
{
	AUTO(strbuf_deinit) struct strbuf words = { 0 };

	words_evidence(e, &words);
	el_numbered(page, "tr", "e", e->id);
	row_head(page, "e%" PRIu64, e->id);
	el(page->h, "td", NULL);
	if (e->trial > 0)
		txtf(page->h, "%" PRIu64 "%s", e->trial, e->failing ? "" : " (passed)");
	el_end(page->h);
	el_txt(page->h, "td", NULL, evidence_kind_name(e->kind));
	el_txt(page->h, "td", NULL, strbuf_str(&words));
	el_end(page->h);
}

void page_evidence(const struct page *page)
{
	size_t left_out = 0;

	section_begin(page, "evidence", "Evidence", NULL);
	put_kinds(page);
	table_begin(page, "Evidence");
	put_head(page, "id", "trial", "kind", "what was seen", NULL);
	for (size_t i = 0; i < page->inv->evidence.list.count; i++)
		if (page->evidence_shown[i])
			put_piece(page, &page->inv->evidence.list.items[i]);
		else
			left_out++;
	table_end(page);
	if (left_out > 0)
		el_txtf(page->h, "p", "dim", "%zu more: redhand report --format json.", left_out);
	section_end(page);
}

typedef void (*write_fn)(const struct page *page, FILE *out);

static void write_md(const struct page *page, FILE *out)
{
	report_investigation_md(page->inv, out);
}

static void write_json(const struct page *page, FILE *out)
{
	report_investigation_json(page->inv, out);
}

static void write_sarif(const struct page *page, FILE *out)
{
	report_investigation_sarif(page->inv, page->options->version, out);
}

static char *rendered(const struct page *page, write_fn write, bool json)
{
	char *text = NULL, *shared;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	write(page, out);
	(void)fclose(out);
	if (!page->options->share || !json)
		return text; /* other texts lose what they must on their way into the page */
	shared = share_json(page->options->share, text, write == write_json);
	free(text);
	return shared;
}

static void put_export(const struct page *page, const char *id, const char *name, write_fn write)
{
	AUTO(mem_freep)
	char *command =
		mem_printf("redhand report --case %s --format %s", page->inv->case_dir, id + 3);
	char *text = page->inv->evidence.list.count <= 4 * EVIDENCE_ROWS
			     ? rendered(page, write, write != write_md)
			     : NULL;

	el(page->h, "details", "id", id, NULL);
	el_txt(page->h, "summary", NULL, name);
	if (text && strlen(text) <= EXPORT_BYTES_MOST)
		put_copy(page, name, text);
	else
		put_copy(page, name, command);
	el_end(page->h);
	free(text);
}

void page_exports(const struct page *page)
{
	section_begin(page, "formats", "Other formats",
		      "For an issue, a code host, a program. What is too long for this page is a "
		      "command.");
	put_export(page, "as-md", "Markdown", write_md);
	put_export(page, "as-json", "JSON", write_json);
	put_export(page, "as-sarif", "SARIF", write_sarif);
	section_end(page);
}
