/*
 * A case as JSON; docs/json.md describes every field.
 */
#include "report/report_case.h"

#include <string.h>

#include "base/when.h"
#include "model/signature.h"
#include "report/certificate_json.h"
#include "report/choices_json.h"
#include "report/json.h"
#include "report/notebook_json.h"

static json_t *moment(int64_t ms)
{
	char text[WHEN_MAX];

	return json_text(when_text(ms, text));
}

static json_t *series_json(const struct series_overview *s)
{
	return OBJECT(
		KEY("series", s->id), MEMBERS(s, command), KEY("created", moment(s->created_ms)),
		KEY("program", json_command(s->program.items)), KEY("jobs", UNLESS_0(s->jobs)),
		MEMBERS(s, observer), RATE(&s->rate),
		KEY("counted", s->intermittent ? "intermittent" : "all"),
		KEY("signatures", EACH(&s->signatures, one,
				       OBJECT(MEMBERS(one, id, count, always, summary, trial)))),
		KEY("arms", EACH(&s->arms, arm, OBJECT(MEMBERS(arm, name), RATE(&arm->rate)))));
}

static json_t *minimal_json(const struct minimal_list *list)
{
	return OBJECT(
		MEMBERS(list, series, tests, total, victim, signature, confidence, minimal, full));
}

static json_t *change_json(const struct hypothesis_change *change)
{
	return OBJECT(KEY("time", moment(change->made_ms)),
		      KEY("status", hypothesis_status_word(change->status)),
		      MEMBERS(change, because), KEY("trial", UNLESS_0(change->seen.trial)),
		      KEY("evidence", UNLESS_0(change->seen.evidence)));
}

/* Evidence is only what speaks for the status that holds. */
static json_t *hypothesis_json(const struct hypothesis *h)
{
	size_t n = h->changes.count;

	return OBJECT(
		MEMBERS(h, id, text), KEY("status", hypothesis_status_word(h->status)),
		KEY("time", moment(h->made_ms)),
		KEY("because", OR_NULL(n > 0, h->changes.items[n - 1].because)),
		KEY("evidence", EACH_IF(&h->changes, change,
					change->status == h->status && (change->seen.trial != 0 ||
									change->seen.evidence != 0),
					change_json(change))),
		KEY("history", JSON_LIST(&h->changes, change_json)), KEY("built_in", json_false()));
}

static json_t *piece_json(const struct ledger_entry *h, uint64_t id)
{
	return OBJECT(KEY("time", json_null()), KEY("status", ledger_status_name(h->status)),
		      KEY("because", json_null()), KEY("trial", json_null()), KEY("evidence", id));
}

/* As one of the user's, decided by the evidence alone. */
static json_t *built_in_json(const struct ledger_entry *h)
{
	return OBJECT(MEMBERS(h, id, text), KEY("status", ledger_status_name(h->status)),
		      ALL_OF(json_ledger_basis(h)), KEY("time", json_null()), MEMBERS(h, because),
		      KEY("evidence", EACH(&h->evidence, id, piece_json(h, *id))),
		      KEY("history", json_array()), KEY("built_in", json_true()));
}

static json_t *verdict_json(const struct verdict *v)
{
	return OBJECT(KEY("class", verdict_class_name(v->class)),
		      MEMBERS(v, firm, sentence, caught, watched, trials, doubts, next));
}

static json_t *parking_json(const struct parking *p)
{
	if (!p)
		return json_null();
	return OBJECT(KEY("since", moment(p->made_ms)), MEMBERS(p, because, until),
		      KEY("world", world_json(&p->world)),
		      KEY("resumed", OR_NULL(p->resumed_ms != 0, moment(p->resumed_ms))),
		      MEMBERS(p, gate));
}

static json_t *sentinel_json(const struct sentinel_note *s)
{
	if (!s)
		return json_null();
	return OBJECT(MEMBERS(s, dir), KEY("time", moment(s->made_ms)),
		      MEMBERS(s, series, signature, failed, trials));
}

static json_t *choice_json(const struct choice_record *c)
{
	return OBJECT(MEMBERS(c, time_ms, question, experiment, why),
		      KEY("expected", OBJECT(KEY("trials", c->expected_trials),
					     KEY("failures", c->expected_failures),
					     KEY("seconds", c->expected_s))),
		      KEY("trials", OR_NULL(c->ended, c->trials)),
		      KEY("failures", OR_NULL(c->ended, c->failures)),
		      KEY("seconds", OR_NULL(c->ended, c->seconds)),
		      KEY("brought", OR_NULL(c->ended, c->brought)));
}

json_t *choices_json(const struct choice_list *choices)
{
	return JSON_LIST(&choices->list, choice_json);
}

