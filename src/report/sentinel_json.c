/*
 * `sentinel` as JSON; docs/json.md describes every field.
 */
#include "report/report_sentinel.h"

#include "report/certificate_json.h"
#include "report/json.h"

json_t *certificate_json(const struct certificate *c)
{
	return OBJECT(MEMBERS(c, dir), KEY("program", json_command(c->program)),
		      MEMBERS(c, signature, summary), KEY("expect", expectation_names[c->expect]),
		      MEMBERS(c, met, sentence, confidence, careful, needed), RATE(&c->now),
		      MEMBERS(c, before), KEY("rate_below", OR_NULL(c->shown == 0, c->bound)),
		      MEMBERS(c, chance, p), KEY("trial", UNLESS_0(c->shown_trial)),
		      MEMBERS(c, others),
		      KEY("other_failures",
			  EACH(&c->other_failures, other,
			       OBJECT(MEMBERS(other, id, summary, count, trial, known)))),
		      MEMBERS(c, notes, seconds, interrupted));
}

void report_certificate_json(const struct certificate *c, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/sentinel/1"), ALL_OF(certificate_json(c))), out);
}

void report_sentinel_json(const struct sentinel_report *r, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/sentinel/1"), MEMBERS(r, dir),
			  KEY("case", r->case_dir), MEMBERS(r, series, signature, summary),
			  RATE(&r->rate), KEY("clean_runs_for_99", r->needed),
			  KEY("program", json_command(r->program)),
			  KEY("environment", json_command(r->env->items)), KEY("tests", *r->tests),
			  KEY("copied", *r->copied), KEY("notes", *r->notes)),
		   out);
}
