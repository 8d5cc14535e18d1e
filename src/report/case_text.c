/*
 * A case as text for a terminal.
 */
#include "report/report_case.h"

#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/when.h"
#include "base/words.h"
#include "model/relation.h"
#include "report/notebook_words.h"
#include "report/text_parts.h"
#include "report/wording.h"

/* One screen; -v and --json have all. */
#define SERIES_SHOWN 6
#define SIGNATURES_SHOWN 3
#define TESTS_SHOWN 12
#define NOTES_SHOWN 8
#define EVIDENCE_SHOWN 3
/* Of a hunt's decisions: how it began and how it ended. */
#define DECISIONS_FIRST 4
#define DECISIONS_LAST 6
#define SIGHTINGS_SHOWN 5

#define COMMAND_COLUMNS 60

#define BISECT "bisect" /* the stage of what a bisection said */

static const char *const status_words[HYPOTHESIS_STATUSES] = {
	[HYPOTHESIS_OPEN] = "OPEN",
	[HYPOTHESIS_FALSIFIED] = "FALSIFIED",
	[HYPOTHESIS_CONFIRMED] = "CONFIRMED",
};

/* What people wrote may have several lines; all but the first are indented. */
static void print_lines(const char *text, const char *indent, FILE *out)
{
	for (;;) {
		size_t len = strcspn(text, "\n");
		AUTO(mem_freep) char *line = mem_strndup(text, len);

		text_print(line, out);
		put(out, "\n");
		if (text[len] == '\0' || text[len + 1] == '\0')
			return;
		text += len + 1;
		(void)fputs(indent, out);
	}
}

static void print_command(const struct strv *program, bool whole, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf words = { 0 }, sb = { 0 };

	words_join(&words, program->items);
	strbuf_add_printable(&sb, strbuf_str(&words), words.len);
	if (!whole && sb.len > COMMAND_COLUMNS) {
		size_t len = COMMAND_COLUMNS;

		/* Not in the middle of a character. */
		while (len > 0 && ((unsigned char)sb.data[len] & 0xc0) == 0x80)
			len--;
		put(out, "%.*s…", (int)len, sb.data);
		return;
	}
	(void)fputs(strbuf_str(&sb), out);
}

static void print_signature(const struct signature_count *s, FILE *out)
{
	put(out, "       %s %5" PRIu64 "  ", s->id, s->count);
	text_print(s->summary, out);
	put(out, "%s  (trial %" PRIu64 ")\n", s->always ? ": in every run, a separate issue" : "",
	    s->trial);
}

static void print_series(const struct series_overview *s, bool verbose, FILE *out)
{
	size_t shown = 0;

	put(out, "  %3lld  %-8s  ", (long long)s->id, s->command);
	if (command_has_rate(s->command))
		text_rate(&s->rate, out);
	else
		put(out, "%" PRIu64 " of %" PRIu64 " failed%s", s->rate.failed, s->rate.trials,
		    strcmp(s->command, "minimize") == 0 ? ", of different lists"
		    : strcmp(s->command, "bisect") == 0 ? ", of different commits"
							: "");
	if (s->jobs > 0)
		put(out, "  %" PRIu64 " slot%s, %s", s->jobs, s->jobs == 1 ? "" : "s", s->observer);
	if (s->program.count > 0) {
		put(out, "\n       ");
		print_command(&s->program, verbose, out);
	}
	put(out, "\n");
	VEC_FOREACH (&s->arms, arm) {
		put(out, "       %-16s ", arm->name);
		text_rate(&arm->rate, out);
		put(out, "\n");
	}
	VEC_FOREACH (&s->signatures, signature)
		if (verbose || shown++ < SIGNATURES_SHOWN)
			print_signature(signature, out);
	if (!verbose && shown > SIGNATURES_SHOWN)
		put(out, "       … and %zu more ways to fail\n", shown - SIGNATURES_SHOWN);
}

static void print_all_series(const struct case_overview *overview, bool verbose, FILE *out)
{
	size_t count = overview->series.count;
	size_t first = verbose || count <= SERIES_SHOWN ? 0 : count - SERIES_SHOWN;

	if (count == 0) {
		put(out, "\nNo trials yet: redhand repro -- PROGRAM\n");
		return;
	}
	put(out, "\nSeries, the newest last:\n");
	if (first > 0)
		put(out, "  … %zu older ones (-v)\n", first);
	for (size_t i = first; i < count; i++)
		print_series(&overview->series.items[i], verbose, out);
}

