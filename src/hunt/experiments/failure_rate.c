/*
 * Does it fail? How often, in which ways, and which of them is hunted.
 *
 * Failing trials are what a hunt has least of. So it begins with allocation ids on: the first
 * trials that crash say at once what was hit, and the chase goes on from them (first-failure). Only
 * where it does not crash so, it is run as it is until failures can be told apart (rate), or so
 * many clean runs are there that guards are worth more (silent), and then that a common failure is
 * excluded (rare). How often it fails exactly is asked last, when it is cheap (how-often).
 */
#include "hunt/inquiry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/now.h"
#include "run/settings.h"
#include "run/stored.h"
#include "search/stats/rate.h"
#include "studies/series/series_findings.h"

#define FAILURES 8u
#define FAILURES_SLOW 4u /* where so many would take more than this part of the budget: */
#define SHARE_SLOW 0.15
#define SHARE_FEW 0.3 /* the same, where the budget is in trials */
#define TRIALS_FIRST 12u
/* With ids on, at most so many; of trials that take long more: nothing else leads to a verdict. */
#define LONG_S 2.0
#define TRIALS_FIRST_LONG 30u
#define FAILURES_FIRST 2u /* where they are cheap: do they fail in the same way? */
#define WAITS_S 0.5	  /* trials that take so long at least may do with more slots… */
#define BUSY_LITTLE 0.25  /* …if they keep a core busy for no more than this part of it */
#define SLOTS_MOST 4u	  /* for each slot that there was */
#define TRIALS_SILENT 20u /* clean ones, until guards are asked */
#define TRIALS_ALWAYS 40u
#define TRIALS 60u
/* When none failed in TRIALS: up to so many, in at most this part of the budget. */
#define TRIALS_RARE 400u
#define SHARE_RARE 0.1

/* Adds to the series until there are so many failures, or trials in all. */
enum measuring {
	MEASURE_FRESH = 1 << 0, /* forget earlier trials */
	MEASURE_ANY = 1 << 1,	/* failures that every run shows count, too */
	MEASURE_SPARING = 1 << 2,
};

static int measure(struct inquiry *inq, uint64_t trials, uint64_t failures, unsigned int flags)
{
	const struct hunt_request *request = inq->request;
	struct repro_request repro = { .series = hunt_series(inq, &inq->how.plain),
				       .trials = trials,
				       .failures = failures,
				       .signature = request->signature,
				       .intermittent = !(flags & MEASURE_ANY),
				       .sparing = flags & MEASURE_SPARING };
	struct repro_result result = { 0 };
	int r;

	repro.series.program = request->program;
	repro.series.slot_env = request->slot_env;
	repro.series.fresh = flags & MEASURE_FRESH;
	r = repro_run(inq->cs, &repro, &result, inq->err);
	if (r < 0)
		return r;
	inq->ret->interrupted |= result.interrupted;
	series_summary_deinit(&inq->known.summary);
	inq->known.summary = result.summary;
	return 0;
}

/* The crash that comes and goes most often; else what comes and goes; else what always crashes. */
static int weight(const struct signature_summary *s)
{
	return (s->signature.kind == FAILURE_SIGNAL ? 2 : 0) + (s->always ? 0 : 4);
}

/* What later trials must show to be the same failure: in that test, or without tests in that
 * function. What they show besides is another failure's. */
static int set_match(struct inquiry *inq)
{
	uint64_t failed = 0;
	int r;

	target_deinit(&inq->known.match);
	bystanders_deinit(&inq->known.others);
	inq->known.match = (struct target){ .faults = true };
	inq->known.others = (struct bystanders){ 0 };
	if (!inq->known.target)
		return 0;
	r = target_set(&inq->known.match, inq->cs, inq->known.target->signature.id, inq->err);
	inq->known.match.exact = inq->request->signature != NULL;
	target_take_family(&inq->known.match, family_of(&inq->known.summary.families,
							inq->known.target->signature.id));
	VEC_FOREACH (&inq->known.summary.signatures.list, s) {
		failed += target_is(&inq->known.match, &s->signature) ? s->rate.failed : 0;
		/* A failed test of every run is no crash's rival. */
		if (s->signature.kind == FAILURE_SIGNAL)
			bystanders_note(&inq->known.others, &inq->known.match, &s->signature);
		else if (s->always)
			bystanders_note_always(&inq->known.others, &inq->known.match,
					       &s->signature);
	}
	if (failed > inq->known.summary.rate.trials)
		failed = inq->known.summary.rate.trials;
	inq->known.target_rate =
		rate_wilson(inq->known.summary.rate.trials, failed, RATE_CONFIDENCE);
	return r;
}

