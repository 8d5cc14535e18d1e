/*
 * An investigation as a Markdown document, in the order in which engineers write them: status and
 * where it was run, summary, reproduction, crash location, key finding, minimum trigger set,
 * related commits, attempts, timeline, hypotheses, root cause, separate issues, next steps,
 * evidence.
 */
#include "report/report_investigation.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/percent.h"
#include "base/when.h"
#include "model/signature.h"
#include "report/markdown.h"
#include "report/md_parts.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define STACK_FRAMES 24
#define STACK_UNFOLDED 8 /* one that is longer is folded … */
#define STACK_SHOWN 4	 /* … to this */

void md_heading(const char *text, FILE *out)
{
	put(out, "\n## %s\n\n", text);
}

static void add_command(const struct investigation *inv, struct strbuf *sb)
{
	for (size_t i = 0; i < inv->program.count; i++)
		strbuf_addf(sb, "%s%s", i > 0 ? " " : "", inv->program.items[i]);
}

void md_time(int64_t ms, FILE *out)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	if (gmtime_r(&seconds, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		put(out, "%s", text);
}

void md_rate(const struct rate *rate, FILE *out)
{
	text_rate(rate, out);
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
		put(out, "… %zu more\n", stack->count - limit);
	md_fence(out);
}

/* Of a long one the first frames; all of it a click away. */
void md_stack(const struct investigation *inv, const struct stack *stack, FILE *out)
{
	if (stack->count == 0)
		return;
	if (stack->count <= STACK_UNFOLDED) {
		put_frames(inv, stack, STACK_FRAMES, out);
		return;
	}
	put_frames(inv, stack, STACK_SHOWN, out);
	put(out, "\n<details><summary>the whole stack, %zu frames</summary>\n\n", stack->count);
	put_frames(inv, stack, STACK_FRAMES, out);
	put(out, "\n</details>\n");
}

void md_evidence_ids(const uint64_t *items, size_t count, FILE *out)
{
	for (size_t i = 0; i < count && i < 8; i++)
		put(out, "%sE%" PRIu64, i > 0 ? ", " : "", items[i]);
	if (count > 8)
		put(out, ", …");
}

static void put_status(const struct investigation *inv, FILE *out)
{
	const struct parking *parking = notebook_parked(&inv->notebook);
	char when[WHEN_MAX];

	put(out, "\n**Status:** ");
	if (parking) {
		put(out, "PARKED since %s, because ", when_text(parking->made_ms, when));
		md_text(parking->because, out);
		put(out, "; until ");
		md_text(parking->until, out);
	} else {
		put(out, "open%s", inv->judged && inv->verdict.firm ? ", cause found" : "");
	}
	if (inv->notebook.workarounds.count > 0)
		put(out, ". A workaround is in place: it hides the bug, and fixes nothing");
	put(out, ".\n");
	VEC_FOREACH (&inv->notebook.workarounds, w) {
		put(out,
		    "%s- Workaround since %s: ", w == inv->notebook.workarounds.items ? "\n" : "",
		    when_text(w->made_ms, when));
		md_text(w->text, out);
		put(out, "\n");
	}
}

static void world_row(const char *what, const char *value, FILE *out)
{
	if (!value)
		return;
	put(out, "| %s | ", what);
	md_cell_code(value, out);
	put(out, " |\n");
}

/* Where the last trials ran; how many other builds or commits there were is told. */
static void put_world(const struct investigation *inv, FILE *out)
{
	size_t count = inv->notebook.surroundings.count;
	const struct world *world;

	if (count == 0)
		return;
	world = &inv->notebook.surroundings.items[count - 1].world;
	put(out, "\n| | |\n|---|---|\n");
	world_row("commit", world->commit, out);
	world_row("branch", world->branch, out);
	world_row("program", world->program, out);
	world_row("machine", world->machine, out);
	world_row("kernel", world->kernel, out);
	world_row("redhand", world->redhand, out);
	if (count > 1)
		put(out,
		    "\nThat is where the last trials ran; earlier ones ran in %zu other "
		    "surroundings (`redhand case show --json`).\n",
		    count - 1);
}

static const struct said *bisected(const struct investigation *inv)
{
	const struct said *last = NULL;

	VEC_FOREACH (&inv->decisions.list, d)
		if (strcmp(d->stage, "bisect") == 0)
			last = &d->said;
	return last;
}

static void put_verdict(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	put(out, "**%s%s** (`%s`). ",
	    v->firm || v->class == VERDICT_NOT_CAUGHT ? "" : "Probably: ", words_verdict_of(v),
	    verdict_class_name(v->class));
	md_said(&v->sentence, out);
	put(out, ".\n");
}

static void summary(const struct investigation *inv, FILE *out)
{
	md_heading("Summary", out);
	if (inv->judged) {
		put_verdict(inv, out);
	} else if (bisected(inv)) {
		put(out, "A bisection has an answer: ");
		md_said(bisected(inv), out);
		put(out, ". What goes wrong in memory has not been looked for.\n");
	} else if (inv->series.count == 0) {
		put(out, "The case is empty: nothing has been run.\n");
	} else {
		put(out, "No cause has been looked for yet: the case holds trials, but no "
			 "evidence.\n");
	}
	if (inv->counted) {
		put(out, "\nRate: ");
		md_rate(&inv->summary.rate, out);
		put(out, ".\n");
	}
}

/* What fails in every run beside it has a section of its own. */
static bool is_separate(const struct investigation *inv, const struct signature_summary *s)
{
	return s->always && inv->summary.intermittent;
}

static void signature_table(const struct investigation *inv, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&inv->summary.signatures.list, s) {
		if (is_separate(inv, s))
			continue;
		if (shown++ == 0)
			put(out, "\n| signature | trials | rate | what | example |\n"
				 "|---|---|---|---|---|\n");
		put(out, "| `%s` | %" PRIu64 " | %.1f %%%s | ", s->signature.id, s->rate.failed,
		    s->rate.rate * 100, s->always ? ", every run" : "");
		md_text(s->signature.summary, out);
		put(out, " | trial %" PRIu64 " |\n", s->trial);
	}
}

