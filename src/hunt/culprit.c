/*
 * Who did it? The chase: from the crash back to the write.
 *
 * Worth it when there is a crash, or damage that guards found, and something can be put into the
 * program. Where ids hide it, only
 * variables of the program can be watched; guards may show more. Costs what is left of the budget
 * at most; it ends with the third failing trial in which the victim was watched. Decides by
 * evidence: the verdict is drawn from what was caught.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>

#include "engine/series/settings.h"
#include "engine/stats/rate.h"
#include "judge/judge.h"

#define TRIALS 1500u
#define WANTED 3u
#define HOPS 3u
#define LOOK_LEAST 20u
#define LOOK_MOST TRIALS

/* Where nothing failed: bytes that somebody must have written, in a block that is found again. */
static const struct evidence *damaged_bytes(const struct hunt *hunt)
{
	VEC_FOREACH (&hunt->evidence.list, e)
		if (e->kind == EVIDENCE_CANARY && e->canary->block && e->canary->block->key)
			return e;
	return NULL;
}

/* A wrong result and no damage: it may come from what stands in freed blocks, or in new ones. */
static bool may_read_freed(const struct hunt *hunt)
{
	return hunt->target && !hunt_crashes(hunt) && !hunt->damaged && hunt->guarded;
}

bool culprit_worth(struct hunt *hunt, struct strbuf *why)
{
	if (hunt->damaged)
		return damaged_bytes(hunt) != NULL;
	if (!hunt_crashes(hunt))
		return may_read_freed(hunt);
	if (hunt->close.observer == OBSERVE_NONE) {
		strbuf_adds(why, "nothing can be put into this program, so nobody can be caught");
		return false;
	}
	return true;
}

static void says(void *ctx, const char *line)
{
	struct hunt *hunt = ctx;

	(void)decide(hunt, "%s", line);
}

/* The observers that matter most show their effect only here, where they are used. */
static int tell_rates(struct hunt *hunt, const struct chase_result *result)
{
	const struct rate *without =
		hunt->close_rate.trials > 0 ? &hunt->close_rate : &hunt->target_rate;
	struct rate watched =
		rate_wilson(result->watched_trials, result->watched_failed, RATE_CONFIDENCE);
	struct rate guarded =
		rate_wilson(result->guarded_trials, result->guarded_failed, RATE_CONFIDENCE);
	int r = observers_tell_effect(hunt, hunt->without_ids ? "watch without ids" : "watch",
				      without, &watched);

	return r == 0 ? observers_tell_effect(hunt, "heap",
					      hunt->close_rate.trials > 0 ? without
									  : hunt_rate_of_all(hunt),
					      &guarded)
		      : r;
}

/* What was caught may be nothing: then guards may show which block it is about. */
static int look_further(struct hunt *hunt)
{
	struct verdict verdict = { 0 };
	bool nobody;

	judge_evidence(&hunt->evidence, &verdict);
	nobody = verdict.class == VERDICT_NOT_CAUGHT;
	verdict_deinit(&verdict);
	return nobody && !hunt_over(hunt) ? hit_look_for_damage(hunt) : 0;
}

/* Where it has not failed under ids yet, they may hide it; without them it may be hidden, too. So
 * many clean trials in a row are no chance. */
static uint64_t look_trials(const struct hunt *hunt)
{
	uint64_t trials = rate_clean_runs(hunt->target_rate.rate, 0.9999);

	if (hunt->ids_trial != 0 && !hunt->without_ids)
		return 0;
	return trials < LOOK_LEAST ? LOOK_LEAST : trials < LOOK_MOST ? trials : LOOK_MOST;
}

/* `ret_clean` is how often it did not fail, when it never did. */
static int chase(struct hunt *hunt, uint64_t *ret_clean)
{
	const struct hunt_request *request = hunt->request;
	struct target match = hunt->match; /* only seen through: hunt's is the one that is freed */
	struct chase_request chase = { .identity = hunt->close.identity,
				       .settings = hunt->close.settings,
				       .program = hunt->program,
				       .program_path = request->program_path,
				       .slot_env = hunt->env,
				       .jobs = hunt->jobs,
				       .lead = hunt->damaged ? damaged_bytes(hunt) : NULL,
				       .freed = may_read_freed(hunt),
				       .guarded_s = hunt->guarded_s,
				       .target = hunt->target ? &match : NULL,
				       .others = &hunt->others,
				       .without_ids = hunt->without_ids,
				       .look = look_trials(hunt),
				       .trials = hunt_trials(hunt, TRIALS),
				       .fresh = request->fresh,
				       .wanted = WANTED,
				       .hops = HOPS,
				       .deadline_s = hunt->budget.deadline_s,
				       .progress = request->show.progress,
				       .progress_ctx = request->show.ctx,
				       .say = says,
				       .say_ctx = hunt };
	AUTO(mem_freep)
	char *without_ids =
		series_settings_with(hunt->close_settings, "without-ids", "without-ids 1\n");
	struct chase_result result = { 0 };
	int r;

	/* Those who read what has come to stand in the file die of it, too, but lead elsewhere. */
	match.cuts = true;
	/* The way back from the fault is another for each member: one of them is chased. */
	match.members.count = 0;
	if (hunt->without_ids)
		chase.identity.settings = without_ids;
	r = chase_run(hunt->cs, &chase, &result, hunt->err);
	if (r == 0) {
		hunt->ret->interrupted |= result.interrupted;
		hunt_count(hunt, result.evidence.trials, result.evidence.failed, 0);
		*ret_clean = result.found ? 0 : result.evidence.trials;
		VEC_FOREACH (&result.evidence.list, e)
			VEC_PUSH(&hunt->evidence.list, *e);
		result.evidence.list.count = 0;
		r = tell_rates(hunt, &result);
	}
	if (r == 0 && !result.interrupted)
		r = decide(hunt, "%s", result.outcome);
	hunt->chased = r == 0 && !result.interrupted;
	chase_result_deinit(&result);
	return r;
}

/* From the damage that guards found to whoever did it. */
static int chase_damage(struct hunt *hunt)
{
	uint64_t clean = 0;
	int r = chase(hunt, &clean);

	if (r < 0) {
		struct err why = *hunt->err;

		*hunt->err = (struct err){ 0 };
		return decide(hunt, "who damaged it cannot be told: %s", why.message);
	}
	return 0;
}

int stage_culprit(struct hunt *hunt)
{
	bool with_ids = !hunt->without_ids;
	uint64_t clean = 0;
	int r;

	if (hunt->damaged || may_read_freed(hunt))
		return chase_damage(hunt);
	r = chase(hunt, &clean);
	if (r == 0 && with_ids && clean > 0 && hunt->ids_trial == 0 && !hunt_over(hunt)) {
		struct rate seen = rate_wilson(clean, 0, RATE_CONFIDENCE);

		r = observers_drop_ids(hunt, &seen);
		hunt_allow(hunt, 1);
		if (r == 0 && hunt->ids_hide_it && !hunt_over(hunt))
			r = chase(hunt, &clean);
	}
	return r == 0 && hunt->chased ? look_further(hunt) : r;
}
