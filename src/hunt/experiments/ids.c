/*
 * Which observer does it stand? What allocation ids add may be enough to hide it.
 *
 * Worth it before a crash is chased. Costs trials until it has failed twice under ids, which is all
 * that a chase needs, in turns with as many under crash. Decides how it is chased: with ids; with
 * ids and chaos, which may bring out again what they hide; or without ids. What watches and guards
 * do to it shows when they are used, and is told then (observers_tell_effect()).
 */
#include "hunt/inquiry.h"

#include <inttypes.h>

#include "engine/series/settings.h"
#include "engine/stats/rate.h"

#define TRIALS_LEAST 8u
#define TRIALS_MOST 80u
#define FAILURES 2
#define CHANGES_P 0.01
#define SHARE_DISTURBED 0.15

enum arm_place {
	ARM_CRASH, /* or ids, where chaos is asked about */
	ARM_IDS,
};

static uint64_t trials_of(const struct hunt *hunt)
{
	/* So many clean ones in a row are no chance any more. */
	uint64_t wanted = rate_clean_runs(hunt->target_rate.rate, 0.9999);

	return wanted < TRIALS_LEAST ? TRIALS_LEAST : wanted < TRIALS_MOST ? wanted : TRIALS_MOST;
}

bool observers_worth(struct hunt *hunt, struct strbuf *why)
{
	if (!hunt_crashes(hunt))
		return false;
	if (hunt->close.observer == OBSERVE_NONE) {
		strbuf_adds(why, "nothing can be put into this program");
		return false;
	}
	if (hunt->plain.observer >= OBSERVE_IDS) {
		strbuf_addf(why, "the trials so far were run under %s",
			    observer_names[hunt->plain.observer]);
		return false;
	}
	return true;
}

/* Until it has failed twice; the chase goes on from there anyway. */
double observers_cost(const struct hunt *hunt)
{
	double rate = hunt->target_rate.rate, expected = rate > 0 ? FAILURES / rate : TRIALS_MOST;

	return hunt_takes(hunt, (uint64_t)(2 * expected) + 1, hunt->jobs);
}

int observers_tell_effect(struct hunt *hunt, const char *observer, const struct rate *without,
			  const struct rate *with)
{
	double p = attempt_p(without, with);

	if (with->trials == 0)
		return 0;
	return decide_in(hunt, "observers",
			 "%s: %" PRIu64 " of %" PRIu64 " trials failed, without %" PRIu64
			 " of %" PRIu64 " (p = %.2g): %s",
			 observer, with->failed, with->trials, without->failed, without->trials, p,
			 p >= CHANGES_P		      ? "no sign that it changes the rate"
			 : with->failed == 0	      ? "it hides it"
			 : with->rate > without->rate ? "it brings it out more often"
						      : "it makes it rarer");
}

static int ask(struct hunt *hunt, const char *const *arms, struct attempted *ret)
{
	return hunt_attempt(hunt,
			    &(struct attempt){ .arms = arms,
					       .count = 2,
					       .trials = trials_of(hunt),
					       .target = true,
					       .until_arm = ARM_IDS,
					       .until_failures = FAILURES,
					       .list = hunt->short_list[0] ? hunt->short_list
									   : NULL,
					       .program = hunt->program,
					       .env = hunt->env },
			    ret);
}

/* Against all that was run without: in turns with it there may have been few. */
static double odds(const struct hunt *hunt, const struct rate *without, const struct rate *with)
{
	struct rate all = rate_wilson(hunt->target_rate.trials + without->trials,
				      hunt->target_rate.failed + without->failed, RATE_CONFIDENCE);

	return attempt_p(&all, with);
}

static bool hidden(const struct hunt *hunt, const struct attempted *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];

	/* It must still fail without them: rates drift, with the machine's load for one. */
	return ids->failed == 0 && crash->failed >= FAILURES && odds(hunt, crash, ids) < CHANGES_P;
}

/* ---- it fails under ids, but in another way ---- */

/* A crash that came under ids only is taken for the same one, moved; unless the user means just one
 * failure. */
static int follow_stranger(struct hunt *hunt, const char *id)
{
	int r;

	target_deinit(&hunt->match);
	hunt->match = (struct target){ .faults = true };
	r = target_set(&hunt->match, hunt->cs, id, hunt->err);
	hunt->match.exact = false;
	return r == 0 ? decide(hunt,
			       "under ids it fails in another way, not met without them: %s; that "
			       "is taken for the same failure",
			       hunt->match.signature.summary)
		      : r;
}

