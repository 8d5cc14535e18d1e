/*
 * `sentinel` as JSON; docs/json.md describes every field.
 */
#include "report/report_sentinel.h"

#include "report/certificate_json.h"
#include "report/json.h"

static json_t *others_json(const struct certificate *c)
{
	json_t *array = json_array();

	VEC_FOREACH (&c->other_failures, other) {
		json_t *object = json_object();

		PUT(object, other, id, summary, count, trial, known);
		(void)json_array_append_new(array, object);
	}
	return array;
}

json_t *certificate_json(const struct certificate *c)
{
	json_t *object = json_object(), *before = json_object();

	json_add_rate(before, &c->before);
	PUT(object, c, dir);
	set(object, "program", json_command(c->program));
	PUT(object, c, signature, summary);
	set(object, "expect", json_text(expectation_names[c->expect]));
	PUT(object, c, met, sentence, confidence, careful, needed);
	json_add_rate(object, &c->now);
	set(object, "before", before);
	set(object, "rate_below", c->shown == 0 ? json_number(c->bound) : json_null());
	PUT(object, c, chance, p);
	set(object, "trial", c->shown_trial != 0 ? count(c->shown_trial) : json_null());
	PUT(object, c, others);
	set(object, "other_failures", others_json(c));
	PUT(object, c, notes, seconds, interrupted);
	return object;
}

static void print(json_t *known, FILE *out)
{
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/sentinel/1"));
	(void)json_object_update(object, known);
	json_decref(known);
	json_print(object, out);
}

void report_certificate_json(const struct certificate *c, FILE *out)
{
	print(certificate_json(c), out);
}

void report_sentinel_json(const struct sentinel_report *r, FILE *out)
{
	json_t *object = json_object();

	PUT(object, r, dir);
	set(object, "case", json_text(r->case_dir));
	PUT(object, r, series, signature, summary);
	json_add_rate(object, &r->rate);
	set(object, "clean_runs_for_99", count(r->needed));
	set(object, "program", json_command(r->program));
	set(object, "environment", json_command(r->env->items));
	set(object, "tests", json_strv(r->tests));
	set(object, "copied", json_said_list(r->copied));
	set(object, "notes", json_said_list(r->notes));
	print(object, out);
}