static void print_minimal(const struct minimal_list *list, bool verbose, FILE *out)
{
	size_t shown = 0;

	if (list->series == 0)
		return;
	put(out,
	    "\nMinimal list, %zu of %" PRIu64
	    " bring it out, each needed: %.1f %% sure (series %lld)\n",
	    list->tests.count, list->total, list->confidence * 100, (long long)list->series);
	for (size_t i = 0; i < list->tests.count; i++) {
		if (!verbose && shown++ == TESTS_SHOWN) {
			put(out, "       … and %zu more (-v)\n", list->tests.count - TESTS_SHOWN);
			break;
		}
		put(out, "       ");
		text_print(list->tests.items[i], out);
		(void)fputs(list->victim && strcmp(list->victim, list->tests.items[i]) == 0
				    ? "   <- fails\n"
				    : "\n",
			    out);
	}
	put(out, "       this list: ");
	text_rate(&list->minimal, out);
	put(out, "\n       all tests: ");
	text_rate(&list->full, out);
	put(out, "\n");
}

static void print_change(const struct hypothesis_change *change, FILE *out)
{
	char when[WHEN_MAX];

	put(out, "       %s  %s", when_text(change->made_ms, when),
	    hypothesis_status_word(change->status));
	if (change->seen.trial != 0)
		put(out, " by trial %" PRIu64, change->seen.trial);
	if (change->seen.evidence != 0)
		put(out, " by evidence e%" PRIu64, change->seen.evidence);
	if (change->because) {
		put(out, ": ");
		print_lines(change->because, "         ", out);
	} else {
		put(out, "\n");
	}
}

/* What brought it about, by number; -v names all of it. */
static void print_evidence(const struct ledger_entry *h, bool verbose, FILE *out)
{
	size_t shown =
		verbose || h->evidence.count < EVIDENCE_SHOWN ? h->evidence.count : EVIDENCE_SHOWN;

	for (size_t i = 0; i < shown; i++)
		put(out, "%se%" PRIu64, i > 0 ? ", " : " (", h->evidence.items[i]);
	if (shown > 0)
		(void)fputs(shown < h->evidence.count ? ", …)" : ")", out);
}

/* What it rests on: which experiment, how many trials, the chance to be wrong. */
static void print_basis(const struct ledger_entry *h, FILE *out)
{
	if (h->by == EXPERIMENT_KINDS || h->status == LEDGER_OPEN)
		return;
	put(out, " [%s, %" PRIu64 " trial%s", experiment_name(h->by), h->telling,
	    h->telling == 1 ? "" : "s");
	if (h->status == LEDGER_EXCLUDED)
		put(out, ", chance to miss it: %.2g %%", h->missed * 100);
	(void)fputc(']', out);
}

/* Those that something looked at have a line each, the others one together. */
static void print_built_in(const struct verdict *verdict, bool verbose, FILE *out)
{
	size_t untested = 0;

	VEC_FOREACH (&verdict->ledger, h) {
		if (h->status == LEDGER_UNTESTED)
			continue;
		put(out, "  %-13s  %-10s  ", h->id, words_status(h->status));
		text_said(verbose || !said_anything(&h->because) ? &h->text : &h->because, out);
		if (verbose && said_anything(&h->because)) {
			put(out, "\n       because ");
			text_said(&h->because, out);
		}
		print_basis(h, out);
		print_evidence(h, verbose, out);
		put(out, "\n");
	}
	VEC_FOREACH (&verdict->ledger, h) {
		if (h->status != LEDGER_UNTESTED)
			continue;
		if (verbose) {
			put(out, "  %-13s  %-10s  ", h->id, words_status(h->status));
			text_said(&h->text, out);
			put(out, "\n");
		} else {
			put(out, "%s%s", untested++ == 0 ? "  not tested: " : ", ", h->id);
		}
	}
	if (untested > 0)
		put(out, "\n");
}

static void print_own(const struct hypothesis *h, bool verbose, FILE *out)
{
	put(out, "  %3" PRIu64 "  %-9s  ", h->id, status_words[h->status]);
	print_lines(h->text, "                  ", out);
	if (verbose)
		VEC_FOREACH (&h->changes, change)
			print_change(change, out);
	else if (h->changes.count > 0)
		print_change(&h->changes.items[h->changes.count - 1], out);
}

