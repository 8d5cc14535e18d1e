/*
 * The chain: from the failure back to its cause. First at one glance, then a card for each step.
 */
#include "report/page/page_told.h"

#include <inttypes.h>

#include "base/auto.h"
#include "model/signature.h"
#include "report/wording.h"

static bool same_stack(const struct stack *a, const struct stack *b)
{
	return a->count == b->count && a->count > 0 && a->frames[0].offset == b->frames[0].offset &&
	       a->frames[0].line == b->frames[0].line &&
	       a->frames[0].address == b->frames[0].address;
}

struct chain {
	const struct page *page;
	const struct crash *crash; /* NULL: it did not crash, or not as far as is known */
	bool glance;		   /* the steps by name, as a picture; else their cards */
};

/* `what`: the step in a word or two; NULL. False: at one glance nothing more is said. */
static bool step_begin(struct chain *chain, const char *id, const char *title, const char *what)
{
	struct html *h = chain->page->h;

	if (!chain->glance) {
		el(h, "li", "id", id, "class", "card", NULL);
		el_txt(h, "h3", NULL, title);
		return true;
	}
	el(h, "li", NULL);
	el_link(h, NULL, title, "#%s", id);
	if (what)
		el_txt(h, "code", NULL, what);
	el_end(h);
	return false;
}

/* The function that is to be looked at. */
static const char *site_name(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	return site ? site->function : NULL;
}

static void put_instruction(const struct page *page, const char *instruction)
{
	if (!instruction)
		return;
	el(page->h, "p", NULL);
	el_txt(page->h, "code", "instruction", instruction);
	el_end(page->h);
}

static void crash_card(struct chain *chain)
{
	const struct page *page = chain->page;
	const struct crash *crash = chain->crash;
	AUTO(mem_freep) char *words = crash ? words_of(&crash->words) : NULL;

	if (!crash || !step_begin(chain, "crash", "It fails", site_name(&crash->stack)))
		return;
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

static void value_card(struct chain *chain)
{
	const struct page *page = chain->page;
	const struct crash *crash = chain->crash;
	const struct evidence *value = fault_value(page);
	AUTO(mem_freep)
	char *number = value && !html_shared(page->h)
			       ? mem_printf("0x%" PRIx64, value->fault_value->value)
			       : NULL;

	if ((!value && !(crash && crash->origin)) ||
	    !step_begin(chain, "value", value ? "The bad value" : "The pointer that it used",
			number	? number
			: crash ? crash->origin
				: NULL))
		return;
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

/* Of what has no home: the file that was cut, or who keeps what stays. */
static bool amount_card(struct chain *chain)
{
	struct html *h = chain->page->h;
	enum verdict_class class = chain->page->inv->verdict.class;
	bool file = class == VERDICT_MAPPING_TRUNCATED;
	const struct evidence *e =
		file || class == VERDICT_LEAK_GROWTH
			? told_piece(chain->page->inv, file ? EVIDENCE_MAPPING : EVIDENCE_GROWTH)
			: NULL;
	AUTO(mem_freep) char *words = NULL;

	if (!e)
		return false;
	words = file ? mem_printf("%" PRIu64 " of %" PRIu64 " bytes left", e->mapping->present,
				  e->mapping->mapped)
		     : words_plainly(&e->growth->holder);
	if (words && words[0] != '\0' &&
	    step_begin(chain, "home", file ? "The mapped file" : "Who still points to them",
		       words)) {
		el_txtf(h, "p", NULL, "%s%s%s.", file ? e->mapping->file : "", file ? ": " : "",
			words);
		el_end(h);
	}
	return true;
}

static void home_card(struct chain *chain)
{
	const struct page *page = chain->page;
	const struct verdict *v = &page->inv->verdict;
	const struct evidence *holder = evidence_find(&page->inv->evidence, v->holder);

	AUTO(strbuf_deinit) struct strbuf field = { 0 };

	if (amount_card(chain) || v->home.kind == HOME_UNKNOWN)
		return;
	words_field(&v->home, &field);
	if (!step_begin(chain, "home",
			v->class == VERDICT_DANGLING_HOLDER ? "Where the pointer stands"
			: v->class == VERDICT_OVER_READ	    ? "What was read"
							    : "Where the value lay",
			strbuf_str(&field)))
		return;
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
		return "Who released it";
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
		     words_fit(v->fit) ? ", " : "", words_fit(v->fit) ? words_fit(v->fit) : "");
	el_end(page->h);
	if (v->values_known && !html_shared(page->h)) {
		el(page->h, "p", "class", "values", NULL);
		el_txtf(page->h, "code", NULL, "0x%0*" PRIx64, digits, v->old);
		txt(page->h, " → ");
		el_txtf(page->h, "code", "bad", "0x%0*" PRIx64, digits, v->new);
		el_end(page->h);
	}
}

/* A step that is a place in the code. */
static void site_card(struct chain *chain, const char *id, const char *title,
		      const struct stack *stack)
{
	const struct verdict *v = &chain->page->inv->verdict;

	if (stack->count == 0 || !step_begin(chain, id, title, site_name(stack)))
		return;
	if (stack == &v->writer && (v->instruction || v->width > 0 || v->values_known))
		put_values(chain->page);
	put_site(chain->page, stack);
	el_end(chain->page->h);
}

/* Hops between the failure and the origin: what each says, folded. */
static void copies_card(struct chain *chain)
{
	const struct page *page = chain->page;
	AUTO(mem_freep) char *count = NULL;
	size_t hops = 0;

	VEC_FOREACH (&page->inv->evidence.list, e)
		hops += e->kind == EVIDENCE_HOP;
	count = mem_printf("%zu steps", hops);
	if (hops < 2 || !step_begin(chain, "copies", "On its way there", count))
		return;
	el(page->h, "details", NULL);
	el_txtf(page->h, "summary", NULL, "%s, each watched by itself", count);
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
static void step_cards(struct chain *chain)
{
	const struct verdict *v = &chain->page->inv->verdict;

	for (size_t i = v->steps.count; i-- > 0;) {
		const struct verdict_step *step = &v->steps.items[i];
		AUTO(mem_freep) char *title = words_of(&step->what);
		AUTO(mem_freep) char *id = mem_printf("step-%zu", i + 1);

		if (same_stack(&step->stack, &v->writer) ||
		    (chain->crash && same_stack(&step->stack, &chain->crash->stack)))
			continue;
		words_capital(title);
		site_card(chain, i == 0 ? "origin" : id, title, &step->stack);
	}
}

bool has_chain(const struct page *page)
{
	return page->inv->verdict.steps.count > 0 || investigation_crash(page->inv) != NULL;
}

static void put_steps(const struct page *page, bool glance)
{
	const struct verdict *v = &page->inv->verdict;
	struct chain chain = { page, investigation_crash(page->inv), glance };

	el(page->h, "ol", "class", glance ? "glance" : "chain", NULL);
	crash_card(&chain);
	value_card(&chain);
	home_card(&chain);
	copies_card(&chain);
	site_card(&chain, "writer", writer_title(verdict_act(v)), &v->writer);
	site_card(&chain, "other", v->class == VERDICT_RACE ? "The other thread" : "Who copied it",
		  &v->other);
	step_cards(&chain);
	el_end(page->h);
}

void page_chain(const struct page *page)
{
	if (investigation_crash(page->inv))
		el_txt(page->h, "p", "why",
		       "From the failure (1) back to its cause: each step comes from the next one.");
	put_steps(page, true);
	put_steps(page, false);
}
