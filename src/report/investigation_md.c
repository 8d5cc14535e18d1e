/*
 * An investigation as a Markdown document, in the order in which engineers write them:
 * summary, reproduction, crash location, minimum trigger set, timeline, hypotheses, root
 * cause, evidence, next steps.
 */
#include "base/percent.h"
#include "report/report_investigation.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "model/overview.h"
#include "model/signature.h"
#include "report/markdown.h"
#include "report/text.h"
#include "report/wording.h"

#define STACK_FRAMES 24
#define STACK_UNFOLDED 8 /* one that is longer is folded … */
#define STACK_SHOWN 4	 /* … to this */
#define EVIDENCE_SHOWN 200

static void heading(const char *text, FILE *out)
{
	(void)fprintf(out, "\n## %s\n\n", text);
}

static void add_command(const struct investigation *inv, struct strbuf *sb)
{
	for (size_t i = 0; i < inv->program.count; i++)
		strbuf_addf(sb, "%s%s", i > 0 ? " " : "", inv->program.items[i]);
}

static void put_time(int64_t ms, FILE *out)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		(void)fprintf(out, "%s", text);
}

static void add_frame(const struct investigation *inv, const struct frame *frame, struct strbuf *sb)
{
	struct frame shown = *frame;

	if (frame->file)
		shown.file = (char *)investigation_path(inv, frame->file);
	frame_describe(&shown, sb);
}

static void put_frames(const struct investigation *inv, const struct stack *stack, size_t limit,
		       FILE *out)
{
	md_fence(out);
	for (size_t i = 0; i < stack->count && i < limit; i++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		strbuf_addf(&sb, "#%-2zu ", i);
		add_frame(inv, &stack->frames[i], &sb);
		md_fenced(strbuf_str(&sb), out);
	}
	if (stack->count > limit)
		(void)fprintf(out, "… %zu more\n", stack->count - limit);
	md_fence(out);
}

/* Of a long one the first frames; all of it a click away. */
static void put_stack(const struct investigation *inv, const struct stack *stack, FILE *out)
{
	if (stack->count == 0)
		return;
	if (stack->count <= STACK_UNFOLDED) {
		put_frames(inv, stack, STACK_FRAMES, out);
		return;
	}
	put_frames(inv, stack, STACK_SHOWN, out);
	(void)fprintf(out, "\n<details><summary>the whole stack, %zu frames</summary>\n\n",
		      stack->count);
	put_frames(inv, stack, STACK_FRAMES, out);
	(void)fprintf(out, "\n</details>\n");
}

static void put_numbers(const uint64_t *items, size_t count, FILE *out)
{
	for (size_t i = 0; i < count && i < 8; i++)
		(void)fprintf(out, "%sE%" PRIu64, i > 0 ? ", " : "", items[i]);
	if (count > 8)
		(void)fprintf(out, ", …");
}

static void summary(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	heading("Summary", out);
	if (inv->judged) {
		(void)fprintf(out, "**%s%s** (`%s`). ",
			      v->firm || v->class == VERDICT_NOT_CAUGHT ? "" : "Probably: ",
			      words_class(v->class), verdict_class_name(v->class));
		md_said(&v->sentence, out);
		(void)fprintf(out, ".\n");
	} else if (inv->series.count == 0) {
		(void)fprintf(out, "The case is empty: nothing has been run.\n");
	} else {
		(void)fprintf(out,
			      "No cause has been looked for yet: the case holds trials, but no "
			      "evidence.\n");
	}
	if (inv->counted) {
		(void)fprintf(out, "\nRate: ");
		text_rate(&inv->summary.rate, out);
		(void)fprintf(out, ".\n");
	}
}

