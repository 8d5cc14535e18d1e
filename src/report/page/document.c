/*
 * An investigation as a page: its frame, the list of contents, the sections in their order.
 */
#include "report/page/page.h"

#include <inttypes.h>

#include "base/auto.h"

static const struct {
	const char *id, *name;
	bool (*has)(const struct page *page); /* NULL: always */
	void (*put)(const struct page *page);
} sections[] = {
	{ "verdict", "Verdict", NULL, page_verdict },
	{ "chain", "The chain", has_chain, page_chain },
	{ "block", "The block", has_block, page_block },
	{ "lives", "Lives of the address", has_lives, page_lives },
	{ "race", "The race", has_race, page_race },
	{ "rate", "How often it fails", has_strip, page_strip },
	{ "observers", "Observers", has_observers, page_observers },
	{ "beside", "Failing beside passing", has_beside, page_beside },
	{ "minimal", "Which tests it takes", has_minimal, page_minimal },
	{ "breadcrumbs", "Where it dies", has_breadcrumbs, page_breadcrumbs },
	{ "machine", "The machine", has_machine, page_machine },
	{ "ledger", "Explanations", has_ledger, page_ledger },
	{ "journal", "What was done", has_journal, page_journal },
	{ "trials", "Failing trials", has_trials, page_trials },
	{ "evidence", "Evidence", has_evidence, page_evidence },
	{ "formats", "Other formats", NULL, page_exports },
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
		el(page->h, "span", "id", "live", "role", "status", NULL);
		txt(page->h, "live");
		el_end(page->h);
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
			sections[i].put(&page);
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
