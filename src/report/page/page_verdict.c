/*
 * The top of a page: what happened, where, how sure, how to repeat it, how to prove a fix, and what
 * would change our mind.
 */
#include "report/page/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/words.h"
#include "model/known_secrets.h"
#include "model/signature.h"
#include "report/report_investigation.h"
#include "report/text_parts.h"
#include "report/wording.h"

char *page_headline(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	char *words;

	if (!page->inv->judged)
		return mem_strdup(page->inv->series.count == 0
					  ? "Nothing has been run yet"
					  : "No cause has been looked for yet");
	words = mem_printf("%s%s", v->firm || v->class == VERDICT_NOT_CAUGHT ? "" : "Probably ",
			   verdict_never_failed(page->inv) ? "it has not failed"
							   : words_verdict_of(v));
	words_capital(words);
	return words;
}

static void fact_begin(const struct page *page, const char *id, const char *name)
{
	el(page->h, "div", "class", "fact", "id", id, NULL);
	el_txt(page->h, "dt", NULL, name);
	el(page->h, "dd", NULL);
}

static void fact_end(const struct page *page)
{
	el_end(page->h);
	el_end(page->h);
}

/* As a sentence of its own; how often it was caught stands further down. NULL: a damaged case. */
static char *sentence_alone(const struct verdict *v, const struct said *sentence)
{
	char *text = words_plainly(sentence);
	char *count = text && v->watched > 0 ? strstr(text, "; caught in ") : NULL;

	if (count)
		*count = '\0';
	return text;
}

static void put_sentence(const struct page *page, const struct verdict *v)
{
	AUTO(mem_freep) char *text = sentence_alone(v, &v->sentence);

	words_capital(text);
	if (text)
		txtf(page->h, "%s.", text);
}

static void put_what(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;

	fact_begin(page, "what", "What happened");
	if (page->inv->judged)
		put_sentence(page, v);
	else if (page->inv->series.count == 0)
		txt(page->h, "The case is empty. redhand hunt -- PROGRAM begins.");
	else
		txt(page->h,
		    "The case holds trials, but no evidence: redhand hunt looks for the cause.");
	fact_end(page);
}

/* Who is to be looked at first: the writer, else whoever freed it, else where it fails. */
static const struct stack *main_stack(const struct investigation *inv, const char **ret_what)
{
	const struct crash *crash = investigation_crash(inv);

	if (inv->judged && inv->verdict.writer.count > 0) {
		*ret_what = inv->verdict.class == VERDICT_LEAK_GROWTH ? "allocated by" : "by";
		return &inv->verdict.writer;
	}
	if (inv->judged && inv->verdict.freed_by.count > 0) {
		*ret_what = "freed by";
		return &inv->verdict.freed_by;
	}
	/* Where it was allocated comes first among the steps, a read out of bounds last. */
	for (size_t i = 0, n = inv->verdict.steps.count; i < n; i++) {
		const struct verdict_step *step =
			&inv->verdict.steps
				 .items[inv->verdict.class == VERDICT_OVER_READ ? n - 1 - i : i];

		if (step->stack.count > 0) {
			*ret_what = step->what.text ? step->what.text : words_text(step->what.id);
			return &step->stack;
		}
	}
	*ret_what = "fails in";
	return crash && crash->stack.count > 0 ? &crash->stack : NULL;
}

static void put_editor(const struct page *page, const struct stack *stack)
{
	const struct frame *site = stack_site(stack);
	AUTO(mem_freep) char *place = NULL;

	if (!site || !site->file || site->line == 0)
		return;
	place = mem_printf("%s:%" PRIu32, site->file, site->line);
	el_of(page->h, "Copy for an editor", "button", "type", "button", "class", "js small",
	      "data-copy-text", place, NULL);
}

/* The field as the source calls it, and what block that is. */
static void put_home(const struct page *page)
{
	const struct investigation *inv = page->inv;
	const struct home *home = &inv->verdict.home;
	const struct block_life *block = home->kind == HOME_BLOCK ? investigation_block(inv) : NULL;
	const struct layout_field *field =
		home->kind == HOME_BLOCK && home->offset >= 0
			? block_layout_at(&inv->layout, (uint64_t)home->offset)
			: NULL;

	el(page->h, "div", NULL);
	el_txt(page->h, "span", "dim", "in ");
	if (field && !home->field) {
		el_txt(page->h, "b", "function", field->name);
		txtf(page->h, " of a %s: ", inv->layout.type);
	}
	put_field(page, home);
	if (block && block->allocated.count > 0) {
		txt(page->h, " ");
		if (block->size > 0)
			el_txtf(page->h, "span", "dim", "(%" PRIu64 " bytes, allocated by ",
				block->size);
		else
			el_txt(page->h, "span", "dim", "(allocated by ");
		put_place(page, &block->allocated);
		el_txt(page->h, "span", "dim", ")");
	}
	el_end(page->h);
}

