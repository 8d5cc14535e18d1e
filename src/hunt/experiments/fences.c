/*
 * Fences where guards saw nothing and nothing crashes: each block ends at a closed page, and a
 * freed block's pages are closed. Reads out of bounds and of freed blocks are seen then, which
 * guards cannot see, in trials that pass as well.
 */
#include "hunt/inquiry.h"

#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define EXPECTED_TRIALS 2u /* more only where not all blocks fit at once */
#define TRIALS_MAX 8u	   /* where the failure is waited for */
#define SLOWER 5.0

static int take(struct inquiry *inq, const struct series_identity *identity,
		struct heap_report *report)
{
	struct evidence_list *evidence = inq->bench ? &inq->bench->ret->evidence : &inq->evidence;
	struct experiment_made made;
	size_t found = 0;
	int r;

	heap_fence_experiment(report, &made);
	r = hit_take(inq, identity, HEAP_ARM_FENCE, report, &made, &found);
	if (r < 0)
		return r;
	/* Whoever asks the kernel whether something is there has no failure to explain. */
	if (inq->known.target && report->fence.nowhere.kind != HOME_UNKNOWN) {
		struct evidence e = evidence_new(EVIDENCE_FAULT_VALUE, report->fence.trial, true);

		e.fault_value->value = report->fence.pointer;
		e.fault_value->source = POINTER_LOADED;
		home_copy(&e.fault_value->home, &report->fence.nowhere);
		VEC_PUSH(&evidence->list, e);
	}
	/* Of a failure it does not show that it comes of this: what stands in freed blocks may
	 * tell. */
	inq->known.damaged |= found > 0 && !inq->known.target && !inq->known.fails_guarded;
	if (found > 0 && inq->bench) {
		inq->bench->told = true;
		refcount_note(inq->bench, report);
		SAY(&inq->bench->ret->outcome, "outcome:fences");
	}
	hunt_count(inq, report->fence_rate.trials + report->exact_rate.trials,
		   report->fence_rate.failed + report->exact_rate.failed, 0);
	if (!report->interrupted)
		r = DECIDE(inq, found > 0 ? "fences:found" : "fences:clean",
			   said_number(report->fence_rate.trials));
	return r;
}

/* Until the failure has come, where it is what is asked about. */
static unsigned int trials_of(const struct inquiry *inq)
{
	unsigned int trials = inq->bench ? guards_trials(inq->bench) : EXPECTED_TRIALS;

	return trials < TRIALS_MAX ? trials : TRIALS_MAX;
}

static int look(struct inquiry *inq)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = hit_heap_request(inq, "observe 5:fence\n", &heap);
	struct heap_report report = { 0 };
	struct err why = { 0 };
	int r;

	inq->known.fenced = true;
	/* No trial with guards alone: only those that come after them. */
	heap.fence.when = HEAP_FENCE_AFTERWARDS;
	heap.fence.trials = trials_of(inq);
	heap.found_enough = PROOFS;
	r = heap_run(inq->cs, &heap, &report, &why);
	inq->ret->interrupted |= report.interrupted;
	r = r < 0 ? DECIDE(inq, "fences:failed", said_text(why.message))
		  : take(inq, &heap.series.identity, &report);
	heap_report_deinit(&report);
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	(void)why;
	return inq->known.guarded && !inq->known.damaged && !inq->known.fenced &&
	       !hunt_crashes(inq) && !inq->known.too_slow &&
	       inq->how.close.observer != OBSERVE_NONE;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, trials_of(inq), SLOWER, ret);
}

EXPERIMENT(fences, .name = "fences", .question = QUESTION_HIT, .kind = EXPERIMENT_FENCES,
	   .chance = 0.2, .share = 0.3, .applies = applies, .price = price, .run = look);

/* What does not fail gets them early, too. */
static bool silent_applies(struct inquiry *inq, struct said *why)
{
	return !inq->known.target && !inq->known.fails_guarded && applies(inq, why);
}

EXPERIMENT(silent_fences, .name = "fences", .question = QUESTION_FAILS, .kind = EXPERIMENT_FENCES,
	   .chance = 0.2, .share = 0.3, .applies = silent_applies, .price = price, .run = look);

bool fences_first(const struct inquiry *inq)
{
	const struct crash_reading *first = inq->bench->start.first;

	return inq->request && !inq->known.fenced && first->has_backtrack &&
	       first->backtrack.steps.count > 0 && first->backtrack.steps.items[0].strayed.id != 0;
}

/* A crash that nobody is accused of: what it read may have been nobody's, which guards do not see.
 */
static bool who_applies(struct inquiry *inq, struct said *why)
{
	return fences_first(inq) || (inq->request && !inq->known.fenced &&
				     fill_applies(inq->bench) && !inq->bench->request->start.freed);
}

EXPERIMENT(who_fences, .name = "fences", .question = QUESTION_WHO, .kind = EXPERIMENT_FENCES,
	   .chance = 0.3, .share = 0.3, .applies = who_applies, .price = price, .run = look);

int fences_look(struct inquiry *inq)
{
	return choice_run(inq, &experiment_who_fences, NULL, look);
}
