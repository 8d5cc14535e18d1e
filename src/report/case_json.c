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

static json_t *count_or_null(uint64_t value)
{
	return value != 0 ? count(value) : json_null();
}

static json_t *moment(int64_t ms)
{
	char text[WHEN_MAX];

	return json_text(when_text(ms, text));
}

static json_t *signature_json(const struct signature_count *s)
{
	json_t *object = json_object();

	PUT(object, s, id, count, always, summary, trial);
	return object;
}

static json_t *series_json(const struct series_overview *s)
{
	json_t *object = json_object(), *arms = json_array();

	set(object, "series", json_integer(s->id));
	PUT(object, s, command);
	set(object, "created", moment(s->created_ms));
	set(object, "program", json_command(s->program.items));
	set(object, "jobs", count_or_null(s->jobs));
	PUT(object, s, observer);
	json_add_rate(object, &s->rate);
	set(object, "counted", json_text(s->intermittent ? "intermittent" : "all"));
	set(object, "signatures", JSON_LIST(&s->signatures, signature_json));
	VEC_FOREACH (&s->arms, arm) {
		json_t *a = json_object();

		PUT(a, arm, name);
		json_add_rate(a, &arm->rate);
		(void)json_array_append_new(arms, a);
	}
	set(object, "arms", arms);
	return object;
}

static json_t *minimal_json(const struct minimal_list *list)
{
	json_t *object, *minimal = json_object(), *full = json_object();

	object = json_object();
	json_add_rate(minimal, &list->minimal);
	json_add_rate(full, &list->full);
	PUT(object, list, series, tests, total, victim, signature, confidence);
	set(object, "minimal", minimal);
	set(object, "full", full);
	return object;
}

static json_t *change_json(const struct hypothesis_change *change)
{
	json_t *object = json_object();

	set(object, "time", moment(change->made_ms));
	set(object, "status", json_text(hypothesis_status_word(change->status)));
	PUT(object, change, because);
	set(object, "trial", count_or_null(change->seen.trial));
	set(object, "evidence", count_or_null(change->seen.evidence));
	return object;
}

static json_t *hypothesis_json(const struct hypothesis *h)
{
	json_t *object = json_object(), *history = json_array(), *evidence = json_array();

	PUT(object, h, id, text);
	set(object, "status", json_text(hypothesis_status_word(h->status)));
	set(object, "time", moment(h->made_ms));
	VEC_FOREACH (&h->changes, change) {
		(void)json_array_append_new(history, change_json(change));
		/* Only what speaks for the status that holds. */
		if (change->status == h->status &&
		    (change->seen.trial != 0 || change->seen.evidence != 0))
			(void)json_array_append_new(evidence, change_json(change));
	}
	set(object, "because",
	    json_text(h->changes.count > 0 ? h->changes.items[h->changes.count - 1].because
					   : NULL));
	set(object, "evidence", evidence);
	set(object, "history", history);
	set(object, "built_in", json_false());
	return object;
}

/* As one of the user's, decided by the evidence alone. */
static json_t *built_in_json(const struct ledger_entry *h)
{
	json_t *object = json_object(), *evidence = json_array();

	PUT(object, h, id, text);
	set(object, "status", json_text(ledger_status_name(h->status)));
	json_ledger_basis(object, h);
	set(object, "time", json_null());
	PUT(object, h, because);
	VEC_FOREACH (&h->evidence, id) {
		json_t *piece = json_object();

		set(piece, "time", json_null());
		set(piece, "status", json_text(ledger_status_name(h->status)));
		set(piece, "because", json_null());
		set(piece, "trial", json_null());
		set(piece, "evidence", count(*id));
		(void)json_array_append_new(evidence, piece);
	}
	set(object, "evidence", evidence);
	set(object, "history", json_array());
	set(object, "built_in", json_true());
	return object;
}

static json_t *verdict_json(const struct case_overview *overview)
{
	const struct verdict *v = &overview->verdict;
	json_t *object;

	if (!overview->judged)
		return json_null();
	object = json_object();
	set(object, "class", json_text(verdict_class_name(v->class)));
	PUT(object, v, firm, sentence, caught, watched, trials, doubts, next);
	return object;
}