/* What was seen instead stands in the sentence. */
static int refuse(struct inquiry *inq, const char *wanted)
{
	AUTO(signature_deinit) struct signature known = { 0 };

	if (case_signature(inq->cs, wanted, &known, inq->err) == 0)
		(void)err_set(inq->err, -ENOENT, "it did not come");
	(void)err_set_prefix(inq->err, "none of %" PRIu64 " trials failed with the signature '%s'",
			     inq->known.summary.rate.trials, wanted);
	return err_set_remedy(inq->err, "without --signature the most frequent crash is hunted");
}

static int choose_target(struct inquiry *inq)
{
	const char *wanted = inq->request->signature;
	int r;

	inq->known.target = NULL;
	VEC_FOREACH (&inq->known.summary.signatures.list, s) {
		if (wanted) {
			if (strcmp(s->signature.id, wanted) == 0)
				inq->known.target = s;
			continue;
		}
		if (!inq->known.target || weight(s) > weight(inq->known.target) ||
		    (weight(s) == weight(inq->known.target) &&
		     s->rate.failed > inq->known.target->rate.failed))
			inq->known.target = s;
	}
	r = set_match(inq);
	if (r < 0)
		return r;
	/* One bug shows itself in many ways: all that comes and goes is its rate, unless the user
	 * means one of them. */
	inq->known.rate = inq->known.target && (wanted || inq->known.target->always)
				  ? inq->known.target->rate
				  : inq->known.summary.rate;
	if (!wanted || inq->known.target || inq->ret->interrupted || inq->spending.budget.spent)
		return 0;
	return refuse(inq, wanted);
}

static int tell_slots(struct inquiry *inq)
{
	const struct series_summary *s = &inq->known.summary;
	const struct slot_summary *odd;

	if (s->odd_slot < 0)
		return 0;
	odd = &s->slots.items[s->odd_slot];
	return DECIDE(inq, "rate:slot", said_number(odd->slot), said_number(odd->rate.failed),
		      said_number(odd->rate.trials), said_number(s->rate.failed - odd->rate.failed),
		      said_number(s->rate.trials - odd->rate.trials), said_real(odd->p));
}

/* What nobody but the budget calls a hang is no failure when every run shows it. */
static bool is_too_slow(const struct inquiry *inq)
{
	return inq->request->hangs_s > 0 && inq->known.target && inq->known.target->always &&
	       inq->known.target->signature.kind == FAILURE_TIMEOUT;
}

static int tell_workers(struct inquiry *inq)
{
	const struct framework *f = inq->request->framework;

	if (!f || !f->ops->shares_out || !f->ops->shares_out(inq->request->program))
		return 0;
	return DECIDE(inq, "rate:workers");
}

static int tell(struct inquiry *inq)
{
	const struct series_summary *s = &inq->known.summary;
	int r = choose_target(inq);

	if (r < 0)
		return r;
	if (is_too_slow(inq)) {
		inq->known.too_slow = true;
		inq->known.target = NULL;
		return DECIDE(inq, "rate:too-slow", said_number(s->rate.trials),
			      said_real(inq->request->hangs_s));
	}
	inq->ret->failed |= s->failed_any > 0;
	if (s->rate.trials == 0)
		return DECIDE(inq, "rate:none-ended");
	if (!inq->known.target)
		return DECIDE(inq, "rate:clean", said_number(s->rate.trials),
			      said_real(s->clean_bound * 100));
	r = DECIDE(inq, "rate:failed", said_number(inq->known.rate.failed),
		   said_number(s->rate.trials), said_flag(inq->request->signature),
		   said_flag(s->failed_any > inq->known.rate.failed),
		   said_text(inq->known.target->signature.id),
		   inq->known.target_rate.failed < inq->known.rate.failed
			   ? said_number(inq->known.target_rate.failed)
			   : said_none(),
		   said_word(hunt_always(inq) ? "shows:always"
			     : inq->known.target->rate.failed == s->rate.trials
				     ? "shows:so-far"
				     : "shows:sometimes"),
		   said_text(inq->known.target->signature.summary));
	if (r == 0)
		r = tell_workers(inq);
	return r == 0 ? tell_slots(inq) : r;
}

