/*
 * Who did it? The chase: from the crash back to the write.
 *
 * Worth it when there is a crash that shows itself under ids. Costs what is left of the budget at
 * most; it ends with the third failing trial in which the victim was watched. Decides by evidence:
 * the verdict is drawn from what was caught.
 */
#include "engine/hunt/inside.h"

#include <inttypes.h>

#include "engine/stats/fisher.h"
#include "engine/verdict/verdict.h"

#define TRIALS 1500u
#define WANTED 3u
#define HOPS 3u
#define CHANGES_P 0.01

bool culprit_worth(struct hunt *hunt, struct strbuf *why)
{
	if (!hunt_crashes(hunt))
		return false;
	if (hunt->close.observer == OBSERVE_NONE) {
		strbuf_adds(why, "nothing can be put into this program, so nobody can be caught");
		return false;
	}
	if (hunt->ids_hide_it) {
		strbuf_adds(why, "every way to catch somebody needs allocation ids, and they hide "
				 "it");
		return false;
	}
	return true;
}

static void says(void *ctx, const char *line)
{
	struct hunt *hunt = ctx;

	(void)decide(hunt, "%s", line);
}

/* The observer that matters most shows its effect only here, where something is watched. */
static int tell_rates(struct hunt *hunt, const struct chase_result *result)
{
	const struct rate *without = &hunt->rate;
	double p;

	if (result->watched_trials == 0)
		return 0;
	p = fisher_two_sided(&(struct fisher_table){
		without->trials, without->failed, result->watched_trials, result->watched_failed });
	return decide_in(hunt, "observers",
			 "watch: %" PRIu64 " of %" PRIu64 " trials failed, without %" PRIu64
			 " of %" PRIu64 " (p = %.2g): %s",
			 result->watched_failed, result->watched_trials, without->failed,
			 without->trials, p,
			 p >= CHANGES_P		       ? "no sign that watching changes the rate"
			 : result->watched_failed == 0 ? "watching hides it"
						       : "watching changes the rate");
}

/* What was caught may be nothing: then guards may show which block it is about. */
static int look_further(struct hunt *hunt)
{
	struct verdict verdict = { 0 };
	bool nobody;

	verdict_judge(&hunt->evidence, &verdict);
	nobody = verdict.class == VERDICT_NOT_CAUGHT;
	verdict_deinit(&verdict);
	return nobody && !hunt_over(hunt) ? hit_look_for_damage(hunt) : 0;
}

int stage_culprit(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	struct chase_request chase = { .identity = hunt->close.identity,
				       .settings = hunt->close.settings,
				       .program = hunt->program,
				       .program_path = request->program_path,
				       .slot_env = hunt->env,
				       .jobs = hunt->jobs,
				       .trials = hunt_trials(hunt, TRIALS),
				       .fresh = request->fresh,
				       .wanted = WANTED,
				       .hops = HOPS,
				       .deadline_s = hunt->budget.deadline_s,
				       .progress = request->show.progress,
				       .progress_ctx = request->show.ctx,
				       .say = says,
				       .say_ctx = hunt };
	struct chase_result result = { 0 };
	int r = chase_run(hunt->cs, &chase, &result, hunt->err);

	if (r == 0) {
		hunt->ret->interrupted |= result.interrupted;
		hunt_count(hunt, result.evidence.trials, result.evidence.failed, 0);
		VEC_FOREACH (&result.evidence.list, e)
			VEC_PUSH(&hunt->evidence.list, *e);
		result.evidence.list.count = 0;
		r = tell_rates(hunt, &result);
	}
	if (r == 0 && !result.interrupted)
		r = decide(hunt, "%s", result.outcome);
	hunt->chased = r == 0 && !result.interrupted;
	chase_result_deinit(&result);
	return hunt->chased ? look_further(hunt) : r;
}
