/*
 * `bisect` and `bisect-step` as JSON; docs/json.md describes every field.
 */
#include "report/json.h"
#include "report/report_bisect.h"
#include "report/signature_json.h"

static json_t *commit_json(const struct bisected_commit *commit)
{
	return OBJECT(KEY("commit", commit->hash),
		      MEMBERS(commit, number, author, date, subject, probability),
		      RATE(&commit->rate), MEMBERS(commit, untested));
}

static json_t *git_json(const struct bisect_result *result)
{
	return OBJECT(KEY("steps", result->git_steps), KEY("repeats", result->git_repeats),
		      KEY("trials", result->git_steps * result->git_repeats));
}

void report_bisect_json(const struct bisect_result *r, FILE *out)
{
	static const char *const verdicts[] = { [BISECTED_SEARCHING] = "searching",
						[BISECTED_FOUND] = "found",
						[BISECTED_RANGE] = "range",
						[BISECTED_BEFORE] = "before-good",
						[BISECTED_NEVER] = "never-fails" };
	const struct bisected_commit *found =
		r->verdict != BISECTED_FOUND ? NULL : VEC_FIND(&r->commits, c, c->suspect);
	bool fails = r->failed > 0;

	json_print(OBJECT(DOCUMENT("redhand/bisect/1", r), KEY("verdict", verdicts[r->verdict]),
			  KEY("commit", OR_NULL(found, commit_json(found))),
			  KEY("suspects", EACH_IF(&r->commits, c, c->suspect, commit_json(c))),
			  MEMBERS(r, probability),
			  KEY("probability_with_rate_doubt", r->with_rate_doubt),
			  KEY("wanted_confidence", r->wanted), MEMBERS(r, before, never, good, bad),
			  KEY("commits", r->total), MEMBERS(r, merges, first_parent),
			  KEY("tested", EACH_IF(&r->commits, c, c->rate.trials > 0 || c->untested,
						commit_json(c))),
			  MEMBERS(r, trials, failed, no_information, earlier),
			  KEY("trials_to_go", r->to_go), KEY("rate", OR_NULL(fails, r->rate)),
			  KEY("low", OR_NULL(fails, r->rate_low)),
			  KEY("high", OR_NULL(fails, r->rate_high)),
			  KEY("there", OR_NULL(r->there.trials > 0, r->there)),
			  KEY("stated_rate", OR_NULL(r->stated_rate > 0, r->stated_rate)),
			  KEY("rate_series", UNLESS_0(r->rate_series)),
			  KEY("rate_below", OR_NULL(!fails, r->clean_bound)),
			  MEMBERS(r, builds, builds_dir),
			  KEY("git_bisect", OR_NULL(fails, git_json(r))),
			  KEY("signature", OR_NULL(r->target[0], r->target)),
			  KEY("signatures", signatures_json(&r->signatures)), MEMBERS(r, jobs)),
		   out);
}

static json_t *runs_json(const struct repro_result *repro)
{
	return OBJECT(KEY("case", repro->case_dir), KEY("program", json_command(repro->program)),
		      MEMBERS(repro, seconds, interrupted),
		      KEY("trials", repro->summary.rate.trials),
		      KEY("failed", repro->summary.failed_any),
		      KEY("signatures", signatures_json(&repro->summary.signatures)));
}

void report_bisect_step_json(const struct bisect_step_report *r, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/bisect-step/1"), MEMBERS(r, verdict, why, wanted),
			  KEY("for_rate", OR_NULL(r->rate > 0, r->rate)),
			  KEY("confidence", OR_NULL(r->confidence > 0, r->confidence)),
			  ALL_OF(OR_NULL(r->repro, runs_json(r->repro)))),
		   out);
}