static json_t *sightings_json(const struct case_overview *overview)
{
	json_t *array = json_array();

	VEC_FOREACH (&overview->sightings, sighting) {
		json_t *object = json_object();

		PUT(object, sighting, evidence, trial);
		set(object, "failed", json_boolean(sighting->failing));
		PUT(object, sighting, text);
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *parking_json(const struct parking *parking)
{
	json_t *object;

	if (!parking)
		return json_null();
	object = json_object();
	set(object, "since", moment(parking->made_ms));
	PUT(object, parking, because, until);
	set(object, "world", world_json(&parking->world));
	set(object, "resumed",
	    parking->resumed_ms != 0 ? moment(parking->resumed_ms) : json_null());
	PUT(object, parking, gate);
	return object;
}

static json_t *sentinel_json(const struct sentinel_note *s)
{
	json_t *object;

	if (!s)
		return json_null();
	object = json_object();
	PUT(object, s, dir);
	set(object, "time", moment(s->made_ms));
	PUT(object, s, series, signature, failed, trials);
	return object;
}

json_t *choices_json(const struct choice_list *choices)
{
	json_t *array = json_array();

	VEC_FOREACH (&choices->list, c) {
		json_t *o = json_object(), *expected = json_object();

		set(expected, "trials", json_real(c->expected_trials));
		set(expected, "failures", json_real(c->expected_failures));
		set(expected, "seconds", json_real(c->expected_s));
		PUT(o, c, time_ms, question, experiment, why);
		set(o, "expected", expected);
		set(o, "trials", c->ended ? count(c->trials) : json_null());
		set(o, "failures", c->ended ? count(c->failures) : json_null());
		set(o, "seconds", c->ended ? json_real(c->seconds) : json_null());
		set(o, "brought", c->ended ? json_said(&c->brought) : json_null());
		(void)json_array_append_new(array, o);
	}
	return array;
}

static json_t *overview_json(const struct case_overview *overview)
{
	const struct notebook *notebook = &overview->notebook;
	json_t *object = json_object(), *notes = json_array();
	json_t *hypotheses = json_array(), *workarounds = json_array();
	json_t *decisions = json_array();

	VEC_FOREACH (&notebook->notes, note) {
		json_t *n = json_object();

		PUT(n, note, id);
		set(n, "time", moment(note->made_ms));
		PUT(n, note, text);
		(void)json_array_append_new(notes, n);
	}
	VEC_FOREACH (&notebook->hypotheses, h)
		(void)json_array_append_new(hypotheses, hypothesis_json(h));
	VEC_FOREACH (&overview->verdict.ledger, h)
		(void)json_array_append_new(hypotheses, built_in_json(h));
	VEC_FOREACH (&notebook->workarounds, w) {
		json_t *o = json_object();

		PUT(o, w, id);
		set(o, "since", moment(w->made_ms));
		PUT(o, w, text);
		(void)json_array_append_new(workarounds, o);
	}
	VEC_FOREACH (&overview->decisions.list, d) {
		json_t *o = json_object();

		set(o, "time", moment(d->time_ms));
		PUT(o, d, stage);
		set(o, "says", json_said_ids(&d->said));
		set(o, "text", json_said(&d->said));
		(void)json_array_append_new(decisions, o);
	}
	set(object, "case", json_text(overview->case_dir));
	set(object, "series", JSON_LIST(&overview->series, series_json));
	set(object, "minimal",
	    overview->minimal.series != 0 ? minimal_json(&overview->minimal) : json_null());
	set(object, "verdict", verdict_json(overview));
	set(object, "sightings", sightings_json(overview));
	set(object, "decisions", decisions);
	set(object, "choices", choices_json(&overview->choices));
	set(object, "hypotheses", hypotheses);
	set(object, "notes", notes);
	set(object, "workarounds", workarounds);
	set(object, "parked", parking_json(notebook_parked(notebook)));
	set(object, "parkings", JSON_LIST(&notebook->parkings, parking_json));
	set(object, "sentinel", sentinel_json(notebook_sentinel(notebook)));
	set(object, "attempts", attempts_json(notebook));
	set(object, "steps", user_steps_json(notebook));
	set(object, "related", relations_json(notebook));
	set(object, "surroundings", surroundings_json(notebook));
	return object;
}

static json_t *document(void)
{
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/case/2"));
	return object;
}

void report_case_json(const struct case_overview *overview, FILE *out)
{
	json_t *object = document(), *known = overview_json(overview);

	(void)json_object_update(object, known);
	json_decref(known);
	json_print(object, out);
}

void report_cases_json(const struct case_lines *lines, FILE *out)
{
	json_t *object = document(), *cases = json_array();

	VEC_FOREACH (&lines->list, line) {
		json_t *known = overview_json(&line->overview);

		set(known, "case", json_text(line->dir));
		PUT(known, line, trouble);
		(void)json_array_append_new(cases, known);
	}
	set(object, "cases", cases);
	json_print(object, out);
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
	json_t *object = json_object();
	char when[WHEN_MAX];

	set(object, "trial", count(line->number));
	PUT(object, line, series, command, position, arm, slot, node);
	set(object, "exit", line->exit_status < 0 ? json_null() : json_integer(line->exit_status));
	set(object, "signal",
	    line->signal == 0 ? json_null() : json_text(signal_name(line->signal)));
	PUT(object, line, timed_out);
	set(object, "signatures", split(line->signatures, " "));
	PUT(object, line, kept);
	set(object, "started", json_text(when_text(line->started_ms, when)));
	set(object, "seconds", json_number((double)line->wall_ns / 1e9));
	PUT(object, line, stdout_bytes, stderr_bytes);
	set(object, "chaos", line->chaos ? split(line->chaos, ",") : json_null());
	PUT(object, line, items);
	return object;
}

void report_trial_lines_json(const char *case_dir, const struct trial_lines *lines, FILE *out)
{
	json_t *object = document();

	set(object, "case", json_text(case_dir));
	set(object, "trials", JSON_LIST(&lines->list, trial_line_json));
	json_print(object, out);
}

void report_case_change_json(const char *case_dir, const char *what, uint64_t id, FILE *out)
{
	json_t *object = document();

	set(object, "case", json_text(case_dir));
	set(object, "changed", json_text(what));
	set(object, "id", count_or_null(id));
	json_print(object, out);
}

void report_resumption_json(const struct resumption *r, FILE *out)
{
	json_t *object = document();

	set(object, "case", json_text(r->case_dir));
	PUT(object, r, resumed, reason);
	set(object, "parked", parking_json(r->parking));
	set(object, "changes", json_strv(r->changes));
	set(object, "gate", r->gate ? certificate_json(r->gate) : json_null());
	json_print(object, out);
}
