/*
 * The verdict for a terminal: one screen.
 *
 * What matters most comes first; stacks and lists are cut to what fits, and the report has all of
 * it. Commands are never cut: what cannot be pasted is of no use.
 */
#include "base/cstr.h"
#include "base/percent.h"
#include "report/report_investigation.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/signature.h"
#include "report/screen.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define WRITER_FRAMES 4
#define COMMAND_LINES 7
#define TESTS_SHOWN 16
#define TESTS_LINES 8
#define ALTERNATIVES_SHOWN 2

struct verdict_screen {
	const struct investigation *inv;
	struct screen screen;
};

static void row(const struct verdict_screen *page, const char *label, const char *text,
		size_t lines)
{
	screen_row(&page->screen, label, text, lines);
}

/* Nothing where nothing is said. */
static void row_said(const struct verdict_screen *page, const char *label, const struct said *said,
		     size_t lines)
{
	AUTO(mem_freep) char *text = words_of(said);

	if (text)
		row(page, label, text, lines);
}

#define rowf(page, label, lines, ...) screen_rowf(&(page)->screen, label, lines, __VA_ARGS__)

/* In what room is left after `used` columns of the row. */
static void add_frame(const struct verdict_screen *page, const struct frame *frame, size_t used,
		      struct strbuf *sb)
{
	size_t room = screen_room(&page->screen);
	struct frame shown = *frame;

	if (frame->file)
		shown.file = (char *)investigation_path(page->inv, frame->file);
	screen_frame(&shown, room > used ? room - used : 0, sb);
}

static void frame_row(const struct verdict_screen *page, const char *label, const char *before,
		      const struct frame *frame)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_adds(&sb, before);
	add_frame(page, frame, strlen(before) + 1, &sb);
	row(page, label, strbuf_str(&sb), 1);
}

/* A line that somebody can open. libc names its own files from the root of its sources. */
static bool has_source(const struct frame *frame)
{
	return frame->file && (frame->kind == FRAME_PYTHON || frame->file[0] == '/');
}

/* Whoever calls main() is of no interest. */
static bool is_outermost(const struct frame *frame)
{
	return !frame->function || strcmp(frame->function, "__libc_start_call_main") == 0 ||
	       strcmp(frame->function, "_start") == 0 || strcmp(frame->function, "clone3") == 0 ||
	       strcmp(frame->function, "start_thread") == 0;
}

/* Who called it, on one line: the nearest one that has a line of source with it, as the first frame
 * may be a wrapper that was not known as one; of the others names alone. */
static void callers_row(const struct verdict_screen *page, const struct stack *stack)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	const struct frame *site = stack_site(stack);
	size_t from = site ? (size_t)(site - stack->frames) : 0;

	for (size_t i = from + 1; i < stack->count && !is_outermost(&stack->frames[i]); i++) {
		const struct frame *frame = &stack->frames[i];
		AUTO(mem_freep) char *name = screen_name(frame->function);

		/* An interpreter's own functions, and containers, say nothing beside those with a
		 * line. */
		if (!frame_is_telling(frame))
			continue;
		if (stack->frames[from].file && !frame->file && frame->kind == FRAME_NATIVE)
			continue;
		strbuf_addf(&sb, "%s<- ", sb.len > 0 ? " " : "");
		if (sb.len == strlen("<- ") && has_source(frame))
			add_frame(page, frame, strlen("<-  <- main"), &sb);
		else
			strbuf_adds(&sb, name);
	}
	if (sb.len > 0)
		row(page, "", strbuf_str(&sb), 1);
}

static void site_row(const struct verdict_screen *page, const char *label,
		     const struct stack *stack)
{
	if (stack->count > 0)
		frame_row(page, label, "", stack_site_or_top(stack));
}

static void site_rows(const struct verdict_screen *page, const char *label,
		      const struct stack *stack)
{
	site_row(page, label, stack);
	callers_row(page, stack);
}

/* From the innermost frame that says something on; where none of these names a line, up to the
 * first that does. */
