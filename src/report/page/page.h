#pragma once

#include "report/draw/draw.h"
#include "report/page/html.h"
#include "report/report_page.h"

/*
 * What the sections of a page share. Private to report/.
 */
struct page {
	struct html *h;
	const struct investigation *inv;
	const struct trial_dots *dots;
	const struct page_options *options;
	bool *evidence_shown; /* for each piece: it has a row, so a link leads somewhere */
};

/* How sure its verdict is: the first section's class. */
const char *page_verdict_class(const struct page *page);

/* The verdict's class for people: "A pointer that outlived its block". The caller's to free. */
char *page_headline(const struct page *page);

/* What the source calls it, or which bytes. Keyed: and how the block is found in other runs. */
void put_field(const struct page *page, const struct home *home);
void put_keyed_field(const struct page *page, const struct home *home);

/* Whose code it was, the source around it, and the stack a click away. Nothing of an empty one. */
void put_site(const struct page *page, const struct stack *stack);

/* The same in a few words, without source or stack. */
void put_place(const struct page *page, const struct stack *stack);

/* Text that is meant to be taken elsewhere, with a button for it. */
void put_copy(const struct page *page, const char *label, const char *text);

/* "e3, e7, …", each a link where it leads somewhere. */
void put_evidence_ids(const struct page *page, const uint64_t *items, size_t count);

/* "2026-01-02 03:04:05". */
void put_time(const struct page *page, int64_t ms);

/* "3 of 20 (15.0 %, 95 %: 5.2–36.0 %)". */
void put_rate(const struct page *page, const struct rate *rate);

/* The same as a cell of a table. */
void cell_ids(const struct page *page, const uint64_t *items, size_t count);
void cell_rate(const struct page *page, const struct rate *rate);
void row_head_text(const struct page *page, const char *text);
#define row_head(page, ...) WITH_TEXT(row_head_text(page, text_), __VA_ARGS__)

/* A head row, NULL at the end; the table must be open. */
void put_head(const struct page *page, const char *first, ...) __attribute__((sentinel));
void table_begin(const struct page *page, const char *label);
void table_end(const struct page *page);

/* Opens a row or an element with an id that is made of a letter and a number. */
void el_numbered(const struct page *page, const char *tag, const char *prefix, uint64_t number);

/* The sections, in order; each only where the case has something for it (has_…()). */
typedef void section_fn(const struct page *page);
section_fn page_verdict, page_chain, page_block, page_file, page_growth, page_references,
	page_lives, page_race, page_strip, page_observers, page_beside, page_minimal,
	page_breadcrumbs, page_machine, page_ledger, page_journal, page_trials, page_evidence,
	page_exports;

/* Would the section say something? For the list of contents. */
typedef bool section_has_fn(const struct page *page);
section_has_fn has_chain, has_block, has_file, has_growth, has_references, has_lives, has_race,
	has_strip, has_observers, has_beside, has_minimal, has_breadcrumbs, has_machine, has_ledger,
	has_journal, has_trials, has_evidence;

/* Trials that have a row of their own; the rest is counted. */
#define TRIAL_ROWS 200u
#define EVIDENCE_ROWS 200u