static void signature_table(const struct investigation *inv, FILE *out)
{
	if (inv->summary.signatures.list.count == 0)
		return;
	(void)fprintf(out,
		      "\n| signature | trials | rate | what | example |\n|---|---|---|---|---|\n");
	VEC_FOREACH (&inv->summary.signatures.list, s) {
		(void)fprintf(out, "| `%s` | %" PRIu64 " | %.1f %%%s | ", s->signature.id,
			      s->rate.failed, s->rate.rate * 100, s->always ? ", every run" : "");
		md_text(s->signature.summary, out);
		(void)fprintf(out, " | trial %" PRIu64 " |\n", s->trial);
	}
}

static void odd_slot(const struct investigation *inv, FILE *out)
{
	const struct series_summary *s = &inv->summary;

	if (s->odd_slot < 0 || (size_t)s->odd_slot >= s->slots.count)
		return;
	(void)fprintf(out, "\nSlot %u differs from the others: ", s->slots.items[s->odd_slot].slot);
	text_rate(&s->slots.items[s->odd_slot].rate, out);
	(void)fprintf(out, ", p = %.3g.\n", s->slots.items[s->odd_slot].p);
}

static void put_effect(const struct observer_rate *o, FILE *out)
{
	static const char *const words[] = { [EFFECT_NONE] = "no sign that it changes the rate",
					     [EFFECT_HIDES] = "hides it",
					     [EFFECT_RARER] = "makes it rarer",
					     [EFFECT_MORE_OFTEN] = "brings it out more often" };

	if (o->effect == EFFECT_UNKNOWN)
		return;
	/* Guards show damage in trials that do not fail, too. */
	(void)fprintf(out, "%s%s (p = %.2g)", words[o->effect],
		      o->effect == EFFECT_HIDES && strcmp(o->name, "heap") != 0
			      ? ", so it was dropped"
			      : "",
		      o->p);
}

static void observer_table(const struct investigation *inv, FILE *out)
{
	if (inv->observers.count < 2)
		return;
	(void)fprintf(out, "\n| observer | rate | effect |\n|---|---|---|\n");
	VEC_FOREACH (&inv->observers, o) {
		(void)fprintf(out, "| ");
		md_cell_code(o->name, out);
		(void)fprintf(out, " | ");
		text_rate(&o->rate, out);
		(void)fprintf(out, " | ");
		put_effect(o, out);
		(void)fprintf(out, " |\n");
	}
}

static void put_clean_runs(const struct series_summary *summary, FILE *out)
{
	AUTO(mem_freep) char *text = text_clean_runs(summary);

	(void)fprintf(out, "%s.\n", text);
}

static void reproduction(const struct investigation *inv, FILE *out)
{
	heading("Reproduction", out);
	if (inv->reproduce) {
		md_fence(out);
		md_fenced(inv->reproduce, out);
		md_fence(out);
	}
	if (inv->counted) {
		(void)fputc('\n', out);
		text_rate(&inv->summary.rate, out);
		(void)fprintf(out, ".\n");
		if (inv->summary.clean_runs_for_99 > 0)
			put_clean_runs(&inv->summary, out);
		else if (inv->summary.failed_any == 0)
			(void)fprintf(out,
				      "No failure was seen: the rate is below %s %% with 95 %% "
				      "confidence.\n",
				      PERCENT(inv->summary.clean_bound));
	} else {
		(void)fprintf(out, "No trials are stored.\n");
	}
	signature_table(inv, out);
	odd_slot(inv, out);
	observer_table(inv, out);
}

static void window(const struct signature_summary *s, FILE *out)
{
	if (s->windows.count == 0)
		return;
	(void)fprintf(out, "\nDied after ");
	md_code(s->windows.items[0].last, out);
	if (s->windows.items[0].next) {
		(void)fprintf(out, ", before ");
		md_code(s->windows.items[0].next, out);
	}
	if (s->places > 1)
		(void)fprintf(out, "; the place moves: %" PRIu64 " places in %" PRIu64 " failures",
			      s->places, s->rate.failed);
	(void)fprintf(out, ".\n");
}