/* So many in all, or as many as the budget has. */
static uint64_t most_trials(const struct inquiry *inq, uint64_t wanted)
{
	uint64_t have = inq->known.summary.rate.trials;

	return wanted > have ? have + hunt_trials(inq, wanted - have) : have;
}

static bool fails_always(const struct inquiry *inq)
{
	return inq->known.summary.failed_any > 0 && !inq->known.summary.intermittent;
}

/* Has it failed as the user means it? */
static bool shown(const struct inquiry *inq)
{
	return VEC_ANY(&inq->known.summary.signatures.list, s,
		       !inq->request->signature ||
			       strcmp(s->signature.id, inq->request->signature) == 0);
}

static bool always_crashes(const struct inquiry *inq)
{
	return VEC_ANY(&inq->known.summary.signatures.list, s,
		       s->always && s->signature.kind == FAILURE_SIGNAL);
}

static bool may_go_on(const struct inquiry *inq)
{
	return !hunt_over(inq) && !inq->spending.budget.spent;
}

/* Of a slow program the first trials may have shown what there is to see: later stages need the
 * time. */
static uint64_t failures_wanted(const struct inquiry *inq)
{
	double rate = inq->known.summary.rate.rate;

	/* The search for a shorter list will see many more. */
	if (inq->request->framework)
		return FAILURES_SLOW;
	if (rate > 0 && inq->request->budget_trials > 0 &&
	    FAILURES / rate > SHARE_FEW * (double)inq->request->budget_trials)
		return FAILURES_SLOW;
	if (!(rate > 0) || inq->request->budget_s <= 0 ||
	    hunt_takes(inq, (uint64_t)(FAILURES / rate), inq->how.jobs) <=
		    SHARE_SLOW * inq->request->budget_s)
		return FAILURES;
	return FAILURES_SLOW;
}

static uint64_t crashes(const struct inquiry *inq)
{
	uint64_t count = 0;

	VEC_FOREACH (&inq->known.summary.signatures.list, s)
		count += signature_crashes(&s->signature) ? s->rate.failed : 0;
	return count;
}

/* Until so many have crashed. A failure that is no crash does not say what was hit. */
static int measure_crashes(struct inquiry *inq, uint64_t trials, uint64_t wanted,
			   unsigned int flags)
{
	int r = 0;

	if (inq->known.summary.rate.trials > 0 && crashes(inq) >= wanted)
		return 0;
	do {
		uint64_t seen = inq->known.summary.failed_any;

		/* What fails without a crash says nothing: then as many as there is room for, and
		 * side by side, which may be what it takes. */
		r = measure(inq, trials, seen + 1,
			    MEASURE_ANY | flags | (crashes(inq) == seen ? MEASURE_SPARING : 0));
		flags = 0;
		/* Of two that ended together both count. */
		if (inq->known.summary.failed_any == seen)
			break;
	} while (r == 0 && may_go_on(inq) && crashes(inq) < wanted &&
		 inq->known.summary.rate.trials < trials);
	return r;
}

/* Of crashes that are all alike a few do: how often it fails exactly is asked last. */
static bool crashes_tell(const struct inquiry *inq)
{
	return !inq->request->signature && crashes(inq) >= FAILURES_FIRST &&
	       inq->known.summary.families.list.count == 1;
}

static int measure_on(struct inquiry *inq, uint64_t trials)
{
	int r = 0;

	if (!shown(inq))
		r = measure(inq, trials, 1, MEASURE_ANY);
	if (r == 0 && may_go_on(inq) && crashes(inq) > 0)
		r = measure_crashes(inq, trials, FAILURES_FIRST, 0);
	if (r < 0 || !may_go_on(inq) || crashes_tell(inq))
		return r;
	return measure(inq, trials, failures_wanted(inq), 0);
}

/* What crashes every time needs no more than a few. What only fails every time may hide a crash
 * that comes now and then, which is what a hunt is for. */
