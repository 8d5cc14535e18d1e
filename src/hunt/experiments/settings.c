/*
 * What makes it fail? Alone or side by side, disturbed or not.
 *
 * Worth it when failures are so rare that a setting that brings them out pays for itself, or when
 * the question is answered almost for nothing. Costs some trials of each setting, in turns. Decides
 * how the later stages run it. (Whether a slot is odd is known from the first stage; whether the
 * order of tests matters is asked of the shorter list.)
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "engine/series/settings.h"
#include "engine/stats/rate.h"

#define RARE 0.05	   /* a rate below this */
#define OFTEN 0.2	   /* no setting can raise one above this by much */
#define FAILURES_NEEDED 25 /* by the later stages, about; they should come … */
#define SHARE_NEEDED 0.2   /* … within this part of the budget */
#define SHARE_CHEAP 0.01   /* asked even when nothing depends on it */
#define SHARE_TRIALS 0.2   /* the same, where the budget is in trials: those are few, not cheap */
#define SHARE_ANEW 0.2	   /* to measure the rate under another setting */
#define MATTERS_P 0.01	   /* below this, what makes no difference later is called one */
#define TRIALS_RARE 40u
#define TRIALS_RARE_MOST 400u
#define TRIALS_CHEAP_MOST 40u

enum arm_place {
	ARM_GIVEN,
	ARM_SLOTS, /* alone, or side by side when it was alone */
	ARM_CHAOS,
	ARM_NONE, /* of what never failed: does the observer hide it? */
};

static double interval_s(const struct hunt *hunt)
{
	return hunt->rate.rate > 0 ? hunt_takes(hunt, 1, hunt->jobs) / hunt->rate.rate : 0;
}

static bool is_rare(const struct hunt *hunt)
{
	double budget_s = hunt->request->budget_s;

	if (!hunt->target || hunt->rate.rate < RARE)
		return true;
	/* What takes its time rather than its luck is not helped by other settings. */
	return budget_s > 0 && hunt->rate.rate < OFTEN &&
	       interval_s(hunt) * FAILURES_NEEDED > SHARE_NEEDED * budget_s;
}

static uint64_t cheap_trials(const struct hunt *hunt)
{
	uint64_t wanted = rate_clean_runs(hunt->rate.rate, 0.995);

	return wanted < 10 ? 10 : wanted < TRIALS_CHEAP_MOST ? wanted : TRIALS_CHEAP_MOST;
}

static uint64_t rare_trials(const struct hunt *hunt)
{
	double wanted = hunt->rate.rate > 0 ? 8 / hunt->rate.rate : 0;

	return wanted < TRIALS_RARE	   ? TRIALS_RARE
	       : wanted < TRIALS_RARE_MOST ? (uint64_t)wanted
					   : TRIALS_RARE_MOST;
}

/* How many beside each other, where it was one: what the machine has, but two at least. */
static unsigned int other_slots(const struct hunt *hunt)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (hunt->jobs > 1)
		return 1;
	return cores > 2 ? (unsigned int)cores : 2;
}

static bool may_disturb(const struct hunt *hunt)
{
	return hunt->plain.settings->chaos == 0;
}

/* The two questions cost differently. */
static double cheap_cost(const struct hunt *hunt)
{
	return hunt_takes(hunt, cheap_trials(hunt), hunt->jobs) +
	       hunt_takes(hunt, cheap_trials(hunt), 1);
}

double causes_cost(const struct hunt *hunt)
{
	/* A rare failure is looked for as long as it is let. */
	return is_rare(hunt) ? 0 : cheap_cost(hunt);
}

bool causes_worth(struct hunt *hunt, struct strbuf *why)
{
	double budget_s = hunt->request->budget_s;

	if (hunt->summary.rate.trials == 0 || hunt->too_slow)
		return false;
	if (hunt->target && hunt->target->always) {
		strbuf_adds(why, "it fails every time");
		return false;
	}
	if (is_rare(hunt))
		return true;
	if (hunt->jobs == 1) {
		strbuf_addf(why, "alone it fails often enough, every %.2g s", interval_s(hunt));
		return false;
	}
	if (hunt->request->budget_trials > 0 &&
	    2 * (double)cheap_trials(hunt) > SHARE_TRIALS * (double)hunt->request->budget_trials) {
		strbuf_addf(why,
			    "it fails often enough; whether it does alone would take %" PRIu64
			    " of %" PRIu64 " trials",
			    2 * cheap_trials(hunt), hunt->request->budget_trials);
		return false;
	}
	if (budget_s <= 0 || cheap_cost(hunt) <= SHARE_CHEAP * budget_s)
		return true;
	strbuf_addf(why,
		    "it fails often enough, every %.2g s; whether it does alone would take %.0f s",
		    interval_s(hunt), cheap_cost(hunt));
	return false;
}

/* All that was run as it was given. */
static struct rate with_earlier(const struct hunt *hunt, const struct rate *given)
{
	return rate_wilson(given->trials + hunt->rate.trials, given->failed + hunt->rate.failed,
			   RATE_CONFIDENCE);
}

/* ---- alone, when it fails often enough as it is ---- */

static int ask_alone(struct hunt *hunt)
{
	static const char *const arms[] = { "side-by-side", "alone:jobs=1" };
	struct rate given;
	const struct rate *alone;
	struct attempted seen;
	double p;
	int r = hunt_attempt(hunt,
			     &(struct attempt){ .arms = arms,
						.count = 2,
						.trials = cheap_trials(hunt),
						.program = hunt->program,
						.env = hunt->env },
			     &seen);

	if (r < 0 || seen.interrupted)
		return r;
	given = with_earlier(hunt, &seen.arms[0]);
	alone = &seen.arms[1];
	p = attempt_p(&given, alone);
	return decide(hunt,
		      "alone %" PRIu64 " of %" PRIu64 " trials failed, %u side by side %" PRIu64
		      " of %" PRIu64 " (p = %.2g): %s",
		      alone->failed, alone->trials, hunt->jobs, given.failed, given.trials, p,
		      p >= MATTERS_P ? "no sign that it matters, and it fails often enough"
		      : alone->rate < given.rate
			      ? "side by side it stays; what trials share may be part of it"
			      : "it fails often enough side by side");
}