static void stack_rows(const struct verdict_screen *page, const struct stack *stack, size_t limit)
{
	const struct frame *site = stack_site(stack);
	size_t from = site ? (size_t)(site - stack->frames) : 0, shown = 0;
	bool sourced = false;

	for (size_t i = from; i < stack->count && (shown < limit || !sourced); i++) {
		if (i > from && frame_is_interpreter(&stack->frames[i]))
			continue;
		if (i > from && is_outermost(&stack->frames[i]))
			return;
		if (shown >= limit && !has_source(&stack->frames[i]))
			continue;
		frame_row(page, "",
			  i == from	  ? "in "
			  : shown < limit ? "<- "
					  : "… <- ",
			  &stack->frames[i]);
		sourced |= has_source(&stack->frames[i]);
		shown++;
	}
}

static void source_row(const struct verdict_screen *page, const struct stack *stack)
{
	const struct frame *frame = stack_site(stack);
	AUTO(mem_freep) char *line = frame ? text_source_line(frame) : NULL;

	if (line)
		rowf(page, "", 1, "> %s", line);
}

bool verdict_never_failed(const struct investigation *inv)
{
	return inv->verdict.class == VERDICT_NOT_CAUGHT && inv->verdict.signature[0] == '\0' &&
	       inv->counted && inv->summary.failed_any == 0;
}

/* Damage was found, and nobody has died of it. */
static bool unfailed(const struct investigation *inv)
{
	enum verdict_class class = inv->verdict.class;

	return class != VERDICT_NOT_CAUGHT && class != VERDICT_LEAK_GROWTH && inv->counted &&
	       inv->summary.rate.trials > 0 && inv->summary.failed_any == 0;
}

static void headline(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;

	screen_paint(&page->screen, v->firm ? "\033[1;31m" : "\033[1;33m");
	(void)fprintf(page->screen.out, "%s%s [%s]",
		      v->firm || v->class == VERDICT_NOT_CAUGHT ? "" : "probably ",
		      verdict_never_failed(page->inv) ? "it has not failed" : words_verdict_of(v),
		      verdict_class_name(v->class));
	screen_paint(&page->screen, "\033[0m");
	(void)fputc('\n', page->screen.out);
}

/* Whether the block that was watched is the one that was hit in that trial is measured. */
static void found_again(const struct verdict_screen *page)
{
	uint64_t right, tried;

	if (investigation_keys(page->inv, &right, &tried))
		rowf(page, "again", 2,
		     "the damaged block was found in %" PRIu64 " of %" PRIu64
		     " failing trials by its allocation site, ordinal and size%s",
		     right, tried, right * 2 < tried ? ", in the others by other means" : "");
}

/* Fences show it in trials that pass as well. */
static bool by_fence(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;

	for (size_t i = 0; i < v->evidence.count; i++) {
		const struct evidence *e =
			evidence_find(&page->inv->evidence, v->evidence.items[i]);

		if (e && evidence_fenced(e))
			return true;
	}
	return false;
}

static bool is_plain_fault(enum verdict_class class)
{
	return class == VERDICT_NULL_POINTER || class == VERDICT_DIVISION_BY_ZERO ||
	       class == VERDICT_STACK_EXHAUSTED || class == VERDICT_ILLEGAL_INSTRUCTION;
}

/* Where no trial could have caught somebody, the sentence says all. */
static bool nothing_to_catch(const struct verdict *v)
{
	return v->class == VERDICT_NOT_CAUGHT || v->class == VERDICT_NOT_MEMORY ||
	       is_plain_fault(v->class) || v->class == VERDICT_LEAK_GROWTH ||
	       v->class == VERDICT_HOST_SUSPECTED || v->watched == 0;
}