static bool few_tell(const struct inquiry *inq)
{
	return crashes_tell(inq) || (fails_always(inq) && always_crashes(inq) && shown(inq));
}

static bool is_long(const struct inquiry *inq)
{
	return inq->known.summary.use.wall_mean_s >= LONG_S;
}

/* First a few. Of long ones there were more with ids on: no others are waited for. */
static int measure_in_steps(struct inquiry *inq, uint64_t earlier)
{
	uint64_t first = earlier > TRIALS_FIRST ? earlier : TRIALS_FIRST;
	uint64_t trials = earlier + hunt_trials(inq, first - earlier), always;
	int r = inq->request->signature
			? measure(inq, trials, failures_wanted(inq), inq->request->fresh)
			: measure_crashes(inq, trials, FAILURES_FIRST, inq->request->fresh);

	if (r < 0 || !may_go_on(inq) || few_tell(inq))
		return r;
	/* Guards are worth more than clean runs, where they can be had. */
	if (!shown(inq) && inq->how.close.observer != OBSERVE_NONE && !inq->known.guarded) {
		if (!is_long(inq))
			r = measure(inq, most_trials(inq, TRIALS_SILENT), FAILURES, 0);
		if (r < 0 || !may_go_on(inq) || !shown(inq))
			return r;
	}
	/* Those with ids were no others, where every one has failed. */
	always = TRIALS_ALWAYS -
		 (inq->spending.ran < TRIALS_FIRST ? inq->spending.ran : TRIALS_FIRST);
	return measure_on(inq, most_trials(inq, fails_always(inq) ? always : TRIALS));
}

/* None failed: on until a common failure is excluded. */
static int measure_rare(struct inquiry *inq)
{
	double rare_end;
	int r = measure(inq, most_trials(inq, TRIALS), failures_wanted(inq), 0);

	if (r < 0 || !may_go_on(inq) || shown(inq))
		return r;
	rare_end = clock_s() + SHARE_RARE * inq->request->budget_s;
	if (inq->spending.budget.deadline_s > rare_end)
		inq->spending.budget.deadline_s = rare_end;
	return measure(inq, most_trials(inq, TRIALS_RARE), FAILURES, 0);
}

/* Trials of the series that there are; of a hunt that goes on, what was run before is spent. */
static int begin_series(struct inquiry *inq, struct series_found *found, uint64_t *ret_earlier)
{
	struct series_progress progress = { 0 };
	int r = case_series(inq->cs, &inq->how.plain.identity, 0, found, inq->err);

	if (r == 0 && !inq->request->fresh)
		r = case_series_progress(inq->cs, found->id, &progress, inq->err);
	hunt_count(inq, 0, 0, progress.trials);
	*ret_earlier = progress.trials;
	return r;
}

/* What every run shows is no failing trial that anybody had to wait for, where there are others. */
static uint64_t failures(const struct inquiry *inq)
{
	const struct series_summary *s = &inq->known.summary;

	return s->intermittent ? s->rate.failed : s->failed_any;
}

/* Trials of this series from now on are counted once. */
static void count_new(struct inquiry *inq, uint64_t trials, uint64_t failed)
{
	uint64_t now = failures(inq);

	hunt_count(inq, inq->known.summary.rate.trials - trials, now > failed ? now - failed : 0,
		   0);
	inq->known.trial_s = inq->known.summary.use.wall_mean_s;
}

int rate_measure(struct inquiry *inq)
{
	struct series_found found;
	uint64_t earlier = 0;
	int r = begin_series(inq, &found, &earlier);

	if (r == 0)
		r = measure_in_steps(inq, earlier);
	if (r == 0)
		count_new(inq, 0, 0);
	/* It has failed before, and that is what is hunted; but for trials in each other's way. */
	if (r == 0 && !shown(inq) && inq->known.ids.failed.value != 0 && inq->known.clashed == 0)
		return rate_take(inq, inq->known.ids.failed);
	return r == 0 ? tell(inq) : r;
}

