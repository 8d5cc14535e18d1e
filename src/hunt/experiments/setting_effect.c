/*
 * What makes it fail? Alone or side by side, disturbed or not.
 *
 * Asked first when failures are so rare that a setting that brings them out pays for itself
 * (settings); it decides how later trials are run. Asked last, where nobody was firmly accused and
 * it costs next to nothing, whether it fails alone, too (alone); and at once, where trials may be
 * in each other's way (clash). Some trials of each setting, in turns. (Whether a slot is odd is
 * known from the first question; whether the order of tests matters is asked of the shorter list.)
 */
#include "hunt/inquiry.h"

#include <math.h>
#include <unistd.h>

#include "judge/judge.h"
#include "run/settings.h"
#include "run/stored.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"

#define FAILURES_NEEDED 5.0 /* by the later questions, about */
#define SHARE_CHEAP 0.01    /* asked even when nothing depends on it */
#define SHARE_TRIALS 0.2    /* the same, where the budget is in trials: those are few, not cheap */
#define SHARE_ANEW 0.2	    /* to measure the rate under another setting */
#define TRIALS_RARE 40u
#define TRIALS_RARE_MOST 400u
#define TRIALS_CHEAP_MOST 40u

enum arm_place {
	ARM_GIVEN,
	ARM_SLOTS, /* alone, or side by side when it was alone */
	ARM_CHAOS,
	ARM_NONE, /* of what never failed: does the observer hide it? */
};

static double interval_s(const struct inquiry *inq)
{
	return inq->known.rate.rate > 0 ? hunt_takes(inq, 1, inq->how.jobs) / inq->known.rate.rate
					: 0;
}

/* A setting that brings it out pays for itself only where the failures that are needed would take
 * longer than to find it. */
static bool is_rare(const struct inquiry *inq)
{
	return !inq->known.target ||
	       FAILURES_NEEDED / inq->known.rate.rate > (double)(ARM_NONE * TRIALS_RARE);
}

static uint64_t cheap_trials(const struct inquiry *inq)
{
	const struct rate *rate = hunt_crashes(inq) ? &inq->known.target_rate : &inq->known.rate;
	uint64_t wanted = rate_clean_runs(rate->rate, 0.995);

	return wanted < 10 ? 10 : wanted < TRIALS_CHEAP_MOST ? wanted : TRIALS_CHEAP_MOST;
}

static uint64_t rare_trials(const struct inquiry *inq)
{
	double wanted = inq->known.rate.rate > 0 ? 8 / inq->known.rate.rate : 0;

	return wanted < TRIALS_RARE	   ? TRIALS_RARE
	       : wanted < TRIALS_RARE_MOST ? (uint64_t)wanted
					   : TRIALS_RARE_MOST;
}

/* How many beside each other, where it was one: what the machine has, but two at least. */
static unsigned int other_slots(const struct inquiry *inq)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (inq->how.jobs > 1)
		return 1;
	return cores > 2 ? (unsigned int)cores : 2;
}

static bool may_disturb(const struct inquiry *inq)
{
	return inq->how.plain.settings->chaos == 0;
}

/* All that was run as it was given. */
static struct rate with_earlier(const struct inquiry *inq, const struct rate *given)
{
	return rate_wilson(given->trials + inq->known.rate.trials,
			   given->failed + inq->known.rate.failed, RATE_CONFIDENCE);
}

/* All that was run as it was given against the arm: a setting under which it failed twice, when it
 * had not in hundreds of trials, need not wait for more. */
static double odds(const struct inquiry *inq, const struct arms_outcome *seen, unsigned int arm,
		   unsigned int count)
{
	const struct rate *given = &seen->arms[ARM_GIVEN];
	struct rate all = with_earlier(inq, given);

	return fmin(1, attempt_p(&all, &seen->arms[arm]) * (count - 1));
}

static void set_look(struct hunt_look *look, char **text, const char *name, const char *line)
{
	char *changed = series_settings_with(*text, name, line);

	mem_free(*text);
	*text = changed;
	look->identity.settings = changed;
}