static void confidence(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	AUTO(strbuf_deinit) struct strbuf run = { 0 };

	if (v->trials > 0)
		strbuf_addf(&run, "; %" PRIu64 " trials run", v->trials);
	if (unfailed(page->inv) && v->watched > 0)
		rowf(page, "", 2, "no failure was seen in %" PRIu64 " trials; %s all the same",
		     v->trials > page->inv->summary.rate.trials ? v->trials
								: page->inv->summary.rate.trials,
		     v->class == VERDICT_OVER_READ || v->class == VERDICT_USE_AFTER_FREE ||
				     v->class == VERDICT_UNINITIALISED
			     ? "the memory error is there"
			     : "memory is damaged");
	if (nothing_to_catch(v))
		row_said(page, "", &v->sentence, 5);
	else
		rowf(page, "caught", 2,
		     "in %" PRIu64 " of %" PRIu64 " %strials that could show it%s", v->caught,
		     v->watched, unfailed(page->inv) || by_fence(page) ? "" : "failing ",
		     strbuf_str(&run));
	if (v->class == VERDICT_LEAK_GROWTH)
		rowf(page, "seen", 1, "in %" PRIu64 " of %" PRIu64 " runs", v->caught, v->watched);
	for (size_t i = 0; i < v->doubts.list.count && i < 3; i++)
		row_said(page, i == 0 ? "but" : "", &v->doubts.list.items[i], 5);
	found_again(page);
}

static const struct evidence *holder_evidence(const struct verdict_screen *page)
{
	const struct evidence *e = evidence_find(&page->inv->evidence, page->inv->verdict.holder);

	return e && e->kind == EVIDENCE_HOLDER ? e : NULL;
}

/* Which block the pointer stands in, by who made it. */
static void held_by(const struct verdict_screen *page)
{
	const struct evidence *holder = holder_evidence(page);

	if (holder && holder->holder->holder)
		site_rows(page, "held in", &holder->holder->holder->allocated);
}

/* Where Python code was at that moment. */
static bool python_row(const struct verdict_screen *page, const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	for (size_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].kind != FRAME_PYTHON)
			continue;
		if (&stack->frames[i] == site) /* told already */
			return true;
		frame_row(page, "", "<- ", &stack->frames[i]);
		return true;
	}
	return false;
}

/* Who was seen to touch the freed block before anybody else did. */
static const struct evidence *first_use(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;

	return VEC_FIND(&page->inv->evidence.list, e,
			e->kind == EVIDENCE_FREED_USE && e->freed_use->first &&
				e->freed_use->block && v->victim &&
				key_same_stack(e->freed_use->block->key, v->victim->key));
}

static void block_rows(const struct verdict_screen *page, const struct block_life *block)
{
	if (block->size > 0)
		rowf(page, "block", 1, "%" PRIu64 " bytes, %s%s%s", block->size,
		     block->state == BLOCK_FREED || block->former ? "freed" : "live",
		     block->key ? ", key " : "", block->key ? block->key : "");
	site_rows(page, "allocated", &block->allocated);
}

static void victim(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	const struct evidence *told = holder_evidence(page);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!told)
		told = first_use(page);
	if (v->home.kind != HOME_UNKNOWN) {
		words_home(&v->home, &sb);
		row(page, v->class == VERDICT_DANGLING_HOLDER ? "holder" : "victim",
		    strbuf_str(&sb), 2);
	}
	held_by(page);
	if (v->victim)
		block_rows(page, v->victim);
	if (v->base && v->victim && v->base->id != v->victim->id)
		site_rows(page, "meant for", &v->base->allocated);
	site_row(page, "freed", &v->freed_by);
	if (!python_row(page, &v->freed_by))
		callers_row(page, &v->freed_by);
	if (told && !evidence_fenced(told))
		row_said(page, "", &told->note, 5);
}

/* Seen at a fence alone, and by the same line as what the verdict was told by. */
static bool adds_nothing(const struct evidence *first, const struct evidence *use)
{
	const struct frame *a = stack_site(&first->freed_use->user);
	const struct frame *b = stack_site(&use->freed_use->user);

	return evidence_fenced(first) && a && b && a->line == b->line &&
	       cstr_known_same(a->function, b->function);
}

static const struct evidence *use_with_user(const struct evidence *e)
{
	return e && (e->kind == EVIDENCE_FREED_USE || e->kind == EVIDENCE_OVER_READ) &&
			       e->freed_use->user.count > 0
		       ? e
		       : NULL;
}