int rate_take(struct inquiry *inq, struct series_id series)
{
	AUTO(tally_deinit) struct tally tally = { 0 };
	struct series_summary seen = { 0 };
	uint64_t clean = inq->known.summary.rate.trials;
	int r = tally_load(&tally, inq->cs, series, inq->err);

	if (r == 0)
		r = findings_summarise(
			&(struct findings_source){
				.tally = &tally,
				.cs = inq->cs,
				.series = series,
				.readings = inq->how.plain.settings->shared.readings },
			&seen, inq->err);
	if (r < 0)
		return r;
	seen.rate = rate_wilson(seen.rate.trials + clean, seen.rate.failed, RATE_CONFIDENCE);
	VEC_FOREACH (&seen.signatures.list, s)
		s->rate = rate_wilson(seen.rate.trials, s->rate.failed, RATE_CONFIDENCE);
	series_summary_deinit(&inq->known.summary);
	inq->known.summary = seen;
	return tell(inq);
}

/* Of the time that a trial takes, the part in which it keeps a core busy. */
static double busy(const struct inquiry *inq)
{
	const struct resource_use *use = &inq->known.summary.use;

	return use->wall_mean_s > 0 ? (use->user_mean_s + use->system_mean_s) / use->wall_mean_s
				    : 1;
}

static unsigned int slots_with_room(const struct inquiry *inq)
{
	double most = SLOTS_MOST * inq->how.jobs, wanted = inq->how.jobs / busy(inq);

	return (unsigned int)(wanted < most ? wanted : most);
}

/* The first trials tell. A failing one among them is worth more than slots: then they stay. */
static int measure_waiting(struct inquiry *inq, struct series_found *found, uint64_t *earlier)
{
	AUTO(mem_freep) char *line = NULL;
	uint64_t most = *earlier > inq->how.jobs ? *earlier : inq->how.jobs;
	int r = 0;

	if (!inq->request->jobs_free)
		return 0;
	r = measure(inq, *earlier + hunt_trials(inq, most - *earlier), 1,
		    MEASURE_ANY | MEASURE_SPARING | (inq->request->fresh ? MEASURE_FRESH : 0));
	if (r < 0 || !may_go_on(inq) || shown(inq) || busy(inq) > BUSY_LITTLE ||
	    inq->known.summary.use.wall_mean_s < WAITS_S)
		return r;
	r = DECIDE(inq, "rate:slots", said_real(inq->known.summary.use.wall_mean_s),
		   said_real(busy(inq) * 100), said_number(slots_with_room(inq)),
		   said_number(inq->how.jobs));
	hunt_count(inq, inq->known.summary.rate.trials, 0, 0);
	inq->how.jobs = slots_with_room(inq);
	line = mem_printf("jobs %u\n", inq->how.jobs);
	settings_adopt(inq, "jobs", line);
	return r == 0 ? begin_series(inq, found, earlier) : r;
}

/* One of the crashes says where its bad value came from: the next one is worth more watched. */
static bool leads_back(const struct inquiry *inq)
{
	VEC_FOREACH (&inq->known.summary.signatures.list, s) {
		AUTO(reading_closep) struct reading *reading = NULL;

		if (!signature_crashes(&s->signature))
			continue;
		reading = readings_open(inq->how.plain.settings->shared.readings, inq->cs, s->trial,
					s->signature.signal);
		if (reading_backtrack(reading, THROUGH_OBJECTS)->has_backtrack)
			return true;
	}
	return false;
}

/* Of a trial that takes long one crash must do, and of one that leads back. */
static bool one_does(const struct inquiry *inq)
{
	return crashes(inq) == 0 || is_long(inq) || leads_back(inq);
}

/* Of a command that has crashed in every run so far one crash must do, too. Else two tell whether
 * it always crashes in the same way; if not, as many as it takes. */
static int measure_first(struct inquiry *inq, uint64_t earlier)
{
	uint64_t most = earlier > TRIALS_FIRST ? earlier : TRIALS_FIRST;
	bool fresh = inq->request->fresh && inq->known.summary.rate.trials == 0;
	int r = measure_crashes(inq, earlier + hunt_trials(inq, most - earlier), 1,
				fresh ? MEASURE_FRESH : 0);

	if (r == 0 && may_go_on(inq) && crashes(inq) == 0 && is_long(inq))
		r = measure_crashes(inq, most_trials(inq, TRIALS_FIRST_LONG), 1, 0);
	if (r < 0 || !may_go_on(inq) || one_does(inq))
		return r;
	if (crashes(inq) < inq->known.summary.rate.trials)
		r = measure_crashes(inq, most_trials(inq, TRIALS_FIRST), FAILURES_FIRST, 0);
	if (r == 0 && may_go_on(inq) && inq->known.summary.families.list.count > 1)
		r = measure(inq, most_trials(inq, TRIALS), FAILURES, 0);
	return r;
}

