/*
 * Who reads what was freed, where it is known whose blocks are read: blocks of that context get
 * pages to themselves, which are shut when they are freed, and the first to touch one dies there.
 *
 * Worth it when what stood in a freed block came out of the program, in its output or in a register
 * (read/poison_found.h), and nothing says who had read it. fill_freed.c asks the same of contexts
 * that it suspects.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "judge/judge.h"

#define CONTEXTS 4u
#define TRIALS_EACH 6u /* for each that is wanted, at least */

void shut_begin(struct bench *bench)
{
	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
}

static bool is_shut(const struct bench *bench, const struct block_life *block)
{
	for (size_t i = 0; block && block->key && i < bench->watchset.list.count; i++) {
		const char *context = bench->watchset.list.items[i].home.key;

		if (strncmp(block->key, context, strlen(context)) == 0)
			return true;
	}
	return false;
}

void shut_add(struct bench *bench, const char *context)
{
	if (bench->watchset.list.count < CONTEXTS)
		(void)watchset_add_fence(&bench->watchset, context);
}

/* Only the use: what it died of was our own doing. */
static void read_any(struct bench *bench, bool passed)
{
	const struct crash_reading *crashed;
	struct evidence_list seen = { 0 };
	bool any = false;

	if (bench->round.signal == 0)
		return;
	crashed = reading_backtrack(bench->round.reading, THROUGH_OBJECTS);
	if (!crashed->has_record)
		return;
	crash_reading_tell(crashed, bench->symbols, bench_crash(bench), &seen);
	VEC_FOREACH (&seen.list, e) {
		if (e->kind == EVIDENCE_FREED_USE && is_shut(bench, e->freed_use->block)) {
			VEC_PUSH(&bench->guards.seen.list, *e);
			any = true;
		} else {
			evidence_deinit(e);
		}
	}
	VEC_DEINIT(&seen.list);
	bench->guards.caught += any;
}

/* As many as it takes to come up once, and no fewer than where it fails often. */
static uint64_t most(const struct bench *bench)
{
	uint64_t least = bench->request->limits.wanted * TRIALS_EACH, once = guards_trials(bench);

	return once > least ? once : least;
}

static bool enough(struct bench *bench)
{
	return bench->guards.caught - bench->guards.before >= bench_wanted(bench) ||
	       bench->round.trials >= most(bench);
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	uint64_t caught = bench->guards.caught - bench->guards.before, wanted = bench_wanted(bench);

	*seen = (struct rate){ .trials = bench->round.trials, .failed = caught };
	return caught < wanted ? wanted - caught : 0;
}

const struct round_ops shut_round = { .id = 6,
				      .observer = OBSERVE_WATCH,
				      .planned = true,
				      .pages = true,
				      .read_any = read_any,
				      .enough = enough,
				      .missing = missing };

int shut_run(struct bench *bench, bool *ret_told, struct err *err)
{
	size_t before = bench->guards.seen.list.count;
	int r = bench_plan(bench, err);

	bench->guards.before = bench->guards.caught;
	if (r == 0)
		r = round_run(bench, &shut_round, err);
	*ret_told = r == 0 && bench->guards.seen.list.count > before;
	return r;
}

/* Who read such a block is known by another way. */
static bool is_answered(const struct bench *bench, const struct evidence *by_somebody)
{
	return VEC_ANY(&bench->ret->evidence.list, e,
		       e->kind == EVIDENCE_FREED_USE && e->failing &&
			       e->freed_use->user.count > 0 && e->freed_use->block &&
			       key_same_context(e->freed_use->block->key,
						by_somebody->freed_use->block->key));
}

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct bench *bench = inq->bench;

	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&bench->ret->evidence, &verdict);
	if (verdict.firm || bench->request->start.without_ids || !bench_may_go_on(bench))
		return false;
	return VEC_ANY(&bench->ret->evidence.list, e,
		       evidence_by_somebody(e) && !is_answered(bench, e));
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, (double)bench_wanted(inq->bench), 2, ret);
}

static void take_contexts(struct bench *bench)
{
	shut_begin(bench);
	VEC_FOREACH (&bench->ret->evidence.list, e)
		if (evidence_by_somebody(e) && !is_shut(bench, e->freed_use->block)) {
			AUTO(mem_freep)
			char *context = mem_strndup(e->freed_use->block->key,
						    strcspn(e->freed_use->block->key, "@#"));

			shut_add(bench, context);
		}
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct watchset homes = bench->watchset;
	bool told;
	int r;

	bench->watchset = (struct watchset){ 0 };
	take_contexts(bench);
	BENCH_SAY(bench, "shut:poison");
	r = shut_run(bench, &told, inq->err);
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	if (told)
		guards_adopt(bench);
	return r;
}

EXPERIMENT(shut, .name = "shut", .question = QUESTION_WHO, .kind = EXPERIMENT_FILL_FREED,
	   .chance = 0.8, .refines = true, .applies = applies, .price = price, .run = run);
