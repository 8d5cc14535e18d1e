/*
 * Who uses what nobody has written yet, where nothing else shows it.
 *
 * First whose: in each trial new blocks of a context all hold garbage or all hold zeros, by the
 * toss of a coin, and the failure goes with the coin of the context whose blocks are used before
 * they are written. Then which of their bytes: the same with a coin for each word of its blocks.
 */
#include "hunt/bench.h"

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

static void tell(struct chase *chase, const struct heap_suspect *suspect, const char *context,
		 const struct stack *allocated, int64_t word)
{
	struct evidence e = evidence_new(EVIDENCE_ODDS, chase->first->trial, true);
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
	VEC_PUSH(&chase->guarded.list, e);
}

static int look_at_words(struct chase *chase, const struct heap_suspect *whose, struct err *err)
{
	struct toss about = { .context = hash_of(whose) };
	struct heap_report report = { 0 };
	const struct heap_suspect *which;
	int r;

	chase_say(chase,
		  "it goes with what new blocks of one context hold: with which of their bytes?");
	r = toss_run(chase, &about, &report, err);
	which = r == 0 ? likeliest(&report) : NULL;
	if (which)
		tell(chase, which, whose->context, &whose->stack,
		     word_of(about.context, hash_of(which)));
	heap_report_deinit(&report);
	return r;
}

int unset_look(struct chase *chase, bool *ret_told, struct err *err)
{
	struct heap_report report = { 0 };
	const struct heap_suspect *whose;
	int r;

	*ret_told = false;
	if (!toss_worth(chase, "new blocks", NULL))
		return 0;
	chase_say(chase, "does it go with what stands in new blocks?");
	r = toss_run(chase, &(struct toss){ 0 }, &report, err);
	whose = r == 0 ? likeliest(&report) : NULL;
	if (whose) {
		tell(chase, whose, whose->context, &whose->stack, -1);
		*ret_told = true;
		if (chase_may_go_on(chase))
			r = look_at_words(chase, whose, err);
	}
	heap_report_deinit(&report);
	return r;
}
