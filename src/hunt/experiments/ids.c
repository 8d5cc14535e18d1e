/*
 * Which observer does it stand? What allocation ids add may be enough to hide it.
 *
 * Worth it before a crash is chased. Costs trials until it has failed under ids, which is where a
 * chase begins, in turns with as many under crash. Decides how it is chased: with ids; with
 * ids and chaos, which may bring out again what they hide; or without ids. What watches and guards
 * do to it shows when they are used, and is told then (observers_tell_effect()).
 */
#include "hunt/inquiry.h"

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
	ARM_CRASH,
	ARM_IDS,
	ARMS,
	ARM_DISTURBED = 0, /* alone: that ids hide it is known */
};

/* So many clean ones in a row are no chance any more. With ids alone some may have been run. */
static uint64_t trials_of(const struct inquiry *inq, bool ids)
{
	uint64_t wanted = rate_clean_runs(inq->known.target_rate.rate, 0.999);
	uint64_t clean = ids ? inq->known.ids.clean : 0;

	wanted = wanted > clean ? wanted - clean : 0;
	return wanted < TRIALS_LEAST ? TRIALS_LEAST : wanted < TRIALS_MOST ? wanted : TRIALS_MOST;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	if (!hunt_crashes(inq))
		return false;
	if (inq->how.close.observer == OBSERVE_NONE) {
		SAY(why, "why:no-agent");
		return false;
	}
	if (inq->how.plain.observer >= OBSERVE_IDS) {
		SAY(why, "why:observed", said_text(observer_names[inq->how.plain.observer]));
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
	return DECIDE_IN(inq, "observers", "observers:effect", said_word(observer),
			 said_number(with->failed), said_number(with->trials),
			 said_number(without->failed), said_number(without->trials), said_real(p),
			 said_word(p >= RATES_DIFFER_P		? "effect:none"
				   : with->failed == 0		? "effect:hides"
				   : with->rate > without->rate ? "effect:more"
								: "effect:less"));
}

/* Until the last arm has failed. */
static int ask(struct inquiry *inq, const char *const *arms, unsigned int count,
	       struct arms_outcome *ret)
{
	return hunt_compare(
		inq,
		&(struct arms_request){ .arms = arms,
					.count = count,
					.trials = trials_of(inq, count == ARMS),
					.target = true,
					.until_arm = count - 1,
					.until_failures = FAILURES_IDS,
					.list = inq->how.short_list[0] ? inq->how.short_list : NULL,
					.program = inq->how.program,
					.env = inq->how.env },
		ret);
}

/* All that was run without, against all that was run with: in turns there may have been few. */
static double odds(const struct inquiry *inq, const struct rate *without, const struct rate *with)
{
	struct rate all =
		rate_wilson(inq->known.target_rate.trials + without->trials,
			    inq->known.target_rate.failed + without->failed, RATE_CONFIDENCE);
	struct rate watched =
		rate_wilson(inq->known.ids.clean + with->trials, with->failed, RATE_CONFIDENCE);

	return attempt_p(&all, &watched);
}

static bool hidden(const struct inquiry *inq, const struct arms_outcome *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];

	/* It must still fail without them: rates drift, with the machine's load for one. */
	return ids->failed == 0 && crash->failed >= FAILURES && odds(inq, crash, ids) < CHANGES_P;
}

/* A crash that came under ids only is taken for the same one, moved; unless the user means just one
 * failure. */
static int follow_stranger(struct inquiry *inq, const char *id)
{
	int r;

	target_deinit(&inq->known.match);
	inq->known.match = (struct target){ .faults = true };
	r = target_set(&inq->known.match, inq->cs, id, inq->err);
	inq->known.match.exact = false;
	return r == 0 ? DECIDE(inq, "ids:moved", said_text(inq->known.match.signature.summary)) : r;
}