static void print_hypotheses(const struct case_overview *overview, bool verbose, FILE *out)
{
	if (overview->series.count + overview->notebook.hypotheses.count == 0)
		return;
	put(out, "\nExplanations%s:\n",
	    overview->judged ? "" : ", with no evidence about the cause yet");
	print_built_in(&overview->verdict, verbose, out);
	VEC_FOREACH (&overview->notebook.hypotheses, h)
		print_own(h, verbose, out);
}

static void print_said_lines(const struct said *said, const char *indent, FILE *out)
{
	AUTO(mem_freep) char *text = words_of(said);

	print_lines(text ? text : "", indent, out);
}

/* What was decided and why, a line each. */
static void print_decisions(const struct decision_list *decisions, bool verbose, FILE *out)
{
	size_t count = 0, at = 0;

	VEC_FOREACH (&decisions->list, d)
		count += strcmp(d->stage, BISECT) != 0;
	if (count == 0)
		return;
	put(out, "\nWhat the hunt decided, and why:\n");
	VEC_FOREACH (&decisions->list, d) {
		if (strcmp(d->stage, BISECT) == 0)
			continue;
		at++;
		if (!verbose && count > DECISIONS_FIRST + DECISIONS_LAST && at > DECISIONS_FIRST &&
		    at <= count - DECISIONS_LAST) {
			if (at == DECISIONS_FIRST + 1)
				put(out, "  … %zu more (-v)\n",
				    count - DECISIONS_FIRST - DECISIONS_LAST);
			continue;
		}
		put(out, "  %-9s  ", d->stage);
		print_said_lines(&d->said, "             ", out);
	}
}

/* Which experiments were chosen, what each was expected to take, took and brought. */
static void print_choices(const struct choice_list *choices, bool verbose, FILE *out)
{
	if (choices->list.count == 0)
		return;
	put(out, "\nWhat was tried, and what it brought:\n");
	VEC_FOREACH (&choices->list, c) {
		put(out, "  %-15s  ", c->experiment);
		if (c->ended)
			put(out, "%" PRIu64 " trial%s, %" PRIu64 " failed, %.1f s", c->trials,
			    c->trials == 1 ? "" : "s", c->failures, c->seconds);
		else
			put(out, "has not ended");
		put(out, " (expected: %.0f, %.0f, %.1f s)", c->expected_trials,
		    c->expected_failures, c->expected_s);
		if (c->ended) {
			AUTO(mem_freep) char *brought = words_of(&c->brought);

			put(out, ": %s", brought ? brought : "");
		}
		put(out, "\n");
		if (verbose) {
			put(out, "                   ");
			print_said_lines(&c->why, "                   ", out);
		}
	}
}

/* What a bisection said last; it is no step of a hunt. */
static void print_bisected(const struct decision_list *decisions, FILE *out)
{
	const struct decision *last = NULL;

	VEC_FOREACH (&decisions->list, d)
		if (strcmp(d->stage, BISECT) == 0)
			last = d;
	if (!last)
		return;
	put(out, "\nBisected: ");
	print_said_lines(&last->said, "  ", out);
}

static void print_verdict(const struct case_overview *overview, FILE *out)
{
	const struct verdict *v = &overview->verdict;

	if (!overview->judged)
		return;
	put(out, "\nVerdict%s: ",
	    v->class == VERDICT_NOT_CAUGHT ? ""
	    : v->firm			   ? ", firm"
					   : ", probable only");
	text_said(&v->sentence, out);
	put(out, " [%s]\n", verdict_class_name(v->class));
	VEC_FOREACH (&v->doubts.list, doubt) {
		put(out, "  but ");
		text_said(doubt, out);
		put(out, "\n");
	}
	if (said_anything(&v->next)) {
		put(out, "  next: ");
		text_said(&v->next, out);
		put(out, "\n");
	}
}

