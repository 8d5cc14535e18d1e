/*
 * Who uses what nobody has written yet, where nothing else shows it.
 *
 * In each trial the new blocks of a context hold garbage or zeros, by the toss of a coin, and each
 * of their words by another: the failure goes with the coins of the context whose blocks are used
 * before they are written, and with that of the word.
 */
#include "hunt/inquiry.h"

#define WORD 8

static void tell(struct bench *bench, const struct heap_suspect *suspect)
{
	struct evidence e = evidence_new(EVIDENCE_ODDS, bench->start.first->trial, true);
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
	odds->otherwise = bench_plain_fault(bench);
	VEC_PUSH(&bench->guards.seen.list, e);
}

static bool applies(struct inquiry *inq, struct said *why)
{
	return fill_applies(inq->bench) && random_fill_worth(inq->bench, true);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct heap_report report = { 0 };
	bool told;
	int r;

	BENCH_SAY(bench, "fill:fresh");
	r = random_fill_run(bench, true, &report, inq->err);
	told = r == 0 && report.suspects.count > 0 && report.suspects.items[0].p < TOSS_P;
	if (told)
		tell(bench, &report.suspects.items[0]);
	if (told || bench->guards.findings > 0)
		guards_adopt(bench);
	heap_report_deinit(&report);
	return r;
}

/* After freed blocks, which are the more frequent cause, at the same price. */
const struct experiment_ops experiment_fill_fresh = { .name = "fill-fresh",
						      .question = QUESTION_WHO,
						      .kind = EXPERIMENT_FILL_FRESH,
						      .chance = 0.2,
						      .applies = applies,
						      .price = fill_price,
						      .run = run };
