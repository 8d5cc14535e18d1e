/*
 * What no picture of a block's bytes could tell: a mapped file that was cut, blocks that stay, who
 * acquired and who released references.
 */
#include "report/page/page_told.h"

#include <inttypes.h>

#include "base/auto.h"
#include "report/wording.h"

bool has_file(const struct page *page)
{
	return told_piece(page->inv, EVIDENCE_MAPPING) != NULL;
}

void page_file(const struct page *page)
{
	const struct evidence *e = told_piece(page->inv, EVIDENCE_MAPPING);
	AUTO(mem_freep) char *words = words_evidence_plainly(e);

	el_txtf(page->h, "p", NULL, "Trial %" PRIu64 ": %s.", e->trial, words);
	draw_file(page->h, e->mapping);
}

bool has_growth(const struct page *page)
{
	return told_piece(page->inv, EVIDENCE_GROWTH) != NULL;
}

void page_growth(const struct page *page)
{
	VEC_FOREACH (&page->inv->evidence.list, e) {
		AUTO(mem_freep)
		char *words = e->kind == EVIDENCE_GROWTH ? words_evidence_plainly(e) : NULL;

		if (!words)
			continue;
		words_capital(words);
		el_txtf(page->h, "p", NULL, "%s.", words);
		if (e == told_piece(page->inv, EVIDENCE_GROWTH))
			draw_growth(page->h, e->growth);
	}
}

bool has_references(const struct page *page)
{
	const struct evidence *e = told_piece(page->inv, EVIDENCE_ACCOUNT);

	return e && e->account->parties.count > 0;
}

void page_references(const struct page *page)
{
	const struct evidence *e = told_piece(page->inv, EVIDENCE_ACCOUNT);

	table_begin(page, "Who acquired and released references");
	put_head(page, "by", "acquired", "released", "difference", NULL);
	VEC_FOREACH (&e->account->parties, party) {
		bool odd = party->given > party->taken;

		el(page->h, "tr", "class", odd ? "only" : NULL, NULL);
		el(page->h, "td", NULL);
		put_place(page, &party->at);
		el_end(page->h);
		el_txtf(page->h, "td", NULL, "%" PRIu64, party->taken);
		el_txtf(page->h, "td", NULL, "%" PRIu64, party->given);
		el_txtf(page->h, "td", NULL, "%s%" PRId64, odd ? "◆ " : "",
			(int64_t)(party->taken - party->given));
		el_end(page->h);
	}
	table_end(page);
	el_txtf(page->h, "p", "dim", "As trial %" PRIu64 " shows it.", e->trial);
}
