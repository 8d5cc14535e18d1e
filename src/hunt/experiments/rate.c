/*
 * Does it fail? How often, in which ways, and which of them is hunted.
 *
 * Worth it always. Costs until there are enough failures to tell them apart, or so many clean runs
 * that a common failure is excluded. Decides what the target is.
 */
#include "hunt/inquiry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stats/rate.h"

#define FAILURES 8u
#define FAILURES_SLOW 4u /* where so many would take more than this part of the budget: */
#define SHARE_SLOW 0.15
#define SHARE_FEW 0.3 /* the same, where the budget is in trials */
#define TRIALS_FIRST 12u
#define TRIALS_ALWAYS 40u
#define TRIALS 60u
/* When none failed in TRIALS: up to so many, in at most this part of the budget. */
#define TRIALS_RARE 400u
#define SHARE_RARE 0.1

/* Adds to the series until there are so many failures, or trials in all. */
static int measure(struct hunt *hunt, uint64_t trials, uint64_t failures, bool fresh)
{
	const struct hunt_request *request = hunt->request;
	struct repro_request repro = { .identity = hunt->plain.identity,
				       .settings = hunt->plain.settings,
				       .observer = hunt->plain.observer,
				       .program = request->program,
				       .slot_env = request->slot_env,
				       .jobs = hunt->jobs,
				       .trials = trials,
				       .failures = failures,
				       .signature = request->signature,
				       .intermittent = true,
				       .fresh = fresh,
				       .progress = request->show.progress,
				       .progress_ctx = request->show.ctx };
	struct repro_result result = { 0 };
	int r = repro_run(hunt->cs, &repro, &result, hunt->err);

	if (r < 0)
		return r;
	hunt->ret->interrupted |= result.interrupted;
	series_summary_deinit(&hunt->summary);
	hunt->summary = result.summary;
	return 0;
}

/* The crash that comes and goes most often; else what comes and goes; else what always crashes. */
static int weight(const struct signature_summary *s)
{
	return (s->signature.kind == FAILURE_SIGNAL ? 2 : 0) + (s->always ? 0 : 4);
}

/* What later trials must show to be the same failure: in that test, or without tests in that
 * function. What they show besides is another failure's. */
static int set_match(struct hunt *hunt)
{
	uint64_t failed = 0;
	int r;

	target_deinit(&hunt->match);
	bystanders_deinit(&hunt->others);
	hunt->match = (struct target){ .faults = true };
	hunt->others = (struct bystanders){ 0 };
	if (!hunt->target)
		return 0;
	r = target_set(&hunt->match, hunt->cs, hunt->target->signature.id, hunt->err);
	hunt->match.exact = hunt->request->signature != NULL;
	target_take_family(&hunt->match,
			   family_of(&hunt->summary.families, hunt->target->signature.id));
	VEC_FOREACH (&hunt->summary.signatures.list, s) {
		failed += target_is(&hunt->match, &s->signature) ? s->rate.failed : 0;
		/* A failed test of every run is no crash's rival. */
		if (s->signature.kind == FAILURE_SIGNAL)
			bystanders_note(&hunt->others, &hunt->match, &s->signature);
	}
	if (failed > hunt->summary.rate.trials)
		failed = hunt->summary.rate.trials;
	hunt->target_rate = rate_wilson(hunt->summary.rate.trials, failed, RATE_CONFIDENCE);
	return r;
}

/* What was seen instead stands in the sentence. */
static int refuse(struct hunt *hunt, const char *wanted)
{
	AUTO(signature_deinit) struct signature known = { 0 };

	if (case_signature(hunt->cs, wanted, &known, hunt->err) == 0)
		(void)err_set(hunt->err, -ENOENT, "it did not come");
	(void)err_prefix(hunt->err, "none of %" PRIu64 " trials failed with the signature '%s'",
			 hunt->summary.rate.trials, wanted);
	return err_remedy(hunt->err, "without --signature the most frequent crash is hunted");
}

static int choose_target(struct hunt *hunt)
{
	const char *wanted = hunt->request->signature;
	int r;

	hunt->target = NULL;
	VEC_FOREACH (&hunt->summary.signatures.list, s) {
		if (wanted) {
			if (strcmp(s->signature.id, wanted) == 0)
				hunt->target = s;
			continue;
		}
		if (!hunt->target || weight(s) > weight(hunt->target) ||
		    (weight(s) == weight(hunt->target) &&
		     s->rate.failed > hunt->target->rate.failed))
			hunt->target = s;
	}
	r = set_match(hunt);
	if (r < 0)
		return r;
	/* One bug shows itself in many ways: all that comes and goes is its rate, unless the user
	 * means one of them. */
	hunt->rate = hunt->target && (wanted || hunt->target->always) ? hunt->target->rate
								      : hunt->summary.rate;
	if (!wanted || hunt->target || hunt->ret->interrupted || hunt->budget.spent)
		return 0;
	return refuse(hunt, wanted);
}

static int tell_slots(struct hunt *hunt)
{
	const struct series_summary *s = &hunt->summary;
	const struct slot_summary *odd;

	if (s->odd_slot < 0)
		return 0;
	odd = &s->slots.items[s->odd_slot];
	return decide(hunt,
		      "slot %u is not like the others: %" PRIu64 " of %" PRIu64
		      " failed there, %" PRIu64 " of %" PRIu64 " elsewhere (p = %.2g)",
		      odd->slot, odd->rate.failed, odd->rate.trials,
		      s->rate.failed - odd->rate.failed, s->rate.trials - odd->rate.trials, odd->p);
}

