/*
 * Which observer does it stand? What allocation ids add may be enough to hide it.
 *
 * Worth it before a crash is chased. Costs trials until it has failed twice under ids, which is all
 * that a chase needs, in turns with as many under crash. Decides whether there can be a chase. What
 * watches do to it shows when something is watched, and is told then (culprit.c).
 */
#include "engine/hunt/inside.h"

#include <inttypes.h>

#include "engine/stats/rate.h"

#define TRIALS_LEAST 8u
#define TRIALS_MOST 80u
#define FAILURES 2
#define HIDES_P 0.01

enum arm_place {
	ARM_CRASH,
	ARM_IDS,
};

static uint64_t trials_of(const struct hunt *hunt)
{
	/* So many clean ones in a row are no chance any more. */
	uint64_t wanted = rate_clean_runs(hunt->rate.rate, 0.9999);

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
	double expected = hunt->rate.rate > 0 ? FAILURES / hunt->rate.rate : TRIALS_MOST;

	return hunt_takes(hunt, (uint64_t)(2 * expected) + 1, hunt->jobs);
}

static int tell(struct hunt *hunt, const struct rate *crash, const struct rate *ids)
{
	double p = attempt_p(crash, ids);
	const char *what;

	hunt->ids_hide_it = ids->failed == 0 && p < HIDES_P;
	if (hunt->ids_hide_it)
		what = "ids hide it, so they are not used";
	else if (ids->failed == 0)
		what = "too few to tell whether ids hide it, so they are used";
	else if (p < HIDES_P && ids->rate < crash->rate)
		what = "ids make it rarer; they are used all the same";
	else
		what = "it stands ids, so they are used";
	return decide(hunt,
		      "ids: %" PRIu64 " of %" PRIu64 " trials failed, crash: %" PRIu64
		      " of %" PRIu64 " (p = %.2g): %s",
		      ids->failed, ids->trials, crash->failed, crash->trials, p, what);
}

int stage_observers(struct hunt *hunt)
{
	static const char *const arms[] = { "crash:observe=crash", "ids:observe=ids" };
	struct attempted seen;
	int r = hunt_attempt(hunt,
			     &(struct attempt){ .arms = arms,
						.count = 2,
						.trials = trials_of(hunt),
						.until_arm = ARM_IDS,
						.until_failures = FAILURES,
						.list = hunt->short_list[0] ? hunt->short_list
									    : NULL,
						.program = hunt->program,
						.env = hunt->env },
			     &seen);

	if (r < 0 || seen.interrupted)
		return r;
	/* Its log is kept: what was hit can be read from it. */
	hunt->ids_trial = seen.example[ARM_IDS];
	return tell(hunt, &seen.arms[ARM_CRASH], &seen.arms[ARM_IDS]);
}