static json_t *hypotheses_json(const struct case_overview *overview)
{
	json_t *all = JSON_LIST(&overview->notebook.hypotheses, hypothesis_json);
	json_t *built_in = JSON_LIST(&overview->verdict.ledger, built_in_json);

	(void)json_array_extend(all, built_in);
	json_decref(built_in);
	return all;
}

static json_t *overview_json(const struct case_overview *o)
{
	const struct notebook *notebook = &o->notebook;

	return OBJECT(
		KEY("case", o->case_dir), KEY("series", JSON_LIST(&o->series, series_json)),
		KEY("minimal", OR_NULL(o->minimal.series != 0, minimal_json(&o->minimal))),
		KEY("verdict", OR_NULL(o->judged, verdict_json(&o->verdict))),
		KEY("sightings",
		    EACH(&o->sightings, sighting,
			 OBJECT(MEMBERS(sighting, evidence, trial),
				KEY("failed", sighting->failing), MEMBERS(sighting, text)))),
		KEY("decisions",
		    EACH(&o->decisions.list, d,
			 OBJECT(KEY("time", moment(d->time_ms)), MEMBERS(d, stage),
				KEY("says", json_said_ids(&d->said)), KEY("text", d->said)))),
		KEY("choices", choices_json(&o->choices)), KEY("hypotheses", hypotheses_json(o)),
		KEY("notes", EACH(&notebook->notes, note,
				  OBJECT(MEMBERS(note, id), KEY("time", moment(note->made_ms)),
					 MEMBERS(note, text)))),
		KEY("workarounds", EACH(&notebook->workarounds, w,
					OBJECT(MEMBERS(w, id), KEY("since", moment(w->made_ms)),
					       MEMBERS(w, text)))),
		KEY("parked", parking_json(notebook_parked(notebook))),
		KEY("parkings", JSON_LIST(&notebook->parkings, parking_json)),
		KEY("sentinel", sentinel_json(notebook_sentinel(notebook))),
		ALL_OF(notebook_json(notebook)));
}

#define SCHEMA KEY("schema", "redhand/case/2")

void report_case_json(const struct case_overview *overview, FILE *out)
{
	json_print(OBJECT(SCHEMA, ALL_OF(overview_json(overview))), out);
}

void report_cases_json(const struct case_lines *lines, FILE *out)
{
	json_print(OBJECT(SCHEMA, KEY("cases", EACH(&lines->list, line,
						    OBJECT(ALL_OF(overview_json(&line->overview)),
							   KEY("case", line->dir),
							   MEMBERS(line, trouble))))),
		   out);
}

/* The words of a text, without what separates them. */
static json_t *split(const char *text, const char *separators)
{
	json_t *list = json_array();

	while (text && *(text += strspn(text, separators)) != '\0') {
		size_t len = strcspn(text, separators);

		(void)json_array_append_new(list, json_stringn(text, len));
		text += len;
	}
	return list;
}

static json_t *trial_line_json(const struct trial_line *line)
{
	return OBJECT(KEY("trial", line->number),
		      MEMBERS(line, series, command, position, arm, slot, node),
		      KEY("exit", OR_NULL(line->exit_status >= 0, line->exit_status)),
		      KEY("signal", OR_NULL(line->signal != 0, signal_name(line->signal))),
		      MEMBERS(line, timed_out), KEY("signatures", split(line->signatures, " ")),
		      MEMBERS(line, kept), KEY("started", moment(line->started_ms)),
		      KEY("seconds", (double)line->wall_ns / 1e9),
		      MEMBERS(line, stdout_bytes, stderr_bytes),
		      KEY("chaos", OR_NULL(line->chaos, split(line->chaos, ","))),
		      MEMBERS(line, items));
}

void report_trial_lines_json(const char *case_dir, const struct trial_lines *lines, FILE *out)
{
	json_print(OBJECT(SCHEMA, KEY("case", case_dir),
			  KEY("trials", JSON_LIST(&lines->list, trial_line_json))),
		   out);
}

void report_case_change_json(const char *case_dir, const char *what, uint64_t id, FILE *out)
{
	json_print(OBJECT(SCHEMA, KEY("case", case_dir), KEY("changed", what),
			  KEY("id", UNLESS_0(id))),
		   out);
}

void report_resumption_json(const struct resumption *r, FILE *out)
{
	json_print(OBJECT(SCHEMA, KEY("case", r->case_dir), MEMBERS(r, resumed, reason),
			  KEY("parked", parking_json(r->parking)), KEY("changes", *r->changes),
			  KEY("gate", OR_NULL(r->gate, certificate_json(r->gate)))),
		   out);
}
