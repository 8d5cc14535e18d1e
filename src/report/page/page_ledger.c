/*
 * The ledger of explanations, the journal of what was done, all evidence, and the other formats.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "report/report_investigation.h"
#include "report/text_parts.h"
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
	AUTO(mem_freep) char *because = words_plainly(&h->because);
	const struct ledger_entry *told = words_because_of(&page->inv->verdict, h);

	words_capital(text);
	words_capital(because);
	el(page->h, "tr", "id", id, NULL);
	el(page->h, "td", NULL);
	put_status(page, h->status);
	el_end(page->h);
	el(page->h, "td", NULL);
	txt(page->h, text ? text : "");
	el_txtf(page->h, "small", NULL, " %s", h->id);
	el_end(page->h);
	el(page->h, "td", NULL);
	if (h->by != EXPERIMENT_KINDS)
		txtf(page->h, "%s, %" PRIu64 " trial%s", words_experiment(h->by), h->telling,
		     h->telling == 1 ? "" : "s");
	if (h->status == LEDGER_EXCLUDED && h->by != EXPERIMENT_KINDS)
		txtf(page->h, ", chance to miss it: %.2g %%", h->missed * 100);
	el_end(page->h);
	el(page->h, "td", NULL);
	txt(page->h, told != h ? "The same as for " : because ? because : "");
	if (told != h)
		el_link(page->h, NULL, told->id, "#h-%s", told->id);
	el_end(page->h);
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
}

static void put_decision(const struct page *page, const struct said *said)
{
	AUTO(mem_freep) char *text = words_of(said);

	words_capital(text);
	el_txtf(page->h, "li", NULL, "%s%s", text ? text : "",
		text && text[0] != '\0' && text[strlen(text) - 1] == '?' ? "" : ".");
}

static void put_choice(const struct page *page, const struct choice_record *c)
{
	const char *what = words_named("tried", c->experiment);
	AUTO(mem_freep) char *brought = words_of(&c->brought);

	el(page->h, "li", NULL);
	el_txt(page->h, "b", NULL, what ? what : c->experiment);
	if (!c->ended)
		txt(page->h, ": has not ended.");
	else if (c->trials == 0)
		txtf(page->h, ": no new trial; %s.", brought ? brought : "");
	else
		txtf(page->h, ": %" PRIu64 " trial%s, %" PRIu64 " failed; %s.", c->trials,
		     c->trials == 1 ? "" : "s", c->failures, brought ? brought : "");
	el_end(page->h);
}

/* What follows is about this question; said once for what comes in a row. */
static void put_question(const struct page *page, int64_t ms, const char *name, const char **now)
{
	const char *words = words_named("question", name);

	if (*now && strcmp(*now, name) == 0)
		return;
	if (*now)
		el_end(page->h);
	*now = name;
	el(page->h, "h3", NULL);
	txtf(page->h, "%s ", words ? words : name);
	put_time(page, ms);
	el_end(page->h);
	el(page->h, "ul", "class", "journal", NULL);
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
	const struct decision *d = inv->decisions.list.items;
	const struct choice_record *c = inv->choices.list.items;
	const struct decision *d_end = d + inv->decisions.list.count;
	const struct choice_record *c_end = c + inv->choices.list.count;
	const char *question = NULL;

	while (d < d_end || c < c_end) {
		bool decision = c == c_end || (d < d_end && d->time_ms <= c->time_ms);

		put_question(page, decision ? d->time_ms : c->time_ms,
			     decision ? d->stage : c->question, &question);
		if (decision)
			put_decision(page, &d++->said);
		else
			put_choice(page, c++);
	}
	if (question)
		el_end(page->h);
	if (inv->notes.list.count > 0)
		el_txt(page->h, "h3", NULL, "Notes");
	el(page->h, "ul", "class", "journal", NULL);
	VEC_FOREACH (&inv->notes.list, note)
		put_decision(page, note);
	el_end(page->h);
}

bool has_evidence(const struct page *page)
{
	return page->inv->evidence.list.count > 0;
}

static void put_kinds(const struct page *page)
{
	uint64_t counts[EVIDENCE_KINDS] = { 0 };
	unsigned int put = 0;

	VEC_FOREACH (&page->inv->evidence.list, e)
		counts[e->kind]++;
	el(page->h, "p", "class", "why", NULL);
	txtf(page->h, "%zu piece%s", page->inv->evidence.list.count,
	     page->inv->evidence.list.count == 1 ? "" : "s");
	for (unsigned int kind = 0; kind < EVIDENCE_KINDS; kind++)
		if (counts[kind] > 0)
			txtf(page->h, "%s%" PRIu64 " × %s", put++ ? ", " : ": ", counts[kind],
			     words_named("kind", evidence_kind_name(kind)));
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
	el_txt(page->h, "td", NULL, words_named("kind", evidence_kind_name(e->kind)));
	el_txt(page->h, "td", NULL, strbuf_str(&words));
	el_end(page->h);
}

void page_evidence(const struct page *page)
{
	size_t left_out = 0;

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
	put_export(page, "as-md", "Markdown", write_md);
	put_export(page, "as-json", "JSON", write_json);
	put_export(page, "as-sarif", "SARIF", write_sarif);
}