/* What nobody but the budget calls a hang is no failure when every run shows it. */
static bool is_too_slow(const struct hunt *hunt)
{
	return hunt->request->hangs_s > 0 && hunt->target && hunt->target->always &&
	       hunt->target->signature.kind == FAILURE_TIMEOUT;
}

static int tell(struct hunt *hunt)
{
	const struct series_summary *s = &hunt->summary;
	char share[40] = "";
	int r = choose_target(hunt);

	if (r < 0)
		return r;
	if (is_too_slow(hunt)) {
		hunt->too_slow = true;
		hunt->target = NULL;
		return decide(hunt,
			      "none of %" PRIu64 " trials ended within %.0f s, which is what the "
			      "budget leaves to one",
			      s->rate.trials, hunt->request->hangs_s);
	}
	hunt->ret->failed |= s->failed_any > 0;
	if (s->rate.trials == 0)
		return decide(hunt, "no trial came to its end");
	if (!hunt->target)
		return decide(hunt,
			      "none of %" PRIu64 " trials failed: a rate above %.2g %% is excluded "
			      "with 95 %% confidence",
			      s->rate.trials, s->clean_bound * 100);
	if (hunt->target_rate.failed < hunt->rate.failed)
		(void)snprintf(share, sizeof(share), " (%" PRIu64 " of these)",
			       hunt->target_rate.failed);
	r = decide(hunt, "%" PRIu64 " of %" PRIu64 " trials failed%s; the hunt is for %s%s, %s: %s",
		   hunt->rate.failed, s->rate.trials,
		   hunt->request->signature	       ? " in this way"
		   : s->failed_any > hunt->rate.failed ? ", those that always fail left out"
						       : "",
		   hunt->target->signature.id, share,
		   hunt->target->always ? "which every run shows" : "which comes and goes",
		   hunt->target->signature.summary);
	return r == 0 ? tell_slots(hunt) : r;
}

/* So many in all, or as many as the budget has. */
static uint64_t most_trials(const struct hunt *hunt, uint64_t wanted)
{
	uint64_t have = hunt->summary.rate.trials;

	return wanted > have ? have + hunt_trials(hunt, wanted - have) : have;
}

static bool fails_always(const struct hunt *hunt)
{
	return hunt->summary.failed_any > 0 && !hunt->summary.intermittent;
}

/* Has it failed as the user means it? */
static bool shown(const struct hunt *hunt)
{
	VEC_FOREACH (&hunt->summary.signatures.list, s)
		if (!hunt->request->signature ||
		    strcmp(s->signature.id, hunt->request->signature) == 0)
			return true;
	return false;
}

static bool always_crashes(const struct hunt *hunt)
{
	VEC_FOREACH (&hunt->summary.signatures.list, s)
		if (s->always && s->signature.kind == FAILURE_SIGNAL)
			return true;
	return false;
}

static bool may_go_on(const struct hunt *hunt)
{
	return !hunt_over(hunt) && !hunt->budget.spent;
}

/* Of a slow program the first trials may have shown what there is to see: later stages need the
 * time. */
static uint64_t failures_wanted(const struct hunt *hunt)
{
	double rate = hunt->summary.rate.rate;

	if (rate > 0 && hunt->request->budget_trials > 0 &&
	    FAILURES / rate > SHARE_FEW * (double)hunt->request->budget_trials)
		return FAILURES_SLOW;
	if (!(rate > 0) || hunt->request->budget_s <= 0 ||
	    hunt_takes(hunt, (uint64_t)(FAILURES / rate), hunt->jobs) <=
		    SHARE_SLOW * hunt->request->budget_s)
		return FAILURES;
	return FAILURES_SLOW;
}

/* First a few: what crashes every time needs no more. What only fails every time may hide a crash
 * that comes now and then, which is what a hunt is for. */
static int measure_in_steps(struct hunt *hunt, uint64_t earlier)
{
	double rare_end;
	uint64_t first = earlier > TRIALS_FIRST ? earlier : TRIALS_FIRST;
	int r = measure(hunt, earlier + hunt_trials(hunt, first - earlier), FAILURES,
			hunt->request->fresh);

	if (r < 0 || !may_go_on(hunt) ||
	    (fails_always(hunt) && always_crashes(hunt) && shown(hunt)))
		return r;
	r = measure(hunt, most_trials(hunt, fails_always(hunt) ? TRIALS_ALWAYS : TRIALS),
		    failures_wanted(hunt), false);
	if (r < 0 || !may_go_on(hunt) || shown(hunt))
		return r;
	rare_end = series_now_s() + SHARE_RARE * hunt->request->budget_s;
	if (hunt->budget.deadline_s > rare_end)
		hunt->budget.deadline_s = rare_end;
	return measure(hunt, most_trials(hunt, TRIALS_RARE), FAILURES, false);
}

int rate_measure(struct hunt *hunt)
{
	struct series_found found;
	struct series_progress progress = { 0 };
	int r = case_series(hunt->cs, &hunt->plain.identity, 0, &found, hunt->err);

	if (r == 0 && !hunt->request->fresh)
		r = case_series_progress(hunt->cs, found.id, &progress, hunt->err);
	if (r < 0)
		return r;
	/* Of a hunt that goes on: what was run before is spent. */
	hunt_count(hunt, 0, 0, progress.trials);
	r = measure_in_steps(hunt, progress.trials);
	if (r == 0)
		hunt_count(hunt, hunt->summary.rate.trials, hunt->summary.failed_any, 0);
	return r == 0 ? tell(hunt) : r;
}

int stage_rate(struct hunt *hunt)
{
	return rate_measure(hunt);
}