/* Who used the freed block, or read beside a live one, in trials that did not fail there. */
static const struct evidence *use_evidence(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	const struct evidence *use = NULL, *first = first_use(page);
	bool told = v->class == VERDICT_USE_AFTER_FREE || v->class == VERDICT_OVER_READ;
	bool freed = v->class == VERDICT_DANGLING_HOLDER || v->class == VERDICT_USE_AFTER_FREE;

	for (size_t i = 0; told && !use && i < v->evidence.count; i++)
		use = use_with_user(evidence_find(&page->inv->evidence, v->evidence.items[i]));
	if (freed && first && (!use || !adds_nothing(first, use)))
		return first;
	VEC_FOREACH (&page->inv->evidence.list, e)
		if (use && e->kind == EVIDENCE_CRASH && e->trial == use->trial)
			return NULL;
	return use;
}

/* The tool's own words, and who did it where it was no write. */
static void reported(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	const struct evidence *e =
		v->evidence.count > 0 ? evidence_find(&page->inv->evidence, v->evidence.items[0])
				      : NULL;

	if (!e || e->kind != EVIDENCE_REPORTED)
		return;
	if (v->writer.count == 0) {
		site_rows(page, v->class == VERDICT_NOT_CAUGHT ? "at" : "used by",
			  &e->reported->user);
		source_row(page, &e->reported->user);
	}
	rowf(page, "reported", 2, "by %s: %s", e->reported->tool ? e->reported->tool : "a tool",
	     e->reported->what ? e->reported->what : "");
}

static void user(const struct verdict_screen *page)
{
	const struct evidence *use = use_evidence(page);
	const char *what;

	reported(page);
	if (!use)
		return;
	what = use->kind == EVIDENCE_OVER_READ ? "read by"
	       : use->freed_use->first	       ? "first used"
					       : "used by";
	if (use->freed_use->instruction) {
		row(page, what, use->freed_use->instruction, 1);
		stack_rows(page, &use->freed_use->user, WRITER_FRAMES);
	} else {
		site_rows(page, what, &use->freed_use->user);
	}
	source_row(page, &use->freed_use->user);
	if (!use->freed_use->first)
		row_said(page, "", &use->note, 4);
}

static void odds(const struct verdict_screen *page)
{
	VEC_FOREACH (&page->inv->evidence.list, e)
		if (page->inv->verdict.class == VERDICT_UNINITIALISED && e->kind == EVIDENCE_ODDS &&
		    e->odds->home.len == page->inv->verdict.home.len) {
			rowf(page, "odds", 3,
			     "%s%sin %" PRIu64 " of %" PRIu64
			     " trials in which new blocks held garbage there, and in %" PRIu64
			     " of %" PRIu64 " in which they held zeros (p = %.2g)",
			     e->failing ? "it failed " : "its result or output differed ",
			     e->odds->otherwise ? "in another way " : "", e->odds->garbage_failed,
			     e->odds->garbage, e->odds->zeroed_failed, e->odds->zeroed, e->odds->p);
			return;
		}
}

static const char *writer_label(enum verdict_class class)
{
	switch (class) {
	case VERDICT_DANGLING_HOLDER:
		return "stored by";
	case VERDICT_DOUBLE_FREE:
	case VERDICT_INVALID_FREE:
		return "freed by";
	case VERDICT_OVER_RELEASE:
		return "released";
	case VERDICT_MAPPING_TRUNCATED:
		return "cut by";
	case VERDICT_LEAK_GROWTH:
		return "site";
	default:
		return "writer";
	}
}

static void writer(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	int digits = (int)(v->value_len > 0 && v->value_len <= 8 ? v->value_len * 2 : 1);

	if (v->writer.count == 0)
		return;
	if (v->instruction)
		strbuf_addf(&sb, "%s", v->instruction);
	if (v->width > 0)
		strbuf_addf(&sb, "%s%u byte%s", sb.len > 0 ? "   " : "", v->width,
			    v->width == 1 ? "" : "s");
	if (v->width > 0 && words_fit(v->fit))
		strbuf_addf(&sb, ", %s", words_fit(v->fit));
	if (sb.len > 0)
		row(page, writer_label(verdict_act(v)), strbuf_str(&sb), 2);
	else
		site_rows(page, writer_label(verdict_act(v)), &v->writer);
	if (v->values_known)
		rowf(page, "", 1, "0x%0*" PRIx64 " -> 0x%0*" PRIx64, digits, v->old, digits,
		     v->new);
	if (sb.len > 0)
		stack_rows(page, &v->writer, WRITER_FRAMES);
	source_row(page, &v->writer);
	site_row(page, v->class == VERDICT_RACE ? "other" : "copied by", &v->other);
}