void settings_adopt(struct inquiry *inq, const char *name, const char *line)
{
	struct hunt_look list = { 0 };

	set_look(&inq->how.plain, &inq->how.plain_settings, name, line);
	set_look(&inq->how.close, &inq->how.close_settings, name, line);
	set_look(&list, &inq->how.minimize_settings, name, line);
}

static void adopt_slots(struct inquiry *inq)
{
	AUTO(mem_freep) char *line = mem_printf("jobs %u\n", other_slots(inq));

	inq->how.jobs = other_slots(inq);
	settings_adopt(inq, "jobs", line);
	settings_adopt(inq, "jobs-matter", "jobs-matter 1\n");
}

static void adopt_chaos(struct inquiry *inq)
{
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_ALL);

	inq->how.plain.settings->chaos = inq->how.close.settings->chaos = CHAOS_ALL;
	settings_adopt(inq, "chaos", line);
}

static void adopt_nothing(struct inquiry *inq)
{
	inq->how.plain.observer = OBSERVE_NONE;
	set_look(&inq->how.plain, &inq->how.plain_settings, "observe", "observe 4:none\n");
	inq->known.agent_hides_it = true;
}

/* Where trials get in each other's way, the arm with other slots is left out. */
static unsigned int place_of(const struct inquiry *inq, unsigned int arm)
{
	return inq->known.clashed > 0 && arm >= ARM_SLOTS ? arm + 1 : arm;
}

static struct said_value arm_value(const struct inquiry *inq, unsigned int arm)
{
	static const char *const ids[] = { [ARM_GIVEN] = "arm:given",
					   [ARM_SLOTS] = "arm:slots",
					   [ARM_CHAOS] = "arm:chaos",
					   [ARM_NONE] = "arm:unobserved" };
	struct said said = { 0 };

	SAY(&said, ids[place_of(inq, arm)], said_number(other_slots(inq)),
	    said_flag(other_slots(inq) > 1));
	return said_part(&said);
}

static void adopt(struct inquiry *inq, unsigned int arm)
{
	unsigned int place = place_of(inq, arm);

	if (place == ARM_CHAOS)
		adopt_chaos(inq);
	else if (place == ARM_NONE)
		adopt_nothing(inq);
	else if (place == ARM_SLOTS)
		adopt_slots(inq);
}

/* It had never failed before. Which setting did it cannot be told from so few, but it is run in the
 * one that has shown it; that the observer hides it takes more than that. */
static int take_first(struct inquiry *inq, const struct arms_outcome *seen,
		      struct said_value figures)
{
	unsigned int most = ARM_GIVEN;
	int r;

	for (unsigned int i = 0; place_of(inq, i) < ARM_NONE; i++)
		if (seen->arms[i].failed > seen->arms[most].failed)
			most = i;
	r = DECIDE(inq, "settings:first", figures, arm_value(inq, most));
	adopt(inq, most);
	return r == 0 ? rate_take(inq, seen->series) : r;
}

static bool any_failed(const struct arms_outcome *seen, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (seen->arms[i].failed > 0)
			return true;
	return false;
}

static int settle(struct inquiry *inq, const struct arms_outcome *seen, unsigned int count)
{
	struct said figures = { 0 };
	double best_p = 1, best_rate = fmax(seen->arms[ARM_GIVEN].rate, inq->known.rate.rate);
	unsigned int best = ARM_GIVEN;
	int r;

	if (seen->arms[ARM_GIVEN].trials == 0)
		return DECIDE(inq, "settings:none-ended");
	SAY(&figures, "list");
	for (unsigned int i = 0; i < count; i++) {
		const struct rate *rate = &seen->arms[i];
		double p = i > 0 ? odds(inq, seen, i, count) : 1;
		struct said figure = { 0 };

		SAY(&figure, "settings:figure", arm_value(inq, i), said_number(rate->failed),
		    said_number(rate->trials));
		said_add(&figures, said_part(&figure));
		if (p < COMPARE_ALPHA && rate->rate > best_rate) {
			best = i;
			best_p = p;
			best_rate = rate->rate;
		}
	}
	if (best == ARM_GIVEN && !inq->known.target && any_failed(seen, count))
		return take_first(inq, seen, said_part(&figures));
	if (best == ARM_GIVEN)
		return DECIDE(inq, "settings:same", said_part(&figures));
	r = DECIDE(inq, "settings:adopted", said_part(&figures), said_real(best_p),
		   arm_value(inq, best));
	adopt(inq, best);
	/* The comparison may have taken all of its time. */
	hunt_allow(inq, SHARE_ANEW);
	return r == 0 ? rate_measure(inq) : r;
}

