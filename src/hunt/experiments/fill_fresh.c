/*
 * Who uses what nobody has written yet, where nothing else shows it.
 *
 * In each trial the new blocks of a context hold garbage or zeros, by the toss of a coin, and each
 * of their words by another: the failure goes with the coins of the context whose blocks are used
 * before they are written, and with that of the word.
 */
#include "hunt/inquiry.h"

#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define WORD 8
#define SILENT_TRIALS 16u /* a word whose garbage shows has none in all of them once in 100 */
#define SILENT_TRIALS_MAX 96u
#define SILENT_P 0.001 /* output may change for reasons of its own */

/* bench: NULL where nothing fails, but what it shows is another. */
static void tell(struct evidence_list *ret, const struct heap_suspect *suspect,
		 const struct bench *bench)
{
	struct evidence e =
		evidence_new(EVIDENCE_ODDS, bench ? bench->start.first->trial : 0, bench != NULL);
	struct odds_seen *odds = e.odds;

	odds->home = (struct home){ .kind = HOME_BLOCK,
				    .key = mem_strdup(suspect->context),
				    .offset = suspect->word >= 0 ? suspect->word * WORD : 0,
				    .len = suspect->word >= 0 ? WORD : 0 };
	stack_copy(&odds->allocated, &suspect->stack);
	odds->garbage = suspect->poisoned.trials;
	odds->garbage_failed = suspect->poisoned.failed;
	odds->zeroed = suspect->clear.trials;
	odds->zeroed_failed = suspect->clear.failed;
	odds->p = suspect->p;
	odds->otherwise = bench && bench_plain_fault(bench);
	VEC_PUSH(&ret->list, e);
}

/* The word stands before its context, and says more; of the context one may be sure earlier. */
static const struct heap_suspect *sure_of(const struct heap_report *report, double p)
{
	return VEC_FIND(&report->suspects, suspect, suspect->p < p);
}

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct chase_request *request = inq->bench->request;

	/* What ids hide, and guards, is hidden here, too: guards follow blocks by their ids. */
	return fill_applies(inq->bench) &&
	       !(request->start.without_ids && !request->start.freed &&
		 inq->bench->ret->guarded_failed == 0) &&
	       random_fill_worth(inq->bench, true);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct heap_report report = { 0 };
	const struct heap_suspect *told;
	int r;

	BENCH_SAY(bench, "fill:fresh");
	r = random_fill_run(bench, true, &report, inq->err);
	told = r == 0 ? sure_of(&report, TOSS_P) : NULL;
	if (told)
		tell(&bench->guards.seen, told, bench);
	if (told || bench->guards.findings > 0)
		guards_adopt(bench);
	heap_report_deinit(&report);
	return r;
}

/* After freed blocks, which are the more frequent cause, at the same price. */
EXPERIMENT(fill_fresh, .name = "fill-fresh", .question = QUESTION_WHO,
	   .kind = EXPERIMENT_FILL_FRESH, .chance = 0.2, .applies = applies, .price = fill_price,
	   .run = run);

/* What does not fail, and shows the same each time with guards: whether garbage in new blocks
 * changes what it shows. */
static int silent_run(struct inquiry *inq)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = hit_heap_request(inq, "observe 4:heap\n", &heap);
	AUTO(mem_freep) char *tossed = random_fill_request(&heap, settings, true);
	struct heap_report report = { 0 };
	const struct heap_suspect *told;
	struct experiment_made made;
	struct err why = { 0 };
	int r;

	heap.trials = SILENT_TRIALS;
	heap.trials_max = SILENT_TRIALS_MAX;
	heap.suspect_p = SILENT_P;
	heap.outcome = inq->outcome;
	r = heap_run(inq->cs, &heap, &report, &why);
	inq->ret->interrupted |= report.interrupted;
	if (r < 0) {
		heap_report_deinit(&report);
		return DECIDE(inq, "guards:failed", said_text(why.message));
	}
	heap_experiment(&report, EXPERIMENT_FILL_FRESH, &made);
	told = sure_of(&report, SILENT_P);
	inq->known.damaged |= told != NULL;
	if (told) {
		tell(&inq->evidence, told, NULL);
		made.telling = made.shown = told->poisoned.failed;
	}
	evidence_add_experiment(&inq->evidence, &made);
	hunt_count(inq, report.heap.trials, report.heap.failed, 0);
	r = DECIDE(inq, "fill:silent", said_flag(inq->known.damaged),
		   said_number(report.heap.trials));
	heap_report_deinit(&report);
	return r;
}

static bool silent_applies(struct inquiry *inq, struct said *why)
{
	(void)why;
	return !inq->known.target && !inq->known.fails_guarded && inq->known.fenced &&
	       inq->outcome != 0 && !inq->known.damaged && !inq->known.too_slow;
}

static void silent_price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, SILENT_TRIALS, 2, ret);
}

EXPERIMENT(silent_fill, .name = "fill-fresh", .question = QUESTION_FAILS,
	   .kind = EXPERIMENT_FILL_FRESH, .chance = 0.2, .share = 0.3, .applies = silent_applies,
	   .price = silent_price, .run = silent_run);