static void failure(const struct verdict_screen *page)
{
	const struct crash *crash = investigation_crash(page->inv);
	const struct frame *site = crash ? crash_site(crash) : NULL;
	AUTO(mem_freep) char *words = crash ? words_of(&crash->words) : NULL;

	if (!crash)
		return;
	row(page, "fails", words ? words : signal_name(crash->signal), 2);
	if (!site)
		return;
	frame_row(page, "", "in ", site);
	/* The interpreter died of what somebody had it do. */
	if (frame_is_interpreter(site) && stack_site(&crash->stack) != site) {
		frame_row(page, "", "<- ", stack_site(&crash->stack));
		callers_row(page, &crash->stack);
	}
}

/* Only where it varies: one crash has its address in its own words. */
static void addresses(const struct verdict_screen *page)
{
	const struct series_summary *s = &page->inv->summary;
	AUTO(mem_freep) char *words = s->faults.count > 1 ? text_fault_addresses(s) : NULL;

	if (words)
		rowf(page, "", 2, "address of the fault: %s", words);
}

/* What had to be done without, because it changes what is looked for. */
static void hidden_by(const struct verdict_screen *page)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	VEC_FOREACH (&page->inv->observers, o)
		if (o->effect == EFFECT_HIDES)
			strbuf_addf(&sb, "%s%s (0 of %" PRIu64 " trials failed under it)",
				    sb.len > 0 ? ", " : "", o->name, o->rate.trials);
	if (sb.len > 0)
		row(page, "hidden by", strbuf_str(&sb), 2);
}

/* Which devices fail, where each slot has its own, or one stands out. */
static void slots(const struct verdict_screen *page)
{
	const struct investigation *inv = page->inv;
	const struct slot_summary *odd = investigation_odd_slot(inv);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (inv->slots.count < 2 || (!inv->slots_differ && !odd))
		return;
	VEC_FOREACH (&inv->slots, s)
		strbuf_addf(&sb, "%s%u: %" PRIu64 " of %" PRIu64, sb.len > 0 ? ", " : "", s->slot,
			    s->rate.failed, s->rate.trials);
	if (odd) {
		strbuf_addf(&sb, "; slot %u %s (p = %.2g)", odd->slot,
			    odd->rate.failed == 0 ? "never fails while others do"
						  : "differs from the others",
			    odd->p);
	} else {
		strbuf_adds(&sb, "; none stands out");
	}
	rowf(page, "slots", 3, "%s in slot %s", inv->slots_crashed ? "crashed" : "failed",
	     strbuf_str(&sb));
	if (inv->cut_known)
		rowf(page, "", 2,
		     "the file was cut by a process in slot %u, a process in slot %u died of it",
		     inv->cut_by, inv->cut_who);
}

/* A file that was cut and written anew is behind its old end for some, and other bytes for others.
 */
static void cut_signals(const struct verdict_screen *page)
{
	bool bus = false, segv = false;

	VEC_FOREACH (&page->inv->summary.signatures.list, s) {
		bus |= s->signature.signal == SIGBUS;
		segv |= s->signature.signal == SIGSEGV;
	}
	if (page->inv->verdict.class == VERDICT_MAPPING_TRUNCATED && bus && segv)
		row(page, "",
		    "SIGBUS: what was read lay behind the file's new end; SIGSEGV: it lay before it, and "
		    "the new bytes there were taken for an offset or a pointer",
		    3);
}

static void tests(const struct verdict_screen *page)
{
	const struct trigger_set *trigger = &page->inv->trigger;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	size_t shown = 0;

	if (!trigger->known)
		return;
	strbuf_addf(&sb, "%zu of %zu: ", trigger->items.count, trigger->total);
	VEC_FOREACH (&trigger->items, item)
		if (shown++ < TESTS_SHOWN)
			strbuf_addf(&sb, "%s%s", shown > 1 ? ", " : "", item->name);
	if (shown > TESTS_SHOWN)
		strbuf_adds(&sb, ", …");
	screen_names(&page->screen, "tests", strbuf_str(&sb), TESTS_LINES);
}