/* Other places of the story, a line each. */
static void put_beside(const struct page *page, const char *what, const struct stack *stack)
{
	if (stack->count == 0)
		return;
	el(page->h, "div", NULL);
	el_txtf(page->h, "span", "dim", "%s ", what);
	put_place(page, stack);
	el_end(page->h);
}

static void put_where(const struct page *page)
{
	const char *what = NULL;
	const struct stack *stack = main_stack(page->inv, &what);
	const struct crash *crash = investigation_crash(page->inv);

	if (!stack && page->inv->verdict.home.kind == HOME_UNKNOWN)
		return;
	fact_begin(page, "where", "Where");
	if (stack) {
		el(page->h, "div", NULL);
		el_txtf(page->h, "span", "dim", "%s ", what);
		put_place(page, stack);
		txt(page->h, " ");
		put_editor(page, stack);
		el_end(page->h);
	}
	if (page->inv->verdict.home.kind != HOME_UNKNOWN)
		put_home(page);
	if (page->inv->judged && stack != &page->inv->verdict.freed_by)
		put_beside(page, "freed by", &page->inv->verdict.freed_by);
	if (crash && stack != &crash->stack)
		put_beside(page, "fails in", &crash->stack);
	fact_end(page);
}

static void put_sure(const struct page *page)
{
	const struct investigation *inv = page->inv;
	const struct verdict *v = &inv->verdict;
	size_t others = 0, excluded = inv->judged ? verdict_count(v, LEDGER_EXCLUDED, &others) : 0;

	if (!inv->judged && !inv->counted)
		return;
	fact_begin(page, "sure", "How sure");
	if (inv->judged && v->watched > 0) {
		el(page->h, "div", NULL);
		el_txtf(page->h, "b", NULL, "caught in %" PRIu64 " of %" PRIu64, v->caught,
			v->watched);
		txtf(page->h, " %sruns that could show it, out of %" PRIu64 " runs",
		     inv->summary.failed_any > 0 || !inv->counted ? "failing " : "", v->trials);
		el_end(page->h);
	}
	if (others > 0) {
		el(page->h, "div", NULL);
		txtf(page->h, "%zu of %zu ", excluded, others);
		el_link(page->h, NULL, "other explanations", "#ledger");
		txtf(page->h, " are ruled out, %zu not tested",
		     verdict_count(v, LEDGER_UNTESTED, &others));
		el_end(page->h);
	}
	if (inv->counted) {
		el(page->h, "div", NULL);
		txt(page->h, "As you run it, ");
		put_rate(page, &inv->summary.rate);
		el_end(page->h);
	}
	fact_end(page);
}

static void put_commands(const struct page *page)
{
	const struct investigation *inv = page->inv;

	if (inv->reproduce) {
		fact_begin(page, "repeat", "How to repeat it");
		put_copy(page, "command that repeats it", inv->reproduce);
		fact_end(page);
	}
	if (inv->prove_fix) {
		fact_begin(page, "prove", "How to prove a fix");
		put_copy(page, "command that proves a fix", inv->prove_fix);
		if (inv->counted && inv->summary.clean_runs_for_99 > 1) {
			AUTO(mem_freep) char *clean = text_clean_runs(&inv->summary);

			el_txtf(page->h, "p", "dim", "%s.", clean);
		}
		fact_end(page);
	}
}