static void put_clean_runs(const struct series_summary *summary, FILE *out)
{
	AUTO(mem_freep) char *text = text_clean_runs(summary);

	put(out, "%s.\n", text);
}

static uint64_t trials_stored(const struct investigation *inv)
{
	uint64_t trials = 0;

	VEC_FOREACH (&inv->series, s)
		trials += s->rate.trials;
	return trials;
}

static void put_rate(const struct investigation *inv, FILE *out)
{
	const struct series_entry *main =
		inv->main_series < inv->series.count ? &inv->series.items[inv->main_series] : NULL;

	put(out, "\n");
	if (main && main->arms.count > 0) {
		put(out, "Of the arm ");
		md_code(main->arms.items[0].name, out);
		put(out, ": ");
	}
	md_rate(&inv->summary.rate, out);
	put(out, ".\n");
	if (inv->summary.clean_runs_for_99 > 0)
		put_clean_runs(&inv->summary, out);
	else if (inv->summary.failed_any == 0)
		put(out,
		    "No failure was seen: the rate is below %s %% with 95 %% "
		    "confidence.\n",
		    PERCENT(inv->summary.clean_bound));
}

static void reproduction(const struct investigation *inv, FILE *out)
{
	md_heading("Reproduction", out);
	if (inv->reproduce) {
		md_fence(out);
		md_fenced(inv->reproduce, out);
		md_fence(out);
	}
	if (inv->counted)
		put_rate(inv, out);
	else if (trials_stored(inv) == 0)
		put(out, "No trials are stored.\n");
	else
		put(out,
		    "\n%" PRIu64 " trials are stored, of lists or commits that differ: they have "
		    "no rate in common.\n",
		    trials_stored(inv));
	signature_table(inv, out);
	md_rates(inv, out);
}

/* How the address of the fault varies: "NULL+0x8 in 5 of 8; 3 other addresses". */
static void put_addresses(const struct series_summary *s, FILE *out)
{
	AUTO(mem_freep) char *words = text_fault_addresses(s);

	if (words)
		put(out, "\nAddress of the fault: %s.\n", words);
}

static void window(const struct signature_summary *s, FILE *out)
{
	if (s->windows.count == 0)
		return;
	put(out, "\nDied after ");
	md_code(s->windows.items[0].last, out);
	if (s->windows.items[0].next) {
		put(out, ", before ");
		md_code(s->windows.items[0].next, out);
	}
	if (s->places > 1)
		put(out, "; the place moves: %" PRIu64 " places in %" PRIu64 " failures", s->places,
		    s->rate.failed);
	put(out, ".\n");
}

static void crash_location(const struct investigation *inv, FILE *out)
{
	const struct crash *crash = investigation_crash(inv);

	md_heading("Crash location", out);
	if (!crash) {
		put(out, "No observer has seen a crash (`--observe crash` or `ids`).\n");
	} else {
		AUTO(mem_freep) char *words = words_of(&crash->words);

		md_text(words ? words : signal_name(crash->signal), out);
		put(out, ".\n");
		if (crash->instruction) {
			put(out, "\nInstruction: ");
			md_code(crash->instruction, out);
			if (crash->origin) {
				put(out, "; the pointer was loaded by ");
				md_code(crash->origin, out);
			}
			put(out, "\n");
		}
		put(out, "\n");
		md_stack(inv, &crash->stack, out);
	}
	put_addresses(&inv->summary, out);
	VEC_FOREACH (&inv->summary.signatures.list, s)
		if (!s->always) {
			window(s, out);
			break;
		}
}

