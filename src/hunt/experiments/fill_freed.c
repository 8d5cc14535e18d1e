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
			if (!e->note && strncmp(e->freed_use->block->key, suspect->context,
						strlen(suspect->context)) == 0)
				e->note = mem_printf(
					"it failed %sin %llu of %llu trials in which such blocks "
					"were overwritten when they were freed, and in %llu of %llu "
					"in which they were not (p = %.2g)",
					bench_plain_fault(bench) ? "in another way " : "",
					(unsigned long long)suspect->poisoned.failed,
					(unsigned long long)suspect->poisoned.trials,
					(unsigned long long)suspect->clear.failed,
					(unsigned long long)suspect->clear.trials, suspect->p);
	}
}

static int look(struct bench *bench, const struct heap_report *report, bool *ret_told,
		struct err *err)
{
	size_t from = bench->guards.seen.list.count;
	int r;

	bench_say(bench,
		  "it goes with what stands in freed blocks of %zu context%s: shutting "
		  "these, to see who touches them",
		  bench->watchset.list.count, bench->watchset.list.count == 1 ? "" : "s");
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

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	struct bench *bench = inq->bench;

	/* What the guards hide cannot go with their coin. */
	return fill_applies(bench) &&
	       (bench->ret->guarded_failed > 0 || bench->request->start.freed) &&
	       random_fill_worth(bench, "freed blocks", "redhand heap --poison-chance 0.5");
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct heap_report report = { 0 };
	bool told = false;
	int r;

	bench_say(bench, "no damage: does it go with what stands in freed blocks?");
	r = random_fill_run(bench, false, &report, inq->err);
	if (r == 0 && bench_may_go_on(bench) && take_suspects(bench, &report))
		r = look(bench, &report, &told, inq->err);
	if (told || bench->guards.findings > 0)
		guards_adopt(bench);
	heap_report_deinit(&report);
	return r;
}

const struct experiment_ops experiment_fill_freed = { .name = "fill-freed",
						      .question = QUESTION_WHO,
						      .kind = EXPERIMENT_FILL_FREED,
						      .chance = 0.3,
						      .applies = applies,
						      .price = fill_price,
						      .run = run };