/* Of one pointer that leads nowhere, NULL or garbage may be what remains under ids. */
static int ask_wider(struct inquiry *inq, const char *const *arms, struct arms_outcome *seen)
{
	struct spending counted = inq->spending;
	struct arms_outcome wider;
	int r = 0;

	if (inq->request->signature)
		return 0;
	if (seen->stranger[ARM_IDS][0] != '\0')
		r = follow_stranger(inq, seen->stranger[ARM_IDS]);
	else
		inq->known.match.faults = false;
	if (r == 0)
		r = ask(inq, arms, ARMS, &wider);
	/* They are the same trials, read again. */
	inq->spending.ran = counted.ran;
	inq->spending.ran_failed = counted.ran_failed;
	if (r < 0)
		return r;
	if (wider.arms[ARM_IDS].failed > 0)
		*seen = wider;
	else
		inq->known.match.faults = true;
	return 0;
}

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
	static const char *const arms[] = { "disturbed:chaos=all,observe=ids" };
	const struct rate *rate;
	struct arms_outcome seen;
	int r;

	inq->known.ids.unusable = true;
	if (inq->how.plain.settings->chaos != 0)
		return DECIDE_IN(inq, "observers", "ids:chaos-already");
	/* What came before may have taken all of the stage's time. */
	hunt_allow(inq, SHARE_DISTURBED);
	r = ask(inq, arms, 1, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	rate = &seen.arms[ARM_DISTURBED];
	if (rate->failed == 0)
		return DECIDE_IN(inq, "observers", "ids:chaos-clean", said_number(rate->failed),
				 said_number(rate->trials));
	disturb_close(inq);
	inq->known.ids.unusable = false;
	inq->known.ids.trial = seen.example[ARM_DISTURBED];
	inq->known.ids.series = seen.series;
	inq->known.ids.arm = ARM_DISTURBED;
	inq->known.ids.rate = *rate;
	return DECIDE_IN(inq, "observers", "ids:chaos", said_number(rate->failed),
			 said_number(rate->trials));
}

int observers_drop_ids(struct inquiry *inq, const struct rate *seen)
{
	const struct rate *before = &inq->known.target_rate, *beside = &inq->known.beside_ids;
	double p = odds(inq, beside, seen);
	int r;

	inq->known.ids.hide_it = p < CHANGES_P;
	r = DECIDE_IN(inq, "observers", "ids:none-failed", said_number(seen->trials),
		      said_number(before->failed + beside->failed),
		      said_number(before->trials + beside->trials), said_real(p),
		      said_word(inq->known.ids.hide_it ? "ids:dropped" : "ids:unknown"));
	return r == 0 && inq->known.ids.hide_it ? ask_disturbed(inq) : r;
}

static int tell(struct inquiry *inq, const struct arms_outcome *seen)
{
	const struct rate *crash = &seen->arms[ARM_CRASH], *ids = &seen->arms[ARM_IDS];
	double p = odds(inq, crash, ids);
	const char *what;

	inq->known.beside_ids = *crash;
	inq->known.ids.hide_it = hidden(inq, seen);
	if (inq->known.ids.hide_it)
		what = "ids:dropped";
	else if (ids->failed == 0)
		what = "ids:unknown-kept";
	else if (p < CHANGES_P && ids->rate < crash->rate)
		what = "ids:rarer";
	else
		what = "ids:kept";
	return DECIDE(inq, "ids:told", said_number(ids->failed), said_number(ids->trials),
		      said_flag(inq->known.agent_hides_it), said_number(crash->failed),
		      said_number(crash->trials), said_number(inq->known.target_rate.failed),
		      said_number(inq->known.target_rate.trials), said_real(p), said_word(what));
}

static int run(struct inquiry *inq)
{
	const char *const arms[] = { inq->known.agent_hides_it ? "none:observe=none"
							       : "crash:observe=crash",
				     "ids:observe=ids" };
	struct arms_outcome seen;
	int r = ask(inq, arms, ARMS, &seen);

	if (r == 0 && !seen.interrupted && hidden(inq, &seen))
		r = ask_wider(inq, arms, &seen);
	if (r < 0 || seen.interrupted)
		return r;
	/* Its log is kept: what was hit can be read from it. */
	inq->known.ids.trial = seen.example[ARM_IDS];
	inq->known.ids.series = seen.series;
	inq->known.ids.arm = ARM_IDS;
	r = tell(inq, &seen);
	return r == 0 && inq->known.ids.hide_it ? ask_disturbed(inq) : r;
}

EXPERIMENT(ids, .name = "ids", .question = QUESTION_OBSERVER, .kind = EXPERIMENT_RUN, .chance = 0.9,
	   .share = 0.1, .applies = applies, .price = price, .run = run);
