/*
 * An investigation as lines of the form that compilers print and editors follow.
 */
#include "report/report_investigation.h"

#include "model/signature.h"
#include "report/text_parts.h"
#include "report/wording.h"

/* The innermost frame with a line in a file of the program's; NULL. */
static const struct frame *located(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	if (site && site->file && site->line > 0)
		return site;
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].file && stack->frames[i].line > 0 &&
		    !frame_is_runtime(&stack->frames[i]))
			return &stack->frames[i];
	return NULL;
}

static void line(const struct investigation *inv, const struct stack *stack, const char *kind,
		 const char *message, FILE *out)
{
	const struct frame *at = stack ? located(stack) : NULL;

	if (at)
		put(out, "%s:%u: %s: %s\n", investigation_path(inv, at->file), at->line, kind,
		    message);
	else
		/* As compilers do for what lies in no file. */
		put(out, "redhand: %s: %s\n", kind, message);
}

static void steps(const struct investigation *inv, FILE *out)
{
	VEC_FOREACH (&inv->verdict.steps, step) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		const struct frame *site = stack_site(&step->stack);

		words_add(&step->what, &sb);
		if (site && site->function)
			strbuf_addf(&sb, ", in %s", site->function);
		line(inv, &step->stack, "note", strbuf_str(&sb), out);
	}
}

static void alternatives(const struct investigation *inv, FILE *out)
{
	VEC_FOREACH (&inv->verdict.alternatives, alternative) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		strbuf_adds(&sb, "or: ");
		words_add(&alternative->sentence, &sb);
		strbuf_addf(&sb, " [%s]", verdict_class_name(alternative->class));
		line(inv, NULL, "note", strbuf_str(&sb), out);
	}
}

static void note(const struct investigation *inv, const struct said *said, FILE *out)
{
	AUTO(mem_freep) char *text = words_of(said);

	if (text)
		line(inv, NULL, "note", text, out);
}

static void verdict(const struct investigation *inv, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	const struct verdict *v = &inv->verdict;
	const struct stack *where = investigation_accused(inv);

	words_add(&v->sentence, &sb);
	strbuf_addf(&sb, " [%s%s]", verdict_class_name(v->class),
		    v->firm || v->class == VERDICT_NOT_CAUGHT ? "" : ", not firm");
	line(inv, where, "error", strbuf_str(&sb), out);
	steps(inv, out);
	VEC_FOREACH (&v->doubts.list, doubt)
		note(inv, doubt, out);
	alternatives(inv, out);
	note(inv, &v->next, out);
}

void report_investigation_gcc(const struct investigation *inv, FILE *out)
{
	if (inv->judged) {
		verdict(inv, out);
		return;
	}
	VEC_FOREACH (&inv->summary.signatures.list, s)
		line(inv, s->crash ? &s->crash->stack : NULL, "error", s->signature.summary, out);
}
