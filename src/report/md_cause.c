/*
 * The key finding, in the program's own words, and the root cause with all that it rests on.
 */
#include "report/md_parts.h"

#include <inttypes.h>

#include "report/markdown.h"
#include "report/text_parts.h"
#include "report/wording.h"

/* A role, where in the source, and the line itself. */
static void put_role(const struct investigation *inv, const char *role, const struct stack *stack,
		     FILE *out)
{
	const struct frame *site = stack->count > 0 ? stack_site(stack) : NULL;
	AUTO(strbuf_deinit) struct strbuf where = { 0 };
	AUTO(mem_freep) char *line = NULL;
	struct frame shown;

	if (stack->count == 0)
		return;
	shown = site ? *site : stack->frames[0];
	line = text_source_line(&shown);
	if (shown.file)
		shown.file = (char *)investigation_path(inv, shown.file);
	frame_describe(&shown, &where);
	put(out, "| %s | ", role);
	md_cell_code(strbuf_str(&where), out);
	put(out, " | ");
	if (line)
		md_cell_code(line, out);
	put(out, " |\n");
}

static const char *writer_role(enum verdict_class class)
{
	switch (class) {
	case VERDICT_DANGLING_HOLDER:
		return "stored by";
	case VERDICT_DOUBLE_FREE:
		return "freed again by";
	case VERDICT_INVALID_FREE:
		return "freed by";
	case VERDICT_OVER_RELEASE:
		return "released by";
	case VERDICT_MAPPING_TRUNCATED:
		return "cut by";
	case VERDICT_LEAK_GROWTH:
		return "allocated by";
	default:
		return "written by";
	}
}

static const struct evidence *holder_of(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.holder);

	return e && e->kind == EVIDENCE_HOLDER && e->holder->holder ? e : NULL;
}

static void put_roles(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;
	const struct crash *crash = investigation_crash(inv);
	const struct evidence *holder = holder_of(inv);

	put(out, "\n| | where | source |\n|---|---|---|\n");
	if (holder)
		put_role(inv, "held in, made by", &holder->holder->holder->allocated, out);
	put_role(inv, writer_role(verdict_act(v)), &v->writer, out);
	if (v->victim)
		put_role(inv, "block allocated by", &v->victim->allocated, out);
	put_role(inv, "block freed by", &v->freed_by, out);
	if (crash)
		put_role(inv, "fails in", &crash->stack, out);
}

void md_key_finding(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	if (!inv->judged || v->class == VERDICT_NOT_CAUGHT)
		return;
	md_heading("Key finding", out);
	if (v->home.field) {
		md_code(v->home.field, out);
		put(out, ": ");
	}
	put(out, "%s%s.\n", v->firm ? "" : "probably ", words_verdict_of(v));
	put_roles(inv, out);
}

static void put_part(const struct investigation *inv, const char *what, const struct stack *stack,
		     FILE *out)
{
	if (stack->count == 0)
		return;
	put(out, "\n%s:\n\n", what);
	md_stack(inv, stack, out);
}

static void put_write(const struct verdict *v, FILE *out)
{
	int digits = (int)(v->value_len > 0 && v->value_len <= 8 ? v->value_len * 2 : 1);

	if (v->instruction) {
		put(out, "| instruction | ");
		md_cell_code(v->instruction, out);
		put(out, " |\n");
	}
	if (v->width > 0)
		put(out, "| width | %u byte%s (%s) |\n", v->width, v->width == 1 ? "" : "s",
		    store_fit_name(v->fit));
	if (v->values_known)
		put(out, "| old → new | `0x%0*" PRIx64 "` → `0x%0*" PRIx64 "` |\n", digits, v->old,
		    digits, v->new);
}

static void put_facts(const struct verdict *v, FILE *out)
{
	put(out, "\n| | |\n|---|---|\n| class | `%s` |\n", verdict_class_name(v->class));
	put(out,
	    "| caught | %" PRIu64 " of %" PRIu64 " failing trials that could show it, "
	    "%" PRIu64 " trials run |\n",
	    v->caught, v->watched, v->trials);
	if (v->home.kind != HOME_UNKNOWN) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		words_home(&v->home, &sb);
		put(out, "| field | ");
		md_text(strbuf_str(&sb), out);
		put(out, " |\n");
	}
	if (v->victim) {
		put(out, "| block | %" PRIu64 " bytes, %s, key ", v->victim->size,
		    v->victim->state == BLOCK_FREED || v->victim->former ? "freed" : "live");
		md_cell_code(v->victim->key ? v->victim->key : "unknown", out);
		put(out, " |\n");
	}
	put_write(v, out);
	put(out, "| evidence | ");
	md_evidence_ids(v->evidence.items, v->evidence.count, out);
	put(out, " |\n");
}

static void put_list(const char *what, const struct said_list *list, FILE *out)
{
	if (list->list.count == 0)
		return;
	put(out, "\n%s:\n\n", what);
	VEC_FOREACH (&list->list, said) {
		put(out, "- ");
		md_said(said, out);
		put(out, "\n");
	}
}

void md_root_cause(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	md_heading("Root cause", out);
	if (!inv->judged) {
		put(out, "Not known.\n");
		return;
	}
	md_said(&v->sentence, out);
	put(out, ".\n");
	put_facts(v, out);
	VEC_FOREACH (&v->steps, step) {
		AUTO(strbuf_deinit) struct strbuf what = { 0 };

		words_add(&step->what, &what);
		if (what.len > 0 && what.data[0] >= 'a' && what.data[0] <= 'z')
			what.data[0] = (char)(what.data[0] - 'a' + 'A');
		put_part(inv, strbuf_str(&what), &step->stack, out);
	}
	put_list("What speaks against it", &v->doubts, out);
	put_list("Still open", &v->open, out);
	VEC_FOREACH (&v->alternatives, alternative) {
		put(out, "\nOr `%s`: ", verdict_class_name(alternative->class));
		md_said(&alternative->sentence, out);
		put(out, ". To tell them apart: ");
		md_said(&alternative->tell_apart, out);
		put(out, ".\n");
	}
}