/* ---- what brings out a rare one ---- */

/* All that was run as it was given against the arm: a setting under which it failed twice, when it
 * had not in hundreds of trials, need not wait for more. */
static double odds(const struct hunt *hunt, const struct attempted *seen, unsigned int arm,
		   unsigned int count)
{
	const struct rate *given = &seen->arms[ARM_GIVEN];
	struct rate all = with_earlier(hunt, given);

	return fmin(1, attempt_p(&all, &seen->arms[arm]) * (count - 1));
}

static void set_look(struct hunt_look *look, char **text, const char *name, const char *line)
{
	char *changed = series_settings_with(*text, name, line);

	mem_free(*text);
	*text = changed;
	look->identity.settings = changed;
}

static void adopt(struct hunt *hunt, const char *name, const char *line)
{
	struct hunt_look list = { 0 };

	set_look(&hunt->plain, &hunt->plain_settings, name, line);
	set_look(&hunt->close, &hunt->close_settings, name, line);
	set_look(&list, &hunt->minimize_settings, name, line);
}

static void adopt_slots(struct hunt *hunt)
{
	AUTO(mem_freep) char *line = mem_printf("jobs %u\n", other_slots(hunt));

	hunt->jobs = other_slots(hunt);
	adopt(hunt, "jobs", line);
	adopt(hunt, "jobs-matter", "jobs-matter 1\n");
}

static void adopt_chaos(struct hunt *hunt)
{
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_ALL);

	hunt->plain.settings->chaos = hunt->close.settings->chaos = CHAOS_ALL;
	adopt(hunt, "chaos", line);
}

static void adopt_nothing(struct hunt *hunt)
{
	hunt->plain.observer = OBSERVE_NONE;
	set_look(&hunt->plain, &hunt->plain_settings, "observe", "observe 4:none\n");
	hunt->agent_hides_it = true;
}

static void describe(const struct hunt *hunt, unsigned int arm, struct strbuf *sb)
{
	if (arm == ARM_CHAOS)
		strbuf_adds(sb, "disturbed (--chaos)");
	else if (arm == ARM_NONE)
		strbuf_adds(sb, "unobserved (--observe none)");
	else if (arm == ARM_GIVEN)
		strbuf_adds(sb, "as it was given");
	else if (other_slots(hunt) == 1)
		strbuf_adds(sb, "alone (-j 1)");
	else
		strbuf_addf(sb, "%u side by side (-j %u)", other_slots(hunt), other_slots(hunt));
}

static int settle(struct hunt *hunt, const struct attempted *seen, unsigned int count)
{
	AUTO(strbuf_deinit) struct strbuf figures = { 0 }, name = { 0 };
	double best_p = 1, best_rate = fmax(seen->arms[ARM_GIVEN].rate, hunt->rate.rate);
	unsigned int best = ARM_GIVEN;
	int r;

	for (unsigned int i = 0; i < count; i++) {
		const struct rate *rate = &seen->arms[i];
		double p = i > 0 ? odds(hunt, seen, i, count) : 1;

		strbuf_adds(&figures, i > 0 ? ", " : "");
		describe(hunt, i, &figures);
		strbuf_addf(&figures, " %" PRIu64 " of %" PRIu64 " failed", rate->failed,
			    rate->trials);
		if (p < COMPARE_ALPHA && rate->rate > best_rate) {
			best = i;
			best_p = p;
			best_rate = rate->rate;
		}
	}
	if (seen->arms[ARM_GIVEN].trials == 0)
		return decide(hunt, "no trial came to its end in the time that there was");
	if (best == ARM_GIVEN)
		return decide(hunt, "%s: no setting brings it out, so it stays as it is",
			      strbuf_str(&figures));
	describe(hunt, best, &name);
	r = decide(hunt, "%s (p = %.2g): from here on it is run %s", strbuf_str(&figures), best_p,
		   strbuf_str(&name));
	if (best == ARM_CHAOS)
		adopt_chaos(hunt);
	else if (best == ARM_NONE)
		adopt_nothing(hunt);
	else
		adopt_slots(hunt);
	/* The comparison may have taken all of its time. */
	hunt_allow(hunt, SHARE_ANEW);
	return r == 0 ? rate_measure(hunt) : r;
}

static int bring_out(struct hunt *hunt)
{
	AUTO(mem_freep) char *slots = mem_printf("slots:jobs=%u", other_slots(hunt));
	const char *arms[] = { "given", slots, "chaos:chaos=all", "unobserved:observe=none" };
	/* The last ones are left out first. */
	unsigned int count = !may_disturb(hunt)					    ? ARM_CHAOS
			     : hunt->target || hunt->plain.observer == OBSERVE_NONE ? ARM_NONE
										    : ARM_NONE + 1;
	struct attempted seen;
	int r = hunt_attempt(hunt,
			     &(struct attempt){ .arms = arms,
						.count = count,
						.trials = rare_trials(hunt),
						.stop_early = hunt->target != NULL,
						.program = hunt->program,
						.env = hunt->env },
			     &seen);

	return r == 0 && !seen.interrupted ? settle(hunt, &seen, count) : r;
}

int stage_causes(struct hunt *hunt)
{
	return is_rare(hunt) ? bring_out(hunt) : ask_alone(hunt);
}
