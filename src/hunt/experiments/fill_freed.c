/*
 * Who reads what was freed, where nothing else shows it: no pointer that leads nowhere, no damaged
 * block, only a wrong value that the program itself stumbles over.
 *
 * First whose freed blocks matter. In each trial those of a context are all overwritten or all left
 * alone, by the toss of a coin (studies/heap/chance.h): the failure goes with the coin of the
 * context whose blocks are read. Then who reads them (shut.c).
 */
#include "hunt/inquiry.h"

#include <string.h>

static bool take_suspects(struct bench *bench, const struct heap_report *report)
{
	shut_begin(bench);
	VEC_FOREACH (&report->suspects, suspect)
		if (suspect->p < TOSS_P)
			shut_add(bench, suspect->context);
	return bench->watchset.list.count > 0;
}

/* Why the use has to do with the failure. */
static void tell_odds(struct bench *bench, const struct heap_report *report, size_t from)
{
	for (size_t i = from; i < bench->guards.seen.list.count; i++) {
		struct evidence *e = &bench->guards.seen.list.items[i];

		VEC_FOREACH (&report->suspects, suspect)
			if (!said_anything(&e->note) &&
			    strncmp(e->freed_use->block->key, suspect->context,
				    strlen(suspect->context)) == 0)
				SAY(&e->note, "noted:fill", said_flag(bench_plain_fault(bench)),
				    said_number(suspect->poisoned.failed),
				    said_number(suspect->poisoned.trials),
				    said_number(suspect->clear.failed),
				    said_number(suspect->clear.trials), said_real(suspect->p));
	}
}

static int look(struct bench *bench, const struct heap_report *report, bool *ret_told,
		struct err *err)
{
	size_t from = bench->guards.seen.list.count;
	int r;

	BENCH_SAY(bench, "fill:fence", said_number(bench->watchset.list.count));
	r = shut_run(bench, ret_told, err);
	tell_odds(bench, report, from);
	return r;
}

/* A wrong value and no damage: it was read where nobody has written it yet, or not any more. */
bool fill_applies(const struct bench *bench)
{
	if (bench->told || bench->guards.same_fault)
		return false;
	if (bench->request->start.freed)
		return true;
	return bench_settled(bench) && bench->ret->guarded_trials > 0 &&
	       bench_wants_guards(bench) && bench_is_nobody(bench);
}

static bool applies(struct inquiry *inq, struct said *why)
{
	struct bench *bench = inq->bench;

	/* What the guards hide cannot go with their coin. */
	return fill_applies(bench) &&
	       (bench->ret->guarded_failed > 0 || bench->request->start.freed) &&
	       random_fill_worth(bench, false);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct heap_report report = { 0 };
	bool told = false;
	int r;

	BENCH_SAY(bench, "fill:freed");
	r = random_fill_run(bench, false, &report, inq->err);
	if (r == 0 && bench_may_go_on(bench) && take_suspects(bench, &report))
		r = look(bench, &report, &told, inq->err);
	if (told || bench->guards.findings > 0)
		guards_adopt(bench);
	heap_report_deinit(&report);
	return r;
}

EXPERIMENT(fill_freed, .name = "fill-freed", .question = QUESTION_WHO,
	   .kind = EXPERIMENT_FILL_FREED, .chance = 0.3, .applies = applies, .price = fill_price,
	   .run = run);