static void crash_location(const struct investigation *inv, FILE *out)
{
	const struct crash *crash = investigation_crash(inv);

	heading("Crash location", out);
	if (!crash) {
		(void)fprintf(out, "No observer has seen a crash (`--observe crash` or `ids`).\n");
	} else {
		AUTO(mem_freep) char *words = words_of(&crash->words);

		md_text(words ? words : signal_name(crash->signal), out);
		(void)fprintf(out, ".\n");
		if (crash->instruction) {
			(void)fprintf(out, "\nInstruction: ");
			md_code(crash->instruction, out);
			if (crash->origin) {
				(void)fprintf(out, "; the pointer was loaded by ");
				md_code(crash->origin, out);
			}
			(void)fputc('\n', out);
		}
		(void)fputc('\n', out);
		put_stack(inv, &crash->stack, out);
	}
	VEC_FOREACH (&inv->summary.signatures.list, s)
		if (!s->always) {
			window(s, out);
			break;
		}
}

static void trigger_table(const struct trigger_set *trigger, FILE *out)
{
	(void)fprintf(out, "\n| list | result |\n|---|---|\n| all %zu | ", trigger->total);
	text_rate(&trigger->full, out);
	(void)fprintf(out, " |\n| these %zu | ", trigger->items.count);
	text_rate(&trigger->minimal, out);
	(void)fprintf(out, " |\n");
	VEC_FOREACH (&trigger->items, item) {
		if (item->victim || item->without.trials == 0)
			continue;
		(void)fprintf(out, "| without ");
		md_cell_code(item->name, out);
		(void)fprintf(out, " | ");
		text_rate(&item->without, out);
		(void)fprintf(out, " |\n");
	}
}

static void minimum_trigger(const struct investigation *inv, FILE *out)
{
	const struct trigger_set *trigger = &inv->trigger;
	size_t number = 0;

	heading("Minimum trigger set", out);
	if (!trigger->known) {
		(void)fprintf(out, "Not searched for (`redhand minimize`).\n");
		return;
	}
	VEC_FOREACH (&trigger->items, item) {
		(void)fprintf(out, "%zu. ", ++number);
		md_code(item->name, out);
		(void)fprintf(out, "%s\n", item->victim ? " (the victim)" : "");
	}
	trigger_table(trigger, out);
	if (!trigger->proven)
		(void)fprintf(out,
			      "\nThe search is not finished: some of these may not be needed.\n");
	if (trigger->file) {
		(void)fprintf(out, "\nAs a file: ");
		md_code(trigger->file, out);
		(void)fputc('\n', out);
	}
}

static void put_series(const struct series_entry *s, FILE *out)
{
	(void)fprintf(out, "- ");
	put_time(s->began_ms, out);
	(void)fprintf(out, " ");
	md_code(s->command, out);
	if (s->observer) {
		(void)fprintf(out, ", observer ");
		md_code(s->observer, out);
	}
	(void)fprintf(out, ": ");
	if (command_has_rate(s->command))
		text_rate(&s->rate, out);
	else
		(void)fprintf(out, "%" PRIu64 " of %" PRIu64 " failed", s->rate.failed,
			      s->rate.trials);
	(void)fputc('\n', out);
}

static void put_decision(const struct decision *d, FILE *out)
{
	(void)fprintf(out, "- ");
	put_time(d->time_ms, out);
	(void)fprintf(out, " **");
	md_text(d->stage, out);
	(void)fprintf(out, "**: ");
	md_said(&d->said, out);
	(void)fputc('\n', out);
}

/* Series and decisions, each in their order, laid together by time. */
static void timeline(const struct investigation *inv, FILE *out)
{
	size_t s = 0, d = 0;

	heading("Investigation timeline", out);
	if (inv->series.count + inv->decisions.list.count == 0)
		(void)fprintf(out, "Nothing has been run.\n");
	while (s < inv->series.count || d < inv->decisions.list.count) {
		bool series =
			d == inv->decisions.list.count ||
			(s < inv->series.count &&
			 inv->series.items[s].began_ms <= inv->decisions.list.items[d].time_ms);

		if (series)
			put_series(&inv->series.items[s++], out);
		else
			put_decision(&inv->decisions.list.items[d++], out);
	}
	VEC_FOREACH (&inv->notes.list, note) {
		(void)fprintf(out, "- note: ");
		md_said(note, out);
		(void)fputc('\n', out);
	}
}

