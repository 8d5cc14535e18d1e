/*
 * What was done: commits, attempts, the timeline, hypotheses, separate issues, evidence.
 */
#include "report/md_parts.h"

#include <inttypes.h>
#include <string.h>

#include "model/overview.h"
#include "report/markdown.h"
#include "report/notebook_words.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define EVIDENCE_SHOWN 40
#define BISECT "bisect" /* the stage of what a bisection said */

void md_commits(const struct investigation *inv, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&inv->decisions.list, d) {
		if (strcmp(d->stage, BISECT) != 0)
			continue;
		if (shown++ == 0)
			md_heading("Related commits", out);
		put(out, "- ");
		md_said(&d->said, out);
		put(out, " (`redhand bisect`)\n");
	}
}

void md_attempts(const struct investigation *inv, FILE *out)
{
	if (inv->notebook.attempts.count == 0)
		return;
	md_heading("Attempted fixes", out);
	VEC_FOREACH (&inv->notebook.attempts, a) {
		AUTO(strbuf_deinit) struct strbuf change = { 0 };
		AUTO(strbuf_deinit) struct strbuf outcome = { 0 };

		attempt_change(a, &change);
		attempt_outcome(a, &outcome);
		put(out, "%" PRIu64 ". ", a->id);
		md_text(a->text, out);
		put(out, " (");
		md_time(a->made_ms, out);
		if (change.len > 0) {
			put(out, "; ");
			md_text(strbuf_str(&change), out);
		}
		put(out, "): ");
		md_text(strbuf_str(&outcome), out);
		put(out, "\n");
	}
}

static void put_series(const struct series_entry *s, FILE *out)
{
	put(out, "- ");
	md_time(s->began_ms, out);
	put(out, " ");
	md_code(s->command, out);
	if (s->observer) {
		put(out, ", observer ");
		md_code(s->observer, out);
	}
	put(out, ": ");
	if (s->arms.count > 0)
		put(out, "%zu arms, %" PRIu64 " trials", s->arms.count, s->rate.trials);
	else if (command_has_rate(s->command))
		md_rate(&s->rate, out);
	else
		put(out, "%" PRIu64 " of %" PRIu64 " failed", s->rate.failed, s->rate.trials);
	put(out, "\n");
}

static void put_decision(const struct decision *d, FILE *out)
{
	put(out, "- ");
	md_time(d->time_ms, out);
	put(out, " **");
	md_text(d->stage, out);
	put(out, "**: ");
	md_said(&d->said, out);
	put(out, "\n");
}

/* Series and decisions, each in their order, laid together by time. */
void md_timeline(const struct investigation *inv, FILE *out)
{
	size_t s = 0, d = 0;

	md_heading("Investigation timeline", out);
	if (inv->series.count + inv->decisions.list.count == 0)
		put(out, "Nothing has been run.\n");
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
		put(out, "- note: ");
		md_said(note, out);
		put(out, "\n");
	}
}

/* One observation may decide several: it is told once. */
static void put_because(const struct investigation *inv, const struct ledger_entry *h, FILE *out)
{
	const struct ledger_entry *told = words_because_of(&inv->verdict, h);

	if (told == h) {
		md_said(&h->because, out);
		return;
	}
	put(out, "the same as for ");
	md_cell_code(told->id, out);
}

static void put_hypothesis(const struct investigation *inv, const struct ledger_entry *h, FILE *out)
{
	put(out, "| ");
	md_cell_code(h->id, out);
	put(out, " | ");
	md_said(&h->text, out);
	put(out, " | %s | ", words_status(h->status));
	if (h->by != EXPERIMENT_KINDS)
		put(out, "%s, %" PRIu64 " trial%s", experiment_name(h->by), h->telling,
		    h->telling == 1 ? "" : "s");
	if (h->status == LEDGER_EXCLUDED && h->by != EXPERIMENT_KINDS)
		put(out, ", chance to miss it: %.2g %%", h->missed * 100);
	put(out, " | ");
	put_because(inv, h, out);
	put(out, " | ");
	md_evidence_ids(h->evidence.items, h->evidence.count, out);
	put(out, " |\n");
}

void md_hypotheses(const struct investigation *inv, FILE *out)
{
	md_heading("Hypotheses", out);
	if (inv->verdict.ledger.count + inv->own_hypotheses.count == 0) {
		put(out, "None has been tested.\n");
		return;
	}
	(void)fprintf(
		out,
		"| id | claim | status | by | because | evidence |\n|---|---|---|---|---|---|\n");
	VEC_FOREACH (&inv->verdict.ledger, h)
		put_hypothesis(inv, h, out);
	VEC_FOREACH (&inv->own_hypotheses, h)
		put_hypothesis(inv, h, out);
}

void md_separate(const struct investigation *inv, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&inv->summary.signatures.list, s) {
		if (!s->always || !inv->summary.intermittent)
			continue;
		if (shown++ == 0) {
			md_heading("Separate issues", out);
			put(out, "These fail in every run that gets that far:\n\n");
		}
		put(out, "- ");
		md_text(s->signature.summary, out);
		put(out, " (`%s`, trial %" PRIu64 ")\n", s->signature.id, s->trial);
	}
	VEC_FOREACH (&inv->notebook.relations, r) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };

		if (r == inv->notebook.relations.items)
			md_heading("Related cases", out);
		relation_words(&r->common, &sb);
		put(out, "- ");
		md_code(r->dir, out);
		put(out, ": ");
		md_text(strbuf_str(&sb), out);
		put(out, "\n");
	}
}

/* Writes in trials that passed are what the program always does. */
static bool worth_a_row(const struct evidence *e)
{
	return e->failing || e->kind != EVIDENCE_WRITE;
}

static void put_evidence(const struct evidence *e, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	words_evidence(e, &sb);
	put(out, "| E%" PRIu64 " | ", e->id);
	if (e->trial > 0)
		put(out, "%" PRIu64 "%s", e->trial, e->failing ? "" : " (passed)");
	put(out, " | %s | ", evidence_kind_name(e->kind));
	md_text(strbuf_str(&sb), out);
	put(out, " |\n");
}

static bool cited(const struct investigation *inv, uint64_t id)
{
	for (size_t i = 0; i < inv->verdict.evidence.count; i++)
		if (inv->verdict.evidence.items[i] == id)
			return true;
	return id == inv->verdict.crash || id == inv->verdict.holder;
}

/* What the verdict rests on comes first. */
void md_evidence(const struct investigation *inv, FILE *out)
{
	size_t shown = 0;

	md_heading("Evidence", out);
	if (inv->evidence.list.count == 0) {
		put(out, "None.\n");
		return;
	}
	put(out, "| id | trial | kind | what was seen |\n|---|---|---|---|\n");
	for (unsigned int pass = 0; pass < 2; pass++)
		VEC_FOREACH (&inv->evidence.list, e) {
			bool first = cited(inv, e->id);

			if (first != (pass == 0) || (!first && !worth_a_row(e)) ||
			    shown == EVIDENCE_SHOWN)
				continue;
			put_evidence(e, out);
			shown++;
		}
	if (inv->evidence.list.count > shown)
		put(out,
		    "\n%zu more, mostly writes of trials that passed: `redhand report "
		    "--format json`.\n",
		    inv->evidence.list.count - shown);
}