static void ledger(const struct verdict_screen *page)
{
	const struct verdict *v = &page->inv->verdict;
	AUTO(strbuf_deinit) struct strbuf own = { 0 };
	size_t others, excluded = verdict_count(v, LEDGER_EXCLUDED, &others);
	size_t untested = verdict_count(v, LEDGER_UNTESTED, &others);

	if (others > 0)
		rowf(page, "others", 2,
		     "Ruled out: %zu of %zu other explanations. Not tested: %zu. (redhand case "
		     "show)",
		     excluded, others, untested);
	VEC_FOREACH (&page->inv->own_hypotheses, h)
		strbuf_addf(&own, "%s%s %s", own.len > 0 ? ", " : "", h->id,
			    words_status(h->status));
	if (own.len > 0)
		row(page, "yours", strbuf_str(&own), 2);
}

static const char too_long[] = "the command is too long for a screen; the report has it";

/* With a long list of tests the sentinel, which has it in a file, is what can be typed. */
static void repeat(const struct verdict_screen *page)
{
	static const char run[] = "redhand sentinel run --expect fixed";
	const struct investigation *inv = page->inv;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!inv->reproduce ||
	    screen_command(&page->screen, "repeat", inv->reproduce, COMMAND_LINES))
		return;
	if (inv->sentinel && inv->prove_fix && strncmp(inv->prove_fix, run, sizeof(run) - 1) == 0)
		strbuf_addf(&sb, "redhand sentinel run --expect fails%s",
			    inv->prove_fix + sizeof(run) - 1);
	if (sb.len == 0 || !screen_command(&page->screen, "repeat", strbuf_str(&sb), COMMAND_LINES))
		row(page, "repeat", too_long, 2);
}

static void commands(const struct verdict_screen *page)
{
	const struct investigation *inv = page->inv;

	size_t shown = 0;

	VEC_FOREACH (&inv->verdict.alternatives, alternative) {
		if (shown++ == ALTERNATIVES_SHOWN) {
			rowf(page, "", 1, "… and %zu more in the report",
			     inv->verdict.alternatives.count - ALTERNATIVES_SHOWN);
			break;
		}
		{
			AUTO(mem_freep) char *sentence = words_of(&alternative->sentence);
			AUTO(mem_freep) char *tell = words_of(&alternative->tell_apart);

			rowf(page, "or", 2, "%s [%s]", sentence,
			     verdict_class_name(alternative->class));
			rowf(page, "", 1, "to tell: %s", tell);
		}
	}
	row_said(page, "next", &inv->verdict.next, 3);
	/* What is told instead of nothing says so itself. */
	if (inv->interrupted && inv->verdict.class != VERDICT_NOT_CAUGHT)
		row(page, "next",
		    "it was interrupted: the same command goes on where this one ended", 2);
	repeat(page);
	if (inv->prove_fix &&
	    !screen_command(&page->screen, "prove fix", inv->prove_fix, COMMAND_LINES))
		row(page, "prove fix", too_long, 2);
	if (inv->report)
		row(page, "report", inv->report, 1);
}

static struct verdict_screen page_of(const struct investigation *inv,
				     const struct terminal *terminal, FILE *out)
{
	unsigned int columns = terminal->columns;

	if (columns < SCREEN_COLUMNS_LEAST)
		columns = SCREEN_COLUMNS_LEAST;
	if (columns > SCREEN_COLUMNS_MOST)
		columns = SCREEN_COLUMNS_MOST;
	return (struct verdict_screen){ inv, { columns, terminal->colour, out } };
}

void report_verdict_text(const struct investigation *inv, const struct terminal *terminal,
			 FILE *out)
{
	struct verdict_screen page = page_of(inv, terminal, out);

	if (!inv->judged)
		return;
	headline(&page);
	confidence(&page);
	victim(&page);
	writer(&page);
	user(&page);
	odds(&page);
	failure(&page);
	addresses(&page);
	cut_signals(&page);
	slots(&page);
	tests(&page);
	hidden_by(&page);
	ledger(&page);
	commands(&page);
}

