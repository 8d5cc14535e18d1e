/*
 * Who uses what nobody has written yet, where nothing else shows it.
 *
 * First whose: in each trial new blocks of a context all hold garbage or all hold zeros, by the
 * toss of a coin, and the failure goes with the coin of the context whose blocks are used before
 * they are written. Then which of their bytes: the same with a coin for each word of its blocks.
 */
#include "hunt/inquiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/canary.h"

#define WORD 8

static const struct heap_suspect *likeliest(const struct heap_report *report)
{
	return report->suspects.count > 0 && report->suspects.items[0].p < TOSS_P
		       ? &report->suspects.items[0]
		       : NULL;
}

static uint64_t hash_of(const struct heap_suspect *suspect)
{
	return strtoull(suspect->context, NULL, 16);
}

/* The word whose hash it is; -1: none. */
static int64_t word_of(uint64_t context, uint64_t hash)
{
	for (uint64_t word = 0; word < CANARY_FRESH_WORDS; word++)
		if (canary_word_hash(context, word) == hash)
			return (int64_t)word;
	return -1;
}

static void tell(struct bench *bench, const struct heap_suspect *suspect, const char *context,
		 const struct stack *allocated, int64_t word)
{
	struct evidence e = evidence_new(EVIDENCE_ODDS, bench->start.first->trial, true);
	struct odds_seen *odds = e.odds;

	odds->home = (struct home){ .kind = HOME_BLOCK,
				    .key = mem_strdup(context),
				    .offset = word >= 0 ? word * WORD : 0,
				    .len = word >= 0 ? WORD : 0 };
	stack_copy(&odds->allocated, allocated);
	odds->garbage = suspect->poisoned.trials;
	odds->garbage_failed = suspect->poisoned.failed;
	odds->zeroed = suspect->clear.trials;
	odds->zeroed_failed = suspect->clear.failed;
	odds->p = suspect->p;
	odds->otherwise = bench_plain_fault(bench);
	VEC_PUSH(&bench->guards.seen.list, e);
}

static int look_at_words(struct bench *bench, const struct heap_suspect *whose, struct err *err)
{
	struct toss about = { .context = hash_of(whose) };
	struct heap_report report = { 0 };
	const struct heap_suspect *which;
	int r;

	bench_say(bench,
		  "it goes with what new blocks of one context hold: with which of their bytes?");
	r = toss_run(bench, &about, &report, err);
	which = r == 0 ? likeliest(&report) : NULL;
	if (which)
		tell(bench, which, whose->context, &whose->stack,
		     word_of(about.context, hash_of(which)));
	heap_report_deinit(&report);
	return r;
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	return fill_applies(inq->bench) && toss_worth(inq->bench, "new blocks", NULL);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct heap_report report = { 0 };
	const struct heap_suspect *whose;
	int r;

	bench_say(bench, "does it go with what stands in new blocks?");
	r = toss_run(bench, &(struct toss){ 0 }, &report, inq->err);
	whose = r == 0 ? likeliest(&report) : NULL;
	if (whose) {
		tell(bench, whose, whose->context, &whose->stack, -1);
		if (bench_may_go_on(bench))
			r = look_at_words(bench, whose, inq->err);
	}
	if (whose || bench->guards.findings > 0)
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