static void print_sightings(const struct case_overview *overview, bool verbose, FILE *out)
{
	size_t count = overview->sightings.count;
	size_t from = verbose || count <= SIGHTINGS_SHOWN ? 0 : count - SIGHTINGS_SHOWN;

	if (count == 0)
		return;
	put(out, "\nCaught by watch, the newest last:\n");
	if (from > 0)
		put(out, "  … %zu older ones (-v)\n", from);
	for (size_t i = from; i < count; i++) {
		const struct sighting_overview *s = &overview->sightings.items[i];

		put(out, "  e%-4" PRIu64 " trial %" PRIu64 "%s: ", s->evidence, s->trial,
		    s->failing ? " (failed)" : "");
		text_said(&s->text, out);
		put(out, "\n");
	}
}

static void print_workarounds(const struct notebook *notebook, FILE *out)
{
	char when[WHEN_MAX];

	if (notebook->workarounds.count == 0)
		return;
	put(out, "\nWorkarounds in place. They hide an open bug; it is not fixed:\n");
	VEC_FOREACH (&notebook->workarounds, w) {
		put(out, "  %3" PRIu64 "  since %s  ", w->id, when_text(w->made_ms, when));
		print_lines(w->text, "       ", out);
	}
}

static void print_notes(const struct notebook *notebook, bool verbose, FILE *out)
{
	size_t count = notebook->notes.count;
	size_t first = verbose || count <= NOTES_SHOWN ? 0 : count - NOTES_SHOWN;
	char when[WHEN_MAX];

	if (count == 0)
		return;
	put(out, "\nNotes:\n");
	if (first > 0)
		put(out, "  … %zu older ones (-v)\n", first);
	for (size_t i = first; i < count; i++) {
		const struct note *note = &notebook->notes.items[i];

		put(out, "  %3" PRIu64 "  %s  ", note->id, when_text(note->made_ms, when));
		print_lines(note->text, "       ", out);
	}
}

static void print_world(const struct world *world, FILE *out)
{
	const struct {
		const char *name, *value;
	} rows[] = { { "commit", world->commit },
		     { "program", world->program },
		     { "kernel", world->kernel },
		     { "machine", world->machine },
		     { "redhand", world->redhand } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].value)
			continue;
		put(out, "  %-8s ", rows[i].name);
		text_print(rows[i].value, out);
		put(out, "\n");
	}
}

static void print_parking(const struct parking *parking, FILE *out)
{
	char when[WHEN_MAX];

	put(out, "\nPARKED since %s\n  because  ", when_text(parking->made_ms, when));
	print_lines(parking->because, "           ", out);
	put(out, "  until    ");
	print_lines(parking->until, "           ", out);
	print_world(&parking->world, out);
	put(out, "  redhand case resume goes on; it first runs the sentinel\n");
}

/* What the last resumption went through. */
static void print_resumed(const struct notebook *notebook, FILE *out)
{
	const struct parking *last;
	char when[WHEN_MAX];

	if (notebook->parkings.count == 0)
		return;
	last = &notebook->parkings.items[notebook->parkings.count - 1];
	put(out, "\nResumed %s: ", when_text(last->resumed_ms, when));
	print_lines(last->gate ? last->gate : "", "  ", out);
}

static void print_sentinel(const struct sentinel_note *s, FILE *out)
{
	if (!s)
		return;
	put(out, "\nSentinel: ");
	text_print(s->dir, out);
	put(out,
	    " (seen from the case), expects %s, %" PRIu64 " of %" PRIu64
	    "; its run.sh --expect fixed proves a fix\n",
	    s->signature, s->failed, s->trials);
}

void report_case_text(const struct case_overview *overview, bool verbose, FILE *out)
{
	const struct notebook *notebook = &overview->notebook;
	const struct parking *parking = notebook_parked(notebook);
	uint64_t trials = 0;

	VEC_FOREACH (&overview->series, s)
		trials += s->rate.trials;
	put(out, "Case %s: %zu series, %" PRIu64 " trials\n", overview->case_dir,
	    overview->series.count, trials);
	if (parking)
		print_parking(parking, out);
	else
		print_resumed(notebook, out);
	print_workarounds(notebook, out);
	print_all_series(overview, verbose, out);
	print_minimal(&overview->minimal, verbose, out);
	print_bisected(&overview->decisions, out);
	print_decisions(&overview->decisions, verbose, out);
	print_choices(&overview->choices, verbose, out);
	print_verdict(overview, out);
	print_sightings(overview, verbose, out);
	print_hypotheses(overview, verbose, out);
	print_attempts(notebook, out);
	print_steps(notebook, out);
	print_relations(notebook, out);
	print_notes(notebook, verbose, out);
	print_sentinel(notebook_sentinel(notebook), out);
}

