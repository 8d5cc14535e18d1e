/*
 * Which observer does it stand? What allocation ids add may be enough to hide it.
 *
 * Worth it before a crash is chased. Costs trials until it has failed under ids, which is where a
 * chase begins, in turns with as many under crash. Decides how it is chased: with ids; with
 * ids and chaos, which may bring out again what they hide; or without ids. What watches and guards
 * do to it shows when they are used, and is told then (observers_tell_effect()).
 */
#include "hunt/inquiry.h"

#include <inttypes.h>

#include "run/settings.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"

#define TRIALS_LEAST 8u
#define TRIALS_MOST 80u
#define FAILURES 2
#define FAILURES_IDS 1 /* that one is read first when it is chased */
#define CHANGES_P 0.01
#define SHARE_DISTURBED 0.15

enum arm_place {
	ARM_CRASH, /* or ids, where chaos is asked about */
	ARM_IDS,
};

static uint64_t trials_of(const struct inquiry *inq)
{
	/* So many clean ones in a row are no chance any more. */
	uint64_t wanted = rate_clean_runs(inq->known.target_rate.rate, 0.9999);

	return wanted < TRIALS_LEAST ? TRIALS_LEAST : wanted < TRIALS_MOST ? wanted : TRIALS_MOST;
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	if (!hunt_crashes(inq))
		return false;
	if (inq->how.close.observer == OBSERVE_NONE) {
		strbuf_adds(why, "nothing can be put into this program");
		return false;
	}
	if (inq->how.plain.observer >= OBSERVE_IDS) {
		strbuf_addf(why, "the trials so far were run under %s",
			    observer_names[inq->how.plain.observer]);
		return false;
	}
	return true;
}

/* Until it has failed; the chase goes on from there anyway. */
static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, 2 * FAILURES_IDS, 1.2, ret);
}

int observers_tell_effect(struct inquiry *inq, const char *observer, const struct rate *without,
			  const struct rate *with)
{
	double p = attempt_p(without, with);

	if (with->trials == 0)
		return 0;
	return decide_in(inq, "observers",
			 "%s: %" PRIu64 " of %" PRIu64 " trials failed, without %" PRIu64
			 " of %" PRIu64 " (p = %.2g): %s",
			 observer, with->failed, with->trials, without->failed, without->trials, p,
			 p >= RATES_DIFFER_P	      ? "no sign that it changes the rate"
			 : with->failed == 0	      ? "it hides it"
			 : with->rate > without->rate ? "it brings it out more often"
						      : "it makes it rarer");
}

static int ask(struct inquiry *inq, const char *const *arms, struct attempted *ret)
{
	return hunt_attempt(inq,
			    &(struct attempt){ .arms = arms,
					       .count = 2,
					       .trials = trials_of(inq),
					       .target = true,
					       .until_arm = ARM_IDS,
					       .until_failures = FAILURES_IDS,
					       .list = inq->how.short_list[0] ? inq->how.short_list
									      : NULL,
					       .program = inq->how.program,
					       .env = inq->how.env },
			    ret);
}

/* Against all that was run without: in turns with it there may have been few. */
static double odds(const struct inquiry *inq, const struct rate *without, const struct rate *with)
{
	struct rate all =
		rate_wilson(inq->known.target_rate.trials + without->trials,
			    inq->known.target_rate.failed + without->failed, RATE_CONFIDENCE);

	return attempt_p(&all, with);
}

static bool hidden(const struct inquiry *inq, const struct attempted *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];

	/* It must still fail without them: rates drift, with the machine's load for one. */
	return ids->failed == 0 && crash->failed >= FAILURES && odds(inq, crash, ids) < CHANGES_P;
}

/* ---- it fails under ids, but in another way ---- */

/* A crash that came under ids only is taken for the same one, moved; unless the user means just one
 * failure. */
static int follow_stranger(struct inquiry *inq, const char *id)
{
	int r;

	target_deinit(&inq->known.match);
	inq->known.match = (struct target){ .faults = true };
	r = target_set(&inq->known.match, inq->cs, id, inq->err);
	inq->known.match.exact = false;
	return r == 0 ? decide(inq,
			       "under ids it fails in another way, not met without them: %s; that "
			       "is taken for the same failure",
			       inq->known.match.signature.summary)
		      : r;
}

/* Of one pointer that leads nowhere, NULL or garbage may be what remains under ids. */
static int ask_wider(struct inquiry *inq, const char *const *arms, struct attempted *seen)
{
	struct attempted wider;
	int r = 0;

	if (inq->request->signature)
		return 0;
	if (seen->stranger[ARM_IDS][0] != '\0')
		r = follow_stranger(inq, seen->stranger[ARM_IDS]);
	else
		inq->known.match.faults = false;
	if (r == 0)
		r = ask(inq, arms, &wider);
	if (r < 0)
		return r;
	if (wider.arms[ARM_IDS].failed > 0)
		*seen = wider;
	else
		inq->known.match.faults = true;
	return 0;
}