static int bring_out(struct inquiry *inq)
{
	AUTO(mem_freep) char *slots = mem_printf("slots:jobs=%u", other_slots(inq));
	const char *arms[] = { "given", slots, "chaos:chaos=all", "unobserved:observe=none" };
	/* The last ones are left out first. */
	unsigned int count = !may_disturb(inq) ? ARM_CHAOS
			     : inq->known.target || inq->how.plain.observer == OBSERVE_NONE
				     ? ARM_NONE
				     : ARM_NONE + 1;
	struct arms_outcome seen;
	int r;

	if (inq->known.clashed > 0) {
		arms[ARM_SLOTS] = arms[ARM_CHAOS];
		arms[ARM_CHAOS] = arms[ARM_NONE];
		count--;
	}
	r = hunt_compare(inq,
			 &(struct arms_request){ .arms = arms,
						 .count = count,
						 .trials = rare_trials(inq),
						 .stop_early = inq->known.target != NULL,
						 .program = inq->how.program,
						 .env = inq->how.env },
			 &seen);

	return r == 0 && !seen.interrupted ? settle(inq, &seen, count) : r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	if (inq->known.summary.rate.trials == 0 || inq->known.too_slow || inq->known.damaged ||
	    inq->known.fails_guarded || (inq->known.clashed > 0 && !may_disturb(inq)))
		return false;
	if (hunt_always(inq)) {
		SAY(why, "why:always");
		return false;
	}
	if (is_rare(inq))
		return true;
	SAY(why, "why:often", said_real(interval_s(inq)));
	return false;
}

/* A rare failure is looked for as long as the question may take. */
static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, (double)rare_trials(inq), 1, ret);
	ret->seconds = 0;
}

EXPERIMENT(settings, .name = "settings", .question = QUESTION_SETTINGS, .kind = EXPERIMENT_RUN,
	   .chance = 0.5, .applies = applies, .price = price, .run = bring_out);

struct alone_seen {
	struct rate given, alone; /* side by side, with all that was run before; one at a time */
	double p;
	bool interrupted;
};

static int compare_alone(struct inquiry *inq, struct alone_seen *ret)
{
	static const char *const arms[] = { "side-by-side", "alone:jobs=1" };
	struct arms_outcome seen;
	int r = hunt_compare(inq,
			     &(struct arms_request){ .arms = arms,
						     .count = 2,
						     .trials = cheap_trials(inq),
						     .program = inq->how.program,
						     .env = inq->how.env },
			     &seen);

	if (r < 0)
		return r;
	*ret = (struct alone_seen){ .given = with_earlier(inq, &seen.arms[0]),
				    .alone = seen.arms[1],
				    .interrupted = seen.interrupted };
	ret->p = attempt_p(&ret->given, &ret->alone);
	return 0;
}

static int tell_alone(struct inquiry *inq, const char *stage, const struct alone_seen *seen,
		      const char *word)
{
	if (seen->alone.trials == 0)
		return 0; /* there was no time for it */
	return DECIDE_IN(inq, stage, "settings:alone", said_number(seen->alone.failed),
			 said_number(seen->alone.trials), said_number(inq->how.jobs),
			 said_number(seen->given.failed), said_number(seen->given.trials),
			 said_real(seen->p), said_word(word));
}

static int ask_alone(struct inquiry *inq)
{
	struct alone_seen seen;
	int r = compare_alone(inq, &seen);

	if (r < 0 || seen.interrupted)
		return r;
	return tell_alone(inq, "causes", &seen,
			  seen.p >= RATES_DIFFER_P	      ? "alone:same"
			  : seen.alone.rate < seen.given.rate ? "alone:less"
							      : "alone:more");
}