static void put_hypothesis(const struct ledger_entry *h, FILE *out)
{
	(void)fprintf(out, "| ");
	md_cell_code(h->id, out);
	(void)fprintf(out, " | ");
	md_said(&h->text, out);
	(void)fprintf(out, " | %s | ", words_status(h->status));
	if (h->by != EXPERIMENT_KINDS)
		(void)fprintf(out, "%s, %" PRIu64 " trial%s", experiment_name(h->by), h->telling,
			      h->telling == 1 ? "" : "s");
	if (h->status == LEDGER_EXCLUDED && h->by != EXPERIMENT_KINDS)
		(void)fprintf(out, ", chance to miss it: %.2g %%", h->missed * 100);
	(void)fprintf(out, " | ");
	md_said(&h->because, out);
	(void)fprintf(out, " | ");
	put_numbers(h->evidence.items, h->evidence.count, out);
	(void)fprintf(out, " |\n");
}

static void hypotheses(const struct investigation *inv, FILE *out)
{
	heading("Hypotheses", out);
	if (inv->verdict.ledger.count + inv->own_hypotheses.count == 0) {
		(void)fprintf(out, "None has been tested.\n");
		return;
	}
	(void)fprintf(
		out,
		"| id | claim | status | by | because | evidence |\n|---|---|---|---|---|---|\n");
	VEC_FOREACH (&inv->verdict.ledger, h)
		put_hypothesis(h, out);
	VEC_FOREACH (&inv->own_hypotheses, h)
		put_hypothesis(h, out);
}

static void put_part(const struct investigation *inv, const char *what, const struct stack *stack,
		     FILE *out)
{
	if (stack->count == 0)
		return;
	(void)fprintf(out, "\n%s:\n\n", what);
	put_stack(inv, stack, out);
}

static void put_write(const struct verdict *v, FILE *out)
{
	int digits = (int)(v->value_len > 0 && v->value_len <= 8 ? v->value_len * 2 : 1);

	if (v->instruction) {
		(void)fprintf(out, "| instruction | ");
		md_cell_code(v->instruction, out);
		(void)fprintf(out, " |\n");
	}
	if (v->width > 0)
		(void)fprintf(out, "| width | %u byte%s (%s) |\n", v->width,
			      v->width == 1 ? "" : "s", store_fit_name(v->fit));
	if (v->values_known)
		(void)fprintf(out, "| old → new | `0x%0*" PRIx64 "` → `0x%0*" PRIx64 "` |\n",
			      digits, v->old, digits, v->new);
}

static void put_facts(const struct verdict *v, FILE *out)
{
	(void)fprintf(out, "\n| | |\n|---|---|\n| class | `%s` |\n", verdict_class_name(v->class));
	(void)fprintf(out,
		      "| caught | %" PRIu64 " of %" PRIu64 " failing trials that could show it, "
		      "%" PRIu64 " trials run |\n",
		      v->caught, v->watched, v->trials);
	if (v->home.kind != HOME_UNKNOWN) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		words_home(&v->home, &sb);
		(void)fprintf(out, "| field | ");
		md_text(strbuf_str(&sb), out);
		(void)fprintf(out, " |\n");
	}
	if (v->victim) {
		(void)fprintf(out, "| block | %" PRIu64 " bytes, %s, key ", v->victim->size,
			      v->victim->state == BLOCK_FREED || v->victim->former ? "freed"
										   : "live");
		md_cell_code(v->victim->key ? v->victim->key : "unknown", out);
		(void)fprintf(out, " |\n");
	}
	put_write(v, out);
	(void)fprintf(out, "| evidence | ");
	put_numbers(v->evidence.items, v->evidence.count, out);
	(void)fprintf(out, " |\n");
}

