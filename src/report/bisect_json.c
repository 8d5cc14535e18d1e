/*
 * `bisect` and `bisect-step` as JSON; docs/json.md describes every field.
 */
#include "report/json.h"
#include "report/report_bisect.h"
#include "report/signature_json.h"

static json_t *commit_json(const struct bisected_commit *commit)
{
	json_t *object = json_object();

	set(object, "commit", json_text(commit->hash));
	PUT(object, commit, number, author, date, subject, probability);
	json_add_rate(object, &commit->rate);
	PUT(object, commit, untested);
	return object;
}

static json_t *suspects_json(const struct bisect_result *result)
{
	json_t *array = json_array();

	VEC_FOREACH (&result->commits, commit)
		if (commit->suspect)
			(void)json_array_append_new(array, commit_json(commit));
	return array;
}

static json_t *tested_json(const struct bisect_result *result)
{
	json_t *array = json_array();

	VEC_FOREACH (&result->commits, commit)
		if (commit->rate.trials > 0 || commit->untested)
			(void)json_array_append_new(array, commit_json(commit));
	return array;
}

static json_t *found_json(const struct bisect_result *result)
{
	VEC_FOREACH (&result->commits, commit)
		if (commit->suspect && result->verdict == BISECTED_FOUND)
			return commit_json(commit);
	return json_null();
}

static json_t *git_json(const struct bisect_result *result)
{
	json_t *object = json_object();

	set(object, "steps", count(result->git_steps));
	set(object, "repeats", count(result->git_repeats));
	set(object, "trials", count(result->git_steps * result->git_repeats));
	return object;
}

void report_bisect_json(const struct bisect_result *result, FILE *out)
{
	static const char *const verdicts[] = { [BISECTED_SEARCHING] = "searching",
						[BISECTED_FOUND] = "found",
						[BISECTED_RANGE] = "range",
						[BISECTED_BEFORE] = "before-good",
						[BISECTED_NEVER] = "never-fails" };
	json_t *object = json_document("redhand/bisect/1", result->case_dir, result->program,
				       result->seconds, result->interrupted);
	json_t *there = result->there.trials > 0 ? json_object() : json_null();
	bool fails = result->failed > 0;

	if (result->there.trials > 0)
		json_add_rate(there, &result->there);
	set(object, "verdict", json_text(verdicts[result->verdict]));
	set(object, "commit", found_json(result));
	set(object, "suspects", suspects_json(result));
	PUT(object, result, probability);
	set(object, "probability_with_rate_doubt", json_number(result->with_rate_doubt));
	set(object, "wanted_confidence", json_number(result->wanted));
	PUT(object, result, before, never, good, bad);
	set(object, "commits", count(result->total));
	PUT(object, result, merges, first_parent);
	set(object, "tested", tested_json(result));
	PUT(object, result, trials, failed, no_information, earlier);
	set(object, "trials_to_go", json_number(result->to_go));
	set(object, "rate", fails ? json_number(result->rate) : json_null());
	set(object, "low", fails ? json_number(result->rate_low) : json_null());
	set(object, "high", fails ? json_number(result->rate_high) : json_null());
	set(object, "there", there);
	set(object, "stated_rate",
	    result->stated_rate > 0 ? json_number(result->stated_rate) : json_null());
	set(object, "rate_series",
	    result->rate_series != 0 ? json_integer(result->rate_series) : json_null());
	set(object, "rate_below", fails ? json_null() : json_number(result->clean_bound));
	PUT(object, result, builds, builds_dir);
	set(object, "git_bisect", fails ? git_json(result) : json_null());
	set(object, "signature", result->target[0] ? json_text(result->target) : json_null());
	set(object, "signatures", signatures_json(&result->signatures));
	PUT(object, result, jobs);
	json_print(object, out);
}

void report_bisect_step_json(const struct bisect_step_report *report, FILE *out)
{
	const struct repro_result *repro = report->repro;
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/bisect-step/1"));
	PUT(object, report, verdict, why, wanted);
	set(object, "for_rate", report->rate > 0 ? json_number(report->rate) : json_null());
	set(object, "confidence",
	    report->confidence > 0 ? json_number(report->confidence) : json_null());
	if (repro) {
		set(object, "case", json_text(repro->case_dir));
		set(object, "program", json_command(repro->program));
		PUT(object, repro, seconds, interrupted);
		set(object, "trials", count(repro->summary.rate.trials));
		set(object, "failed", count(repro->summary.failed_any));
		set(object, "signatures", signatures_json(&repro->summary.signatures));
	}
	json_print(object, out);
}