/* Where somebody is accused, whether it fails alone is worth nothing. */
static bool alone_applies(struct inquiry *inq, struct said *why)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	if (!inq->known.target || hunt_always(inq) || inq->known.plain_fault ||
	    inq->known.too_slow || inq->how.jobs == 1 || is_rare(inq) ||
	    inq->how.short_list[0] != '\0')
		return false;
	judge_evidence(&inq->evidence, &verdict);
	if (verdict.class != VERDICT_NOT_CAUGHT)
		return false;
	if (inq->request->budget_trials > 0 &&
	    2 * (double)cheap_trials(inq) > SHARE_TRIALS * (double)inq->request->budget_trials) {
		SAY(why, "why:alone", said_number(2 * cheap_trials(inq)),
		    said_number(inq->request->budget_trials));
		return false;
	}
	return true;
}

static void alone_price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, 2 * (double)cheap_trials(inq), 1, ret);
	ret->seconds = hunt_takes(inq, cheap_trials(inq), inq->how.jobs) +
		       hunt_takes(inq, cheap_trials(inq), 1);
}

EXPERIMENT(alone, .name = "alone", .question = QUESTION_MACHINE, .kind = EXPERIMENT_RUN,
	   .chance = 0.1, .share = SHARE_CHEAP, .applies = alone_applies, .price = alone_price,
	   .run = ask_alone);

struct clash_words {
	char *line;  /* what a failing trial said; NULL: nothing of the kind */
	bool target; /* it is one that showed what is hunted */
};

static struct clash_words clash_words(const struct inquiry *inq)
{
	struct clash_words found = { 0 };

	VEC_FOREACH (&inq->known.summary.signatures.list, s) {
		AUTO(reading_closep)
		struct reading *reading = readings_open(inq->how.plain.settings->shared.readings,
							inq->cs, s->trial, s->signature.signal);
		bool target = s == inq->known.target;
		char *line = !s->always && !found.target && (target || !found.line)
				     ? reading_clash(reading)
				     : NULL;

		if (!line)
			continue;
		mem_free(found.line);
		found = (struct clash_words){ line, target };
	}
	return found;
}

/* A program that fails by itself only where trials say that they want the same thing is hunted one
 * at a time; so is one whose wrong result vanishes then, unless the user asked for slots. A crash
 * that needs others beside it is the program's own, whatever else has failed. */
static bool is_clash(const struct clash_words *words, const struct alone_seen *seen)
{
	bool less = seen->p < COMPARE_ALPHA && seen->alone.rate < seen->given.rate;

	if (words->line && !words->target)
		return seen->alone.failed > 0;
	return words->line ? less || seen->alone.failed == 0 : less && seen->alone.failed == 0;
}

static int ask_clash(struct inquiry *inq)
{
	struct clash_words words = clash_words(inq);
	AUTO(mem_freep) char *line = words.line;
	struct alone_seen seen;
	bool clash;
	int r = line ? DECIDE(inq, "clash:words", said_text(line)) : 0;

	if (r == 0)
		r = compare_alone(inq, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	clash = is_clash(&words, &seen);
	r = tell_alone(inq, inq->asking, &seen, clash ? "alone:clash" : "alone:not-clash");
	if (r < 0 || !clash)
		return r;
	adopt_slots(inq);
	inq->known.clashed = inq->spending.ran;
	/* What redhand brought about itself is no failure of the program. */
	inq->ret->failed = false;
	inq->known.target = NULL;
	series_summary_deinit(&inq->known.summary);
	inq->known.summary = (struct series_summary){ 0 };
	hunt_allow(inq, SHARE_ANEW);
	return rate_measure(inq);
}

static bool clash_applies(struct inquiry *inq, struct said *why)
{
	AUTO(mem_freep) char *line = NULL;

	if (!inq->known.target || inq->how.jobs == 1 || inq->request->signature ||
	    hunt_always(inq) || inq->known.too_slow || is_rare(inq))
		return false;
	if (inq->request->jobs_free && !hunt_crashes(inq) && inq->request->budget_trials == 0)
		return true;
	line = clash_words(inq).line;
	return line;
}

EXPERIMENT(clash, .name = "clash", .question = QUESTION_FAILS, .kind = EXPERIMENT_RUN,
	   .chance = 0.5, .applies = clash_applies, .price = alone_price, .run = ask_clash);