static void title(const struct verdict_screen *page, const char *text)
{
	(void)fputc('\n', page->screen.out);
	screen_paint(&page->screen, "\033[1m");
	(void)fprintf(page->screen.out, "%s", text);
	screen_paint(&page->screen, "\033[0m");
	(void)fputc('\n', page->screen.out);
}

static void reproduction(const struct verdict_screen *page)
{
	const struct series_summary *s = &page->inv->summary;

	if (!page->inv->counted)
		return;
	title(page, "How often");
	rowf(page, "rate", 0, "%" PRIu64 " of %" PRIu64 " failed, %s %% (95 %%: %s–%s %%)",
	     s->rate.failed, s->rate.trials, PERCENT(s->rate.rate), PERCENT(s->rate.low),
	     PERCENT(s->rate.high));
	if (s->clean_runs_for_99 > 1) {
		AUTO(mem_freep) char *clean = text_clean_runs(s);

		row(page, "", clean, 0);
	}
	VEC_FOREACH (&s->signatures.list, signature)
		rowf(page, signature->signature.id, 2, "%" PRIu64 "x%s %s", signature->rate.failed,
		     signature->always ? " (every run)" : "", signature->signature.summary);
}

static void timeline(const struct verdict_screen *page)
{
	if (page->inv->decisions.list.count == 0)
		return;
	title(page, "What was done");
	VEC_FOREACH (&page->inv->decisions.list, d)
		row_said(page, d->stage, &d->said, 0);
}

static void ledger_row(const struct verdict_screen *page, const struct ledger_entry *h)
{
	AUTO(strbuf_deinit) struct strbuf basis = { 0 };
	AUTO(mem_freep) char *text = words_of(&h->text);
	AUTO(mem_freep) char *because = words_of(&h->because);

	if (h->by != EXPERIMENT_KINDS && h->status != LEDGER_OPEN)
		strbuf_addf(&basis, " [%s, %" PRIu64 " trial%s]", experiment_name(h->by),
			    h->telling, h->telling == 1 ? "" : "s");
	rowf(page, words_status(h->status), 4, "%s: %s%s%s%s", h->id, text ? text : "",
	     because ? "; " : "", because ? because : "", strbuf_str(&basis));
}

static void hypothesis_rows(const struct verdict_screen *page)
{
	if (page->inv->verdict.ledger.count + page->inv->own_hypotheses.count == 0)
		return;
	title(page, "Explanations");
	VEC_FOREACH (&page->inv->verdict.ledger, h)
		ledger_row(page, h);
	VEC_FOREACH (&page->inv->own_hypotheses, h)
		ledger_row(page, h);
}

static void evidence_rows(const struct verdict_screen *page)
{
	if (page->inv->evidence.list.count == 0)
		return;
	title(page, "Evidence");
	VEC_FOREACH (&page->inv->evidence.list, e) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		char label[32];

		(void)snprintf(label, sizeof(label), "%" PRIu64, e->id);
		if (e->trial > 0)
			strbuf_addf(&sb, "trial %" PRIu64 "%s: ", e->trial,
				    e->failing ? "" : " (passed)");
		words_evidence(e, &sb);
		row(page, label, strbuf_str(&sb), 6);
	}
}

static void note_rows(const struct verdict_screen *page)
{
	if (page->inv->notes.list.count == 0)
		return;
	title(page, "Notes");
	VEC_FOREACH (&page->inv->notes.list, note)
		row_said(page, "", note, 0);
}

void report_investigation_text(const struct investigation *inv, const struct terminal *terminal,
			       FILE *out)
{
	struct verdict_screen page = page_of(inv, terminal, out);

	if (inv->judged)
		report_verdict_text(inv, terminal, out);
	else if (inv->series.count == 0)
		row(&page, "", "The case is empty: redhand hunt -- PROGRAM begins.", 0);
	else
		row(&page, "",
		    "No cause has been looked for yet: there is no evidence in the case.", 0);
	reproduction(&page);
	if (!inv->judged && inv->series.count > 0) {
		title(&page, "What is known");
		failure(&page);
		tests(&page);
		commands(&page);
	}
	timeline(&page);
	hypothesis_rows(&page);
	note_rows(&page);
	evidence_rows(&page);
}
