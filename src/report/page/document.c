/*
 * An investigation as a page: its frame, the list of contents, the sections in their order.
 */
#include "report/page/page.h"

#include <inttypes.h>

#include "base/auto.h"

static const struct {
	const char *id, *name;
	section_has_fn *has; /* NULL: always */
	section_fn *put;
	const char *title; /* its heading; NULL: its name */
	const char *why;   /* stands below; NULL */
} sections[] = {
	{ "verdict", "Verdict", .put = page_verdict },
	{ "chain", "The chain", has_chain, page_chain },
	{ "block", "The block", has_block, page_block },
	{ "file", "The mapped file", has_file, page_file },
	{ "growth", "What stays", has_growth, page_growth, .title = "Blocks that stay",
	  .why = "Live blocks that one place in the code has allocated, counted after each test." },
	{ "references", "References", has_references, page_references,
	  .title = "Who acquired and released references", .why = "Of one object, over its life." },
	{ "lives", "Lives of the address", has_lives, page_lives,
	  .why = "Blocks that had the same place, one after the other: a bar from the allocation to the free (✕). Only the order is told, as far as it is known; distances mean nothing." },
	{ "race", "The race", has_race, page_race, .title = "Two threads at one word" },
	{ "rate", "How often it fails", has_strip, page_strip,
	  .why = "Every trial in order, a lane for each slot or machine. Failures that come in a row stand beside each other." },
	{ "observers", "Observers", has_observers, page_observers,
	  .title = "What observing does to it",
	  .why = "The rate under each observer with its 95 % interval. The dashed line is the rate that they are compared with." },
	{ "beside", "Failing beside passing", has_beside, page_beside },
	{ "minimal", "Which tests it takes", has_minimal, page_minimal },
	{ "breadcrumbs", "Where it dies", has_breadcrumbs, page_breadcrumbs,
	  .why = "The last line that each failing trial printed, in the order of the log." },
	{ "machine", "The machine", has_machine, page_machine, .title = "Is it the machine?" },
	{ "ledger", "Explanations", has_ledger, page_ledger,
	  .title = "Every explanation, and what became of it",
	  .why = "The chance to miss it: that the trials would have looked the same if this were behind every second failure." },
	{ "journal", "What was done", has_journal, page_journal, .title = "What was done, and why",
	  .why = "What was asked, what was tried (in bold), and what followed from it." },
	{ "trials", "Failing trials", has_trials, page_trials,
	  .why = "redhand show NUMBER tells all about one. Keys: j and k go from one to the next." },
	{ "evidence", "Evidence", has_evidence, page_evidence },
	{ "formats", "Other formats", NULL, page_exports,
	  .why = "For an issue, a code host, a program. What is too long for this page is a command." },
};

char *page_policy(bool live)
{
	return mem_printf("default-src 'none'; style-src %s; script-src %s; %sbase-uri 'none'; "
			  "form-action 'none'",
			  html_asset_hash(ASSET_STYLE), html_asset_hash(ASSET_SCRIPT),
			  live ? "connect-src 'self'; " : "");
}

static void put_head_of_page(const struct page *page)
{
	AUTO(mem_freep) char *headline = page_headline(page);
	AUTO(mem_freep) char *policy = page_policy(page->options->live);

	el(page->h, "head", NULL);
	leaf(page->h, "meta", "charset", "utf-8", NULL);
	leaf(page->h, "meta", "http-equiv", "Content-Security-Policy", "content", policy, NULL);
	leaf(page->h, "meta", "name", "viewport", "content", "width=device-width, initial-scale=1",
	     NULL);
	leaf(page->h, "meta", "name", "referrer", "content", "no-referrer", NULL);
	leaf(page->h, "meta", "name", "color-scheme", "content", "light dark", NULL);
	el_txtf(page->h, "title", NULL, "%s: redhand", headline);
	html_asset(page->h, ASSET_STYLE);
	el_end(page->h);
}

static void put_section(const struct page *page, size_t i)
{
	AUTO(mem_freep) char *heading = mem_printf("%s-heading", sections[i].id);
	AUTO(mem_freep) char *link = mem_printf("#%s", sections[i].id);

	el(page->h, "section", "id", sections[i].id, "aria-labelledby", heading, "class",
	   i == 0 ? page_verdict_class(page) : NULL, NULL);
	if (i > 0) {
		el(page->h, "h2", "id", heading, NULL);
		txtf(page->h, "%s ", sections[i].title ? sections[i].title : sections[i].name);
		el_of(page->h, "#", "a", "class", "anchor", "href", link, "aria-label",
		      "link to this section", NULL);
		el_end(page->h);
	}
	if (sections[i].why)
		el_txt(page->h, "p", "why", sections[i].why);
	sections[i].put(page);
	el_end(page->h);
}

static void put_contents(const struct page *page)
{
	el(page->h, "nav", "aria-label", "Contents", NULL);
	el(page->h, "ul", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (sections[i].has && !sections[i].has(page))
			continue;
		el(page->h, "li", NULL);
		el_link(page->h, NULL, sections[i].name, "#%s", sections[i].id);
		el_end(page->h);
	}
	el_end(page->h);
	el_end(page->h);
}

static void put_top(const struct page *page)
{
	el(page->h, "header", NULL);
	el_link(page->h, "brand", "redhand", "#verdict");
	if (page->options->live) {
		el_of(page->h, "live", "span", "id", "live", "role", "status", NULL);
	}
	el(page->h, "label", "class", "js search", NULL);
	el_txt(page->h, "span", NULL, "Filter rows ( / )");
	leaf(page->h, "input", "type", "search", "id", "filter", "autocomplete", "off", NULL);
	el_end(page->h);
	el_end(page->h);
}

/* The first rows, and those that somebody refers to. */
static bool *choose_evidence(const struct investigation *inv)
{
	size_t count = inv->evidence.list.count;
	bool *shown = mem_alloc(count + 1);

	for (size_t i = 0; i < count; i++) {
		uint64_t id = inv->evidence.list.items[i].id;

		shown[i] = i < EVIDENCE_ROWS;
		for (size_t k = 0; k < inv->verdict.evidence.count && k < EVIDENCE_ROWS; k++)
			shown[i] |= inv->verdict.evidence.items[k] == id;
	}
	return shown;
}

void report_investigation_html(const struct investigation *inv, const struct trial_dots *dots,
			       const struct page_options *options, FILE *out)
{
	struct page page = { .h = html_new(out, options->share, inv->root),
			     .inv = inv,
			     .dots = dots,
			     .options = options,
			     .evidence_shown = choose_evidence(inv) };
	AUTO(mem_freep) char *state = mem_printf("%" PRIu64, options->state);

	html_doctype(page.h);
	el(page.h, "html", "lang", "en", "data-live", options->live ? state : NULL, NULL);
	put_head_of_page(&page);
	el(page.h, "body", NULL);
	el_link(page.h, "skip", "To the verdict", "#verdict");
	put_top(&page);
	el(page.h, "div", "class", "page", NULL);
	put_contents(&page);
	el(page.h, "main", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!sections[i].has || sections[i].has(&page))
			put_section(&page, i);
	el_end(page.h);
	el_end(page.h);
	el(page.h, "footer", NULL);
	txtf(page.h, "redhand %s. Case: %s. Nothing on this page was loaded from elsewhere.",
	     options->version, inv->case_dir);
	el_end(page.h);
	html_asset(page.h, ASSET_SCRIPT);
	el_end(page.h);
	el_end(page.h);
	mem_free(page.evidence_shown);
	html_free(page.h);
}
