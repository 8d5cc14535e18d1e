/*
 * Guards where nothing crashes: some trials with guards around blocks. Damaged memory need not
 * crash; a wrong result now and then, or nothing at all, is what some programs show.
 */
#include "hunt/inquiry.h"

#include "run/observe.h"
#include "run/settings.h"
#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define HEAP_TRIALS 12u
#define CHANGES_P 0.01
#define SHARE_UNFAILED 0.2 /* of the budget: to look at the heap of what never failed */

int hit_take(struct inquiry *inq, const struct series_identity *identity, unsigned int arm,
	     struct heap_report *report, struct experiment_made *made, size_t *ret_damage)
{
	struct evidence_list *to = inq->bench ? &inq->bench->ret->evidence : &inq->evidence;
	struct rate *rate = arm == HEAP_ARM_FENCE ? &report->fence_rate : &report->heap;
	struct evidence_list list = { 0 };
	int r = bystanders_discount(&inq->known.others, &inq->known.match, inq->cs, identity, arm,
				    rate, made, inq->err);

	if (r < 0)
		return r;
	evidence_add_experiment(to, made);
	heap_evidence(report, &list);
	r = bystanders_drop(&inq->known.others, &inq->known.match, inq->cs, identity, &list,
			    inq->err);
	VEC_FOREACH (&list.list, e) {
		*ret_damage += !evidence_of_crash(e);
		VEC_PUSH(&to->list, *e);
	}
	VEC_DEINIT(&list.list);
	return r;
}

char *hit_heap_request(const struct inquiry *inq, const char *observe, struct heap_request *ret)
{
	char *settings = series_settings_with(inq->how.close_settings, "observe", observe);

	*ret = (struct heap_request){ .series = hunt_series(inq, &inq->how.close),
				      .seed = inq->request->seed };
	ret->series.identity.command = "heap";
	ret->series.identity.settings = settings;
	observe_heap_defaults(ret->seed, &ret->plan);
	return settings;
}

/* Damaged memory need not crash: a wrong result now and then is all that some programs show. */
int hit_look_for_damage(struct inquiry *inq)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = hit_heap_request(inq, "observe 4:heap\n", &heap);
	struct heap_report report = { 0 };
	struct err why = { 0 };
	struct experiment_made made;
	size_t damage = 0;
	int r;

	heap.trials = (unsigned int)hunt_trials(inq, HEAP_TRIALS);
	r = heap_run(inq->cs, &heap, &report, &why);
	inq->ret->interrupted |= report.interrupted;
	if (r < 0) {
		heap_report_deinit(&report);
		return DECIDE(inq, "guards:failed", said_text(why.message));
	}
	inq->known.guarded = true;
	inq->outcome = report.outcome;
	inq->known.fails_guarded =
		!inq->known.target && report.findings.count == 0 && report.heap.failed > 0 &&
		attempt_p(&(struct rate){ .trials = inq->spending.ran }, &report.heap) < CHANGES_P;
	if (report.heap.trials > 0)
		inq->known.guarded_s = report.seconds / (double)report.heap.trials;
	heap_experiment(&report, EXPERIMENT_GUARDS, &made);
	r = hit_take(inq, &heap.series.identity, HEAP_ARM_HEAP, &report, &made, &damage);
	hunt_count(inq, report.heap.trials, report.heap.failed, 0);
	if (r == 0)
		r = observers_tell_effect(inq, "with:guards", hunt_rate_of_all(inq), &report.heap);
	if (r == 0 && report.findings.count > 0 && damage == 0)
		r = DECIDE(inq, "guards:elsewhere");
	else if (r == 0 && report.findings.count > 0)
		r = DECIDE(inq, "guards:damage", said_number(report.findings.count),
			   said_number(report.heap.trials));
	else if (r == 0 && !report.interrupted)
		r = DECIDE(inq, "guards:clean", said_number(report.heap.trials),
			   said_number(report.heap.failed));
	heap_report_deinit(&report);
	return r;
}

/* The record of an experiment is no damage, nor is what a crash says. */
static bool any_damage(const struct inquiry *inq)
{
	return VEC_ANY(&inq->evidence.list, e,
		       e->kind != EVIDENCE_EXPERIMENT && !evidence_of_crash(e));
}

static int read_plain(struct inquiry *inq)
{
	bool look = inq->how.close.observer != OBSERVE_NONE &&
		    inq->known.target->signature.kind != FAILURE_TIMEOUT;
	int r = DECIDE(inq, "guards:no-fault", said_flag(inq->known.target->always),
		       said_text(inq->known.target->signature.summary), said_flag(look));

	if (r == 0 && look)
		r = hit_look_for_damage(inq);
	inq->known.damaged = any_damage(inq);
	return r;
}

/* Damage need not show itself: what nobody reads again, or what is written over in time. */
static int look_at_heap(struct inquiry *inq)
{
	int r = DECIDE(inq, "guards:no-failure");

	if (r == 0) {
		hunt_allow(inq, SHARE_UNFAILED);
		r = hit_look_for_damage(inq);
	}
	inq->known.damaged = any_damage(inq);
	hunt_allow(inq, 1);
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	if (inq->known.guarded || hunt_crashes(inq) || inq->known.summary.rate.trials == 0 ||
	    inq->known.too_slow)
		return false;
	if (inq->known.target || inq->how.close.observer != OBSERVE_NONE)
		return true;
	SAY(why, "why:no-agent-silent");
	return false;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, HEAP_TRIALS, 2, ret);
}

static int run(struct inquiry *inq)
{
	inq->asking = questions[QUESTION_HIT].name;
	return inq->known.target ? read_plain(inq) : look_at_heap(inq);
}

EXPERIMENT(guards_first, .name = "guards", .question = QUESTION_HIT, .kind = EXPERIMENT_GUARDS,
	   .chance = 0.3, .applies = applies, .price = price, .run = run);

/* A program that does not fail gets guards early: what they show in a dozen trials, hundreds as it
 * is would not. */
static bool silent_applies(struct inquiry *inq, struct said *why)
{
	return !inq->known.target && !inq->known.guarded && inq->known.summary.rate.trials > 0 &&
	       !inq->known.too_slow && inq->how.close.observer != OBSERVE_NONE;
}

EXPERIMENT(silent, .name = "guards", .question = QUESTION_FAILS, .kind = EXPERIMENT_GUARDS,
	   .chance = 0.3, .applies = silent_applies, .price = price, .run = run);