static void look_with(struct inquiry *inq, enum observer observer, const char *line)
{
	char *changed = series_settings_with(inq->how.plain_settings, "observe", line);

	mem_free(inq->how.plain_settings);
	inq->how.plain_settings = changed;
	inq->how.plain.identity.settings = changed;
	inq->how.plain.observer = observer;
}

static int adopt_ids(struct inquiry *inq, const struct series_found *found)
{
	int r = tell(inq);

	if (r < 0 || !inq->known.target)
		return r;
	inq->known.ids.series = found->id;
	inq->known.ids.arm = 0;
	inq->known.ids.trial = inq->known.target->trial;
	return 0;
}

/* Without a crash the trials were not for nothing: none failed, or in another way. */
static int give_up_ids(struct inquiry *inq, struct series_id series)
{
	const struct series_summary *s = &inq->known.summary;
	int r = DECIDE(inq, "rate:ids-clean", said_number(s->rate.trials));

	inq->ret->failed |= s->failed_any > 0;
	if (shown(inq))
		inq->known.ids.failed = series;
	else
		inq->known.ids.clean = s->rate.trials;
	if (hunt_over(inq))
		return r;
	look_with(inq, OBSERVE_CRASH, "observe 5:crash\n");
	series_summary_deinit(&inq->known.summary);
	inq->known.summary = (struct series_summary){ 0 };
	return r;
}

static bool first_applies(struct inquiry *inq, struct said *why)
{
	return inq->how.plain.observer == OBSERVE_CRASH &&
	       inq->how.close.observer != OBSERVE_NONE && !inq->request->signature;
}

static void first_price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, FAILURES_FIRST, 1.2, ret);
}

static int first_run(struct inquiry *inq)
{
	struct series_found found;
	uint64_t earlier = 0;
	int r;

	look_with(inq, OBSERVE_IDS, "observe 3:ids\n");
	r = begin_series(inq, &found, &earlier);
	if (r == 0)
		r = measure_waiting(inq, &found, &earlier);
	if (r == 0)
		r = measure_first(inq, earlier);
	if (r < 0)
		return r;
	count_new(inq, 0, 0);
	/* Failing trials that took long are kept: there is no time for as many again. */
	if (crashes(inq) > 0 || inq->ret->interrupted ||
	    (shown(inq) && (is_long(inq) || !may_go_on(inq))))
		return adopt_ids(inq, &found);
	return give_up_ids(inq, found.id);
}

EXPERIMENT(first_failure, .name = "first-failure", .question = QUESTION_FAILS,
	   .kind = EXPERIMENT_RUN, .chance = 1, .applies = first_applies, .price = first_price,
	   .run = first_run);

/* One more failure tells whether the first is the rule, and a watch changes how it dies; if it is
 * not, some more are counted. */
static int measure_again(struct inquiry *inq)
{
	AUTO(mem_freep) char *first = mem_strdup(inq->known.target->signature.id);
	uint64_t most = most_trials(inq, TRIALS);
	uint64_t trials = inq->known.summary.rate.trials, failed = failures(inq);
	int r = measure(inq, most, FAILURES_FIRST, MEASURE_ANY | MEASURE_SPARING);
	bool again = false;

	VEC_FOREACH (&inq->known.summary.signatures.list, s)
		again |= strcmp(s->signature.id, first) == 0 && s->rate.failed >= FAILURES_FIRST;
	if (r == 0 && !again && may_go_on(inq))
		r = measure(inq, most, FAILURES_SLOW, MEASURE_ANY);
	if (r == 0)
		count_new(inq, trials, failed);
	return r;
}