static void print_line(const struct case_line *line, FILE *out)
{
	const struct series_overview *latest = overview_latest(&line->overview);
	const struct notebook *notebook = &line->overview.notebook;
	const struct parking *parking = notebook_parked(notebook);
	uint64_t trials = 0;

	text_print(line->dir, out);
	put(out, ": ");
	if (line->trouble) {
		put(out, "cannot be read: ");
		text_print(line->trouble, out);
		put(out, "\n");
		return;
	}
	VEC_FOREACH (&line->overview.series, s)
		trials += s->rate.trials;
	if (latest)
		text_rate(&latest->rate, out);
	else if (line->overview.minimal.series != 0)
		text_rate(&line->overview.minimal.full, out);
	else
		put(out, "nothing that comes and goes");
	put(out, "; %" PRIu64 " trials", trials);
	if (line->overview.judged && line->overview.verdict.class != VERDICT_NOT_CAUGHT)
		put(out, "; %s%s", verdict_class_name(line->overview.verdict.class),
		    line->overview.verdict.firm ? "" : ", probably");
	if (notebook->workarounds.count > 0)
		put(out, "; %zu workaround%s in place", notebook->workarounds.count,
		    notebook->workarounds.count == 1 ? "" : "s");
	if (parking) {
		put(out, "; PARKED until ");
		text_print(parking->until, out);
	}
	if (latest && latest->program.count > 0) {
		put(out, "; ");
		print_command(&latest->program, false, out);
	}
	put(out, "\n");
}

/* Two cases whose verdicts name the same code. */
static void print_suspicion(const struct case_line *a, const struct case_line *b, FILE *out)
{
	struct relation relation = { .dir = b->dir };

	if (a->overview.judged && b->overview.judged)
		verdicts_common(&a->overview.verdict, &b->overview.verdict, &relation.common);
	if (relation.common.count > 0) {
		text_print(a->dir, out);
		put(out, " and ");
		report_relation_text(&relation, out);
	}
	strv_deinit(&relation.common);
}

void report_cases_text(const struct case_lines *lines, FILE *out)
{
	if (lines->list.count == 0)
		put(out, "No case here or below. redhand repro -- PROGRAM makes one.\n");
	VEC_FOREACH (&lines->list, line)
		print_line(line, out);
	VEC_FOREACH (&lines->list, line)
		for (struct case_line *other = line + 1;
		     other < lines->list.items + lines->list.count; other++)
			print_suspicion(line, other, out);
}

void report_trial_lines_text(const struct trial_lines *lines, FILE *out)
{
	char when[WHEN_MAX];

	if (lines->list.count == 0)
		put(out, "No trial is stored.\n");
	VEC_FOREACH (&lines->list, line) {
		put(out, "%6llu  %s  %-9s %8.2f s  %s  ", (unsigned long long)line->number,
		    when_text(line->started_ms, when), line->command, (double)line->wall_ns / 1e9,
		    line->kept ? "kept" : "    ");
		text_print(line->summaries ? line->summaries : "passed", out);
		put(out, "\n");
	}
}

void report_resumption_text(const struct resumption *r, FILE *out)
{
	char when[WHEN_MAX];

	put(out, "Parked since %s because ", when_text(r->parking->made_ms, when));
	print_lines(r->parking->because, "  ", out);
	put(out, "until ");
	print_lines(r->parking->until, "  ", out);
	put(out, r->changes->list.count > 0 ? "\nChanged since then:\n"
					    : "\nNothing that is known has changed since.\n");
	VEC_FOREACH (&r->changes->list, change) {
		put(out, "  ");
		text_said(change, out);
		put(out, "\n");
	}
	if (r->gate) {
		put(out, "\nThe sentinel: ");
		text_said(&r->gate->sentence, out);
		put(out, ".\n");
		VEC_FOREACH (&r->gate->notes.list, note) {
			put(out, "  ");
			text_said(note, out);
			put(out, "\n");
		}
	}
	if (r->reason)
		put(out, "\n%s: %s.\n", r->resumed ? "Resumed all the same" : "Not resumed",
		    r->reason);
	else
		put(out, "\nResumed. redhand case show tells where it stood.\n");
}