/* What one run would have to show. A firm verdict must say it, too: else it could not be wrong. */
static const char *const refutations[VERDICT_CLASSES] = {
	[VERDICT_NOT_CAUGHT] = "One failing run in which somebody is caught.",
	[VERDICT_LEAK_GROWTH] = "A longer run in which the number of these blocks stops growing.",
	[VERDICT_DANGLING_HOLDER] =
		"A failing run in which that place does not point to the freed block.",
	[VERDICT_MAPPING_TRUNCATED] = "A failing run before which nobody made the file shorter.",
	[VERDICT_NULL_POINTER] = "A run in which the pointer is set, or damage before the fault.",
	[VERDICT_DIVISION_BY_ZERO] = "Damage seen before the fault.",
	[VERDICT_STACK_EXHAUSTED] = "Damage seen before the fault.",
	[VERDICT_ILLEGAL_INSTRUCTION] = "Damage seen before the fault.",
	[VERDICT_NOT_MEMORY] = "Damaged memory in a run that fails in the same way.",
	[VERDICT_USE_AFTER_FREE] = "A failing run in which the freed block is not used.",
	[VERDICT_OVER_READ] =
		"A run with closed pages around the block in which nobody reads there.",
	[VERDICT_DOUBLE_FREE] = "A failing run in which it is freed once.",
	[VERDICT_INVALID_FREE] = "A failing run without that free.",
	[VERDICT_OVER_RELEASE] = "A failing run in which the count comes out even.",
	[VERDICT_RACE] = "A failing run in which one thread alone wrote it, or both held a lock.",
	[VERDICT_HOST_SUSPECTED] = "The same failure on another machine.",
};

static const char *what_would_refute(const struct investigation *inv)
{
	const struct verdict *v = &inv->verdict;

	if (!inv->judged)
		return NULL;
	if (verdict_never_failed(inv))
		return "One run that fails.";
	if (refutations[v->class])
		return refutations[v->class];
	return v->writer.count > 0
		       ? "A failing run in which the field is watched and somebody else "
			 "is the last to write it."
		       : "A failing run that shows another cause.";
}

static void put_said(const struct page *page, const struct said_list *list)
{
	for (size_t i = 0; i < list->list.count && i < 8; i++) {
		AUTO(mem_freep) char *text = words_of(&list->list.items[i]);

		words_capital(text);
		el_txtf(page->h, "li", NULL, "%s.", text);
	}
}

static void put_doubts(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	const char *refuted = what_would_refute(page->inv);
	AUTO(mem_freep) char *next = words_of(&v->next);

	if (!refuted)
		return;
	el(page->h, "aside", "id", "doubts", "aria-label", "What would change our mind", NULL);
	el_txt(page->h, "h2", NULL, "What would change our mind");
	el(page->h, "ul", NULL);
	el_txt(page->h, "li", NULL, refuted);
	put_said(page, &v->doubts);
	put_said(page, &v->open);
	VEC_FOREACH (&v->alternatives, other) {
		AUTO(mem_freep) char *sentence = sentence_alone(v, &other->sentence);
		AUTO(mem_freep) char *tell = words_of(&other->tell_apart);

		el(page->h, "li", NULL);
		txtf(page->h, "Or %s: %s. To tell them apart: %s.", words_class(other->class),
		     sentence ? sentence : "", tell);
		el_end(page->h);
	}
	el_end(page->h);
	if (next) {
		el(page->h, "p", NULL);
		el_txt(page->h, "b", NULL, "Next: ");
		txtf(page->h, "%s.", next);
		el_end(page->h);
	}
	el_end(page->h);
}

static void put_program(const struct page *page)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(strv_deinit) struct strv open = { 0 };

	secret_words(page->inv->program.items, &open);
	words_join(&sb, open.items);
	if (sb.len > 0)
		el_txt(page->h, "p", "program", strbuf_str(&sb));
}

static bool is_found(const struct page *page)
{
	return page->inv->judged && page->inv->verdict.class != VERDICT_NOT_CAUGHT;
}

const char *page_verdict_class(const struct page *page)
{
	return !is_found(page)		 ? "verdict none"
	       : page->inv->verdict.firm ? "verdict firm"
					 : "verdict probable";
}

void page_verdict(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	AUTO(mem_freep) char *headline = page_headline(page);
	bool found = is_found(page);

	put_program(page);
	el_of(page->h, headline, "h1", "id", "verdict-heading", NULL);
	if (page->inv->judged) {
		el(page->h, "p", "class", "badges", NULL);
		el_txt(page->h, "code", "class", verdict_class_name(v->class));
		txt(page->h, " ");
		if (found)
			el_txt(page->h, "span", "badge", v->firm ? "● firm" : "◐ probable");
		el_end(page->h);
	}
	el(page->h, "div", "class", "columns", NULL);
	el(page->h, "dl", NULL);
	put_what(page);
	put_where(page);
	put_sure(page);
	put_commands(page);
	el_end(page->h);
	put_doubts(page);
	el_end(page->h);
}