static void put_list(const char *what, const struct said_list *list, FILE *out)
{
	if (list->list.count == 0)
		return;
	(void)fprintf(out, "\n%s:\n\n", what);
	VEC_FOREACH (&list->list, said) {
		(void)fprintf(out, "- ");
		md_said(said, out);
		(void)fputc('\n', out);
	}
}

static void root_cause(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	heading("Root cause", out);
	if (!inv->judged) {
		(void)fprintf(out, "Not known.\n");
		return;
	}
	md_said(&v->sentence, out);
	(void)fprintf(out, ".\n");
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
		(void)fprintf(out, "\nOr `%s`: ", verdict_class_name(alternative->class));
		md_said(&alternative->sentence, out);
		(void)fprintf(out, ". To tell them apart: ");
		md_said(&alternative->tell_apart, out);
		(void)fprintf(out, ".\n");
	}
}

static void evidence(const struct investigation *inv, FILE *out)
{
	size_t shown = 0;

	heading("Evidence", out);
	if (inv->evidence.list.count == 0) {
		(void)fprintf(out, "None.\n");
		return;
	}
	(void)fprintf(out, "| id | trial | kind | what was seen |\n|---|---|---|---|\n");
	VEC_FOREACH (&inv->evidence.list, e) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		if (shown++ == EVIDENCE_SHOWN)
			break;
		words_evidence(e, &sb);
		(void)fprintf(out, "| E%" PRIu64 " | ", e->id);
		if (e->trial > 0)
			(void)fprintf(out, "%" PRIu64 "%s", e->trial,
				      e->failing ? "" : " (passed)");
		(void)fprintf(out, " | %s | ", evidence_kind_name(e->kind));
		md_text(strbuf_str(&sb), out);
		(void)fprintf(out, " |\n");
	}
	if (inv->evidence.list.count > EVIDENCE_SHOWN)
		(void)fprintf(out, "\n%zu more: `redhand report --format json`.\n",
			      inv->evidence.list.count - EVIDENCE_SHOWN);
}

static void next_steps(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	heading("Next steps", out);
	if (inv->judged && said_anything(&v->next)) {
		(void)fprintf(out, "- [ ] ");
		md_said(&v->next, out);
		(void)fputc('\n', out);
	}
	if (!inv->judged && inv->reproduce)
		(void)fprintf(out, "- [ ] Look for the cause with the same command under "
				   "`--observe ids`, or with `redhand hunt`\n");
	if (!inv->judged && inv->series.count == 0)
		(void)fprintf(out, "- [ ] Begin: `redhand hunt -- PROGRAM`\n");
	if (inv->judged && v->firm)
		(void)fprintf(out, "- [ ] Fix it where the root cause says\n");
	if (inv->prove_fix) {
		(void)fprintf(out, "- [ ] Show that it is fixed (%" PRIu64 " clean runs): ",
			      inv->clean_runs);
		md_code(inv->prove_fix, out);
		(void)fputc('\n', out);
	}
	(void)fprintf(out, "- The case: ");
	md_code(inv->case_dir, out);
	(void)fputc('\n', out);
}

void report_investigation_md(const struct investigation *inv, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf command = { 0 };

	add_command(inv, &command);
	(void)fprintf(out, "# Investigation");
	if (command.len > 0) {
		(void)fprintf(out, ": ");
		md_code(strbuf_str(&command), out);
	}
	(void)fputc('\n', out);
	summary(inv, out);
	reproduction(inv, out);
	crash_location(inv, out);
	minimum_trigger(inv, out);
	timeline(inv, out);
	hypotheses(inv, out);
	root_cause(inv, out);
	evidence(inv, out);
	next_steps(inv, out);
}
