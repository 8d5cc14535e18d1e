/*
 * The chain: from the failure back to its cause, a card each.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "model/signature.h"
#include "report/wording.h"

static bool same_stack(const struct stack *a, const struct stack *b)
{
	return a->count == b->count && a->count > 0 && a->frames[0].offset == b->frames[0].offset &&
	       a->frames[0].line == b->frames[0].line &&
	       a->frames[0].address == b->frames[0].address;
}

static void card_begin(const struct page *page, const char *id, const char *title)
{
	el(page->h, "li", "id", id, "class", "card", NULL);
	el_txt(page->h, "h3", NULL, title);
}

static void put_instruction(const struct page *page, const char *instruction)
{
	if (!instruction)
		return;
	el(page->h, "p", NULL);
	el_txt(page->h, "code", "instruction", instruction);
	el_end(page->h);
}

static void crash_card(const struct page *page, const struct crash *crash)
{
	AUTO(mem_freep) char *words = crash ? words_of(&crash->words) : NULL;

	if (!crash)
		return;
	card_begin(page, "crash", "It fails");
	el_txtf(page->h, "p", NULL, "%s%s%s", signal_name(crash->signal), words ? ": " : "",
		words ? words : "");
	put_instruction(page, crash->instruction);
	put_site(page, &crash->stack);
	el_end(page->h);
}

/* Of the trial that the verdict tells, else of any. */
static const struct evidence *fault_value(const struct page *page)
{
	const struct evidence *crash =
		evidence_find(&page->inv->evidence, page->inv->verdict.crash);
	const struct evidence *found = NULL;

	VEC_FOREACH (&page->inv->evidence.list, e)
		if (e->kind == EVIDENCE_FAULT_VALUE && e->failing &&
		    (!found || (crash && e->trial == crash->trial)))
			found = e;
	return found;
}

static void value_card(const struct page *page, const struct crash *crash)
{
	const struct evidence *value = fault_value(page);

	if (!value && !(crash && crash->origin))
		return;
	card_begin(page, "value", value ? "The bad value" : "The pointer that it used");
	if (value) {
		AUTO(mem_freep) char *words = words_evidence_plainly(value);

		el_txtf(page->h, "p", NULL, "In trial %" PRIu64 " %s.", value->trial, words);
	}
	if (crash && crash->origin) {
		el_txt(page->h, "p", "dim", "It was loaded by:");
		put_instruction(page, crash->origin);
	}
	el_end(page->h);
}

static void home_card(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	const struct evidence *holder = evidence_find(&page->inv->evidence, v->holder);

	if (v->home.kind == HOME_UNKNOWN)
		return;
	card_begin(page, "home",
		   v->class == VERDICT_DANGLING_HOLDER ? "Where the pointer stands"
						       : "Where the value lay");
	el(page->h, "p", NULL);
	put_field(page, &v->home);
	el_end(page->h);
	if (holder && holder->kind == EVIDENCE_HOLDER && holder->holder->holder) {
		el_txt(page->h, "p", "dim", "That block was made by:");
		put_site(page, &holder->holder->holder->allocated);
	} else if (v->victim && v->victim->size > 0) {
		el_txtf(page->h, "p", "dim", "A block of %" PRIu64 " bytes, %s.", v->victim->size,
			v->victim->state == BLOCK_FREED || v->victim->former ? "freed" : "live");
	}
	el_end(page->h);
}

static const char *writer_title(enum verdict_class class)
{
	switch (class) {
	case VERDICT_DANGLING_HOLDER:
		return "Who stored the pointer";
	case VERDICT_DOUBLE_FREE:
	case VERDICT_INVALID_FREE:
		return "Who freed it";
	case VERDICT_OVER_RELEASE:
		return "Who gave it back";
	case VERDICT_MAPPING_TRUNCATED:
		return "Who made the file shorter";
	case VERDICT_LEAK_GROWTH:
		return "Who allocates what stays";
	default:
		return "Who wrote it";
	}
}