static void trigger_table(const struct trigger_set *trigger, FILE *out)
{
	put(out, "\n| list | result |\n|---|---|\n| all %zu | ", trigger->total);
	md_rate(&trigger->full, out);
	put(out, " |\n| these %zu | ", trigger->items.count);
	md_rate(&trigger->minimal, out);
	put(out, " |\n");
	VEC_FOREACH (&trigger->items, item) {
		if (item->victim || item->without.trials == 0)
			continue;
		put(out, "| without ");
		md_cell_code(item->name, out);
		put(out, " | ");
		md_rate(&item->without, out);
		put(out, " |\n");
	}
}

/* "Any five pass": said where each of them was left out in turn. */
static void put_each_needed(const struct trigger_set *trigger, FILE *out)
{
	uint64_t trials = 0, failed = 0;
	size_t others = 0, left_out = 0;

	VEC_FOREACH (&trigger->items, item) {
		if (item->victim)
			continue;
		others++;
		left_out += item->without.trials > 0;
		trials += item->without.trials;
		failed += item->without.failed;
	}
	if (failed == 0 && others > 1 && left_out == others)
		put(out,
		    "\nAny %zu of the %zu%s pass: of %" PRIu64
		    " runs with one of them left out none failed.\n",
		    others - 1, others, others < trigger->items.count ? " and the victim" : "",
		    trials);
}

static void minimum_trigger(const struct investigation *inv, FILE *out)
{
	const struct trigger_set *trigger = &inv->trigger;
	size_t number = 0;

	md_heading("Minimum trigger set", out);
	if (!trigger->known) {
		put(out, "Not searched for (`redhand minimize`).\n");
		return;
	}
	VEC_FOREACH (&trigger->items, item) {
		put(out, "%zu. ", ++number);
		md_code(item->name, out);
		put(out, "%s\n", item->victim ? " (the victim)" : "");
	}
	trigger_table(trigger, out);
	if (trigger->proven)
		put_each_needed(trigger, out);
	if (!trigger->proven)
		put(out, "\nThe search is not finished: some of these may not be needed.\n");
	if (trigger->file) {
		put(out, "\nAs a file: ");
		md_code(trigger->file, out);
		put(out, "\n");
	}
}

/* redhand's own, then the user's. */
static void next_steps(const struct investigation *inv, FILE *out)
{
	const struct verdict *v = &inv->verdict;

	md_heading("Next steps", out);
	if (inv->judged && said_anything(&v->next)) {
		put(out, "- [ ] ");
		md_said(&v->next, out);
		put(out, "\n");
	}
	if (!inv->judged && inv->reproduce)
		put(out, "- [ ] Look for the cause with the same command under "
			 "`--observe ids`, or with `redhand hunt`\n");
	if (!inv->judged && inv->series.count == 0)
		put(out, "- [ ] Begin: `redhand hunt -- PROGRAM`\n");
	if (inv->judged && v->firm)
		put(out, "- [ ] Fix it where the root cause says\n");
	if (inv->prove_fix) {
		put(out, "- [ ] Show that it is fixed (%" PRIu64 " clean runs): ", inv->clean_runs);
		md_code(inv->prove_fix, out);
		put(out, "\n");
	}
	VEC_FOREACH (&inv->notebook.steps, step) {
		put(out, "- [%c] ", step->done_ms != 0 ? 'x' : ' ');
		md_text(step->text, out);
		put(out, "\n");
	}
	put(out, "- The case: ");
	md_code(inv->case_dir, out);
	put(out, "\n");
}

void report_investigation_md(const struct investigation *inv, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf command = { 0 };

	add_command(inv, &command);
	put(out, "# Investigation");
	if (command.len > 0) {
		put(out, ": ");
		md_code(strbuf_str(&command), out);
	}
	put(out, "\n");
	put_status(inv, out);
	put_world(inv, out);
	summary(inv, out);
	reproduction(inv, out);
	crash_location(inv, out);
	md_key_finding(inv, out);
	minimum_trigger(inv, out);
	md_commits(inv, out);
	md_attempts(inv, out);
	md_timeline(inv, out);
	md_hypotheses(inv, out);
	md_root_cause(inv, out);
	md_separate(inv, out);
	next_steps(inv, out);
	md_evidence(inv, out);
}