/* ---- ids hide it ---- */

static void disturb_close(struct inquiry *inq)
{
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_ALL);
	char *changed = series_settings_with(inq->how.close_settings, "chaos", line);

	inq->how.close.settings->chaos = CHAOS_ALL;
	mem_free(inq->how.close_settings);
	inq->how.close_settings = changed;
	inq->how.close.identity.settings = changed;
}

static int ask_disturbed(struct inquiry *inq)
{
	static const char *const arms[] = { "ids:observe=ids", "disturbed:chaos=all,observe=ids" };
	const struct rate *rate;
	struct attempted seen;
	int r;

	inq->known.without_ids = true;
	if (inq->how.plain.settings->chaos != 0)
		return decide_in(inq, "observers",
				 "it is disturbed (--chaos) already, so it is chased without "
				 "ids");
	/* What came before may have taken all of the stage's time. */
	hunt_allow(inq, SHARE_DISTURBED);
	r = ask(inq, arms, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	rate = &seen.arms[ARM_IDS];
	if (rate->failed == 0)
		return decide_in(inq, "observers",
				 "ids and chaos: %" PRIu64 " of %" PRIu64
				 " trials failed: chaos has not brought it out again, so it is "
				 "chased without ids",
				 rate->failed, rate->trials);
	disturb_close(inq);
	inq->known.without_ids = false;
	inq->known.ids_trial = seen.example[ARM_IDS];
	inq->known.ids_series = seen.series;
	inq->known.ids_arm = ARM_IDS;
	inq->known.close_rate = *rate;
	return decide_in(inq, "observers",
			 "ids and chaos: %" PRIu64 " of %" PRIu64
			 " trials failed: chaos brings it out again, so it is chased with both",
			 rate->failed, rate->trials);
}

int observers_drop_ids(struct inquiry *inq, const struct rate *seen)
{
	double p = attempt_p(&inq->known.target_rate, seen);
	int r;

	inq->known.ids_hide_it = p < CHANGES_P;
	r = decide_in(inq, "observers",
		      "ids: none of %" PRIu64 " trials failed, without %" PRIu64 " of %" PRIu64
		      " (p = %.2g): %s",
		      seen->trials, inq->known.target_rate.failed, inq->known.target_rate.trials, p,
		      inq->known.ids_hide_it ? "ids hide it, so they are dropped"
					     : "too few to tell whether ids hide it");
	return r == 0 && inq->known.ids_hide_it ? ask_disturbed(inq) : r;
}

static int tell(struct inquiry *inq, const struct attempted *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];
	double p = odds(inq, crash, ids);
	const char *what;

	inq->known.ids_hide_it = hidden(inq, seen);
	if (inq->known.ids_hide_it)
		what = "ids hide it, so they are dropped";
	else if (ids->failed == 0)
		what = "too few to tell whether ids hide it, so they are used";
	else if (p < CHANGES_P && ids->rate < crash->rate)
		what = "ids make it rarer; they are used all the same";
	else
		what = "it stands ids, so they are used";
	return decide(inq,
		      "ids: %" PRIu64 " of %" PRIu64 " trials failed, %s: %" PRIu64 " of %" PRIu64
		      ", %" PRIu64 " of %" PRIu64 " before (p = %.2g): %s",
		      ids->failed, ids->trials, inq->known.agent_hides_it ? "none" : "crash",
		      crash->failed, crash->trials, inq->known.target_rate.failed,
		      inq->known.target_rate.trials, p, what);
}

static int run(struct inquiry *inq)
{
	const char *const arms[] = { inq->known.agent_hides_it ? "none:observe=none"
							       : "crash:observe=crash",
				     "ids:observe=ids" };
	struct attempted seen;
	int r = ask(inq, arms, &seen);

	if (r == 0 && !seen.interrupted && hidden(inq, &seen))
		r = ask_wider(inq, arms, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	/* Its log is kept: what was hit can be read from it. */
	inq->known.ids_trial = seen.example[ARM_IDS];
	inq->known.ids_series = seen.series;
	inq->known.ids_arm = ARM_IDS;
	r = tell(inq, &seen);
	return r == 0 && inq->known.ids_hide_it ? ask_disturbed(inq) : r;
}

const struct experiment_ops experiment_ids = { .name = "ids",
					       .question = QUESTION_OBSERVER,
					       .kind = EXPERIMENT_RUN,
					       .chance = 0.9,
					       .share = 0.1,
					       .applies = applies,
					       .price = price,
					       .run = run };