static void put_values(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	int digits = (int)(v->value_len > 0 && v->value_len <= 8 ? v->value_len * 2 : 1);

	el(page->h, "p", NULL);
	if (v->instruction)
		el_txt(page->h, "code", "instruction", v->instruction);
	if (v->width > 0)
		txtf(page->h, " %u byte%s%s%s", v->width, v->width == 1 ? "" : "s",
		     v->fit != FIT_UNKNOWN ? ", " : "",
		     v->fit != FIT_UNKNOWN ? store_fit_name(v->fit) : "");
	el_end(page->h);
	if (v->values_known && !html_shared(page->h)) {
		el(page->h, "p", "class", "values", NULL);
		el_txtf(page->h, "code", NULL, "0x%0*" PRIx64, digits, v->old);
		txt(page->h, " → ");
		el_txtf(page->h, "code", "bad", "0x%0*" PRIx64, digits, v->new);
		el_end(page->h);
	}
}

static void writer_card(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;

	if (v->writer.count == 0)
		return;
	card_begin(page, "writer", writer_title(v->class));
	if (v->instruction || v->width > 0 || v->values_known)
		put_values(page);
	put_site(page, &v->writer);
	el_end(page->h);
	if (v->other.count == 0)
		return;
	card_begin(page, "other", v->class == VERDICT_RACE ? "The other thread" : "Who copied it");
	put_site(page, &v->other);
	el_end(page->h);
}

/* Hops between the failure and the origin: what each says, folded. */
static void copies_card(const struct page *page)
{
	size_t hops = 0;

	VEC_FOREACH (&page->inv->evidence.list, e)
		hops += e->kind == EVIDENCE_HOP;
	if (hops < 2)
		return;
	card_begin(page, "copies", "On its way there");
	el(page->h, "details", NULL);
	el_txtf(page->h, "summary", NULL, "%zu steps, each watched by itself", hops);
	el(page->h, "ol", NULL);
	VEC_FOREACH (&page->inv->evidence.list, e) {
		AUTO(strbuf_deinit) struct strbuf words = { 0 };

		if (e->kind != EVIDENCE_HOP)
			continue;
		words_evidence(e, &words);
		el_txt(page->h, "li", NULL, strbuf_str(&words));
	}
	el_end(page->h);
	el_end(page->h);
	el_end(page->h);
}

/* What is left of the way, back to the allocation. */
static void step_cards(const struct page *page, const struct crash *crash)
{
	const struct verdict *v = &page->inv->verdict;

	for (size_t i = v->steps.count; i-- > 0;) {
		const struct verdict_step *step = &v->steps.items[i];
		AUTO(mem_freep) char *title = words_of(&step->what);
		AUTO(mem_freep) char *id = mem_printf("step-%zu", i + 1);

		if (same_stack(&step->stack, &v->writer) ||
		    (crash && same_stack(&step->stack, &crash->stack)))
			continue;
		if (title[0] >= 'a' && title[0] <= 'z')
			title[0] = (char)(title[0] - 'a' + 'A');
		card_begin(page, i == 0 ? "origin" : id, title);
		put_site(page, &step->stack);
		el_end(page->h);
	}
}

bool has_chain(const struct page *page)
{
	return page->inv->verdict.steps.count > 0 || investigation_crash(page->inv) != NULL;
}

void page_chain(const struct page *page)
{
	const struct crash *crash = investigation_crash(page->inv);

	section_begin(page, "chain", "The chain",
		      "From the failure (1) back to its cause: each step comes from the next one.");
	el(page->h, "ol", "class", "chain", NULL);
	crash_card(page, crash);
	value_card(page, crash);
	home_card(page);
	copies_card(page);
	writer_card(page);
	step_cards(page, crash);
	el_end(page->h);
	section_end(page);
}