int rate_again(struct inquiry *inq)
{
	struct series_found ids = { .id = inq->known.ids.series };
	struct price price;
	int r;

	inq->asking = questions[QUESTION_FAILS].name;
	price_of_failures(inq, 1, 1.2, &price);
	r = choice_run(inq, &experiment_first_failure, &price, measure_again);
	if (r == 0)
		r = adopt_ids(inq, &ids);
	inq->asking = questions[QUESTION_WHO].name;
	return r;
}

static bool rate_applies(struct inquiry *inq, struct said *why)
{
	return !inq->known.target && !inq->known.too_slow;
}

/* After the first failures, where those can be had. */
static void rate_price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, TRIALS, 1, ret);
}

EXPERIMENT(rate, .name = "rate", .question = QUESTION_FAILS, .kind = EXPERIMENT_RUN, .chance = 0.9,
	   .applies = rate_applies, .price = rate_price, .run = rate_measure);

static bool rare_applies(struct inquiry *inq, struct said *why)
{
	return !inq->known.target && !inq->known.too_slow && !inq->known.damaged &&
	       !inq->known.fails_guarded && inq->known.summary.rate.trials > 0 &&
	       inq->known.summary.rate.trials < TRIALS_RARE &&
	       (inq->known.guarded || inq->how.close.observer == OBSERVE_NONE);
}

static void rare_price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, TRIALS_RARE, 1, ret);
}

static int rare_run(struct inquiry *inq)
{
	uint64_t trials = inq->known.summary.rate.trials, failed = failures(inq);
	int r;

	inq->asking = questions[QUESTION_FAILS].name;
	r = measure_rare(inq);
	if (r < 0)
		return r;
	count_new(inq, trials, failed);
	return tell(inq);
}

EXPERIMENT(rare, .name = "rare", .question = QUESTION_FAILS, .kind = EXPERIMENT_RUN, .chance = 0.1,
	   .applies = rare_applies, .price = rare_price, .run = rare_run);

static bool often_applies(struct inquiry *inq, struct said *why)
{
	bool ids = inq->known.ids.arm == 0 && inq->known.ids.series.value != 0 &&
		   inq->how.plain.observer == OBSERVE_IDS;

	return inq->known.target && (ids || inq->how.plain.observer == OBSERVE_CRASH) &&
	       hunt_crashes(inq) && inq->how.short_list[0] == '\0' &&
	       inq->known.summary.rate.failed < FAILURES && inq->known.summary.rate.trials < TRIALS;
}

/* At the rate of all that was run: the first trials alone may have been one that failed. */
static void often_price(const struct inquiry *inq, struct price *ret)
{
	double wanted = (double)(FAILURES - inq->known.summary.rate.failed);
	double each = (double)inq->spending.ran /
		      (double)(inq->spending.ran_failed > 0 ? inq->spending.ran_failed : 1);

	price_of_trials(inq, wanted * each, 1, ret);
	ret->failures = wanted;
}

/* The failure that was hunted stays the one, whatever else has shown itself meanwhile. */
static int often_run(struct inquiry *inq)
{
	AUTO(mem_freep) char *hunted = mem_strdup(inq->known.target->signature.id);
	uint64_t trials = inq->known.summary.rate.trials, failed = failures(inq);
	/* What plain faults rest on is that every run fails; of a store that was caught, as many
	 * failures do as of what comes and goes. */
	int r = measure(inq, most_trials(inq, TRIALS_FIRST), FAILURES,
			inquiry_firm(inq) ? MEASURE_ANY : 0);

	if (r == 0 && may_go_on(inq) && !fails_always(inq))
		r = measure(inq, most_trials(inq, TRIALS), FAILURES, 0);
	if (r < 0)
		return r;
	count_new(inq, trials, failed);
	inq->known.target = NULL;
	VEC_FOREACH (&inq->known.summary.signatures.list, s)
		if (strcmp(s->signature.id, hunted) == 0)
			inq->known.target = s;
	r = set_match(inq);
	return r == 0 ? DECIDE_IN(inq, "rate", "rate:all",
				  said_number(inq->known.summary.failed_any),
				  said_number(inq->known.summary.rate.trials))
		      : r;
}

EXPERIMENT(how_often, .name = "how-often", .question = QUESTION_VERDICT, .kind = EXPERIMENT_RUN,
	   .chance = 0.5, .share = 0.03, .applies = often_applies, .price = often_price,
	   .run = often_run);