/* Of one pointer that leads nowhere, NULL or garbage may be what remains under ids. */
static int ask_wider(struct hunt *hunt, const char *const *arms, struct attempted *seen)
{
	struct attempted wider;
	int r = 0;

	if (hunt->request->signature)
		return 0;
	if (seen->stranger[ARM_IDS][0] != '\0')
		r = follow_stranger(hunt, seen->stranger[ARM_IDS]);
	else
		hunt->match.faults = false;
	if (r == 0)
		r = ask(hunt, arms, &wider);
	if (r < 0)
		return r;
	if (wider.arms[ARM_IDS].failed > 0)
		*seen = wider;
	else
		hunt->match.faults = true;
	return 0;
}

/* ---- ids hide it ---- */

static void disturb_close(struct hunt *hunt)
{
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_ALL);
	char *changed = series_settings_with(hunt->close_settings, "chaos", line);

	hunt->close.settings->chaos = CHAOS_ALL;
	mem_free(hunt->close_settings);
	hunt->close_settings = changed;
	hunt->close.identity.settings = changed;
}

static int ask_disturbed(struct hunt *hunt)
{
	static const char *const arms[] = { "ids:observe=ids", "disturbed:chaos=all,observe=ids" };
	const struct rate *rate;
	struct attempted seen;
	int r;

	hunt->without_ids = true;
	if (hunt->plain.settings->chaos != 0)
		return decide_in(hunt, "observers",
				 "it is disturbed (--chaos) already, so it is chased without "
				 "ids");
	/* What came before may have taken all of the stage's time. */
	hunt_allow(hunt, SHARE_DISTURBED);
	r = ask(hunt, arms, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	rate = &seen.arms[ARM_IDS];
	if (rate->failed == 0)
		return decide_in(hunt, "observers",
				 "ids and chaos: %" PRIu64 " of %" PRIu64
				 " trials failed: chaos has not brought it out again, so it is "
				 "chased without ids",
				 rate->failed, rate->trials);
	disturb_close(hunt);
	hunt->without_ids = false;
	hunt->ids_trial = seen.example[ARM_IDS];
	hunt->close_rate = *rate;
	return decide_in(hunt, "observers",
			 "ids and chaos: %" PRIu64 " of %" PRIu64
			 " trials failed: chaos brings it out again, so it is chased with both",
			 rate->failed, rate->trials);
}

int observers_drop_ids(struct hunt *hunt, const struct rate *seen)
{
	double p = attempt_p(&hunt->target_rate, seen);
	int r;

	hunt->ids_hide_it = p < CHANGES_P;
	r = decide_in(hunt, "observers",
		      "ids: none of %" PRIu64 " trials failed, without %" PRIu64 " of %" PRIu64
		      " (p = %.2g): %s",
		      seen->trials, hunt->target_rate.failed, hunt->target_rate.trials, p,
		      hunt->ids_hide_it ? "ids hide it, so they are dropped"
					: "too few to tell whether ids hide it");
	return r == 0 && hunt->ids_hide_it ? ask_disturbed(hunt) : r;
}

static int tell(struct hunt *hunt, const struct attempted *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];
	double p = odds(hunt, crash, ids);
	const char *what;

	hunt->ids_hide_it = hidden(hunt, seen);
	if (hunt->ids_hide_it)
		what = "ids hide it, so they are dropped";
	else if (ids->failed == 0)
		what = "too few to tell whether ids hide it, so they are used";
	else if (p < CHANGES_P && ids->rate < crash->rate)
		what = "ids make it rarer; they are used all the same";
	else
		what = "it stands ids, so they are used";
	return decide(hunt,
		      "ids: %" PRIu64 " of %" PRIu64 " trials failed, %s: %" PRIu64 " of %" PRIu64
		      ", %" PRIu64 " of %" PRIu64 " before (p = %.2g): %s",
		      ids->failed, ids->trials, hunt->agent_hides_it ? "none" : "crash",
		      crash->failed, crash->trials, hunt->target_rate.failed,
		      hunt->target_rate.trials, p, what);
}

int stage_observers(struct hunt *hunt)
{
	const char *const arms[] = { hunt->agent_hides_it ? "none:observe=none"
							  : "crash:observe=crash",
				     "ids:observe=ids" };
	struct attempted seen;
	int r = ask(hunt, arms, &seen);

	if (r == 0 && !seen.interrupted && hidden(hunt, &seen))
		r = ask_wider(hunt, arms, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	/* Its log is kept: what was hit can be read from it. */
	hunt->ids_trial = seen.example[ARM_IDS];
	r = tell(hunt, &seen);
	return r == 0 && hunt->ids_hide_it ? ask_disturbed(hunt) : r;
}
