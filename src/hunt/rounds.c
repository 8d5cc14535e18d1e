/*
 * A round: trials with one plan, until what they should show has been seen.
 *
 * A round is known by its plan. Its trials have positions in the series that say so, and a chase
 * that was ended goes on with those that are stored: of a failing trial everything that was logged
 * is still there, and a passing one had nothing to tell but that it passed.
 */
#include "hunt/bench.h"

#define POSITION_BITS 24 /* trials of a stage */
#define STAGE_BITS 24

static uint64_t stage_of(const struct bench *bench, const struct round_ops *ops)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)ops->id ^ (bench->homes.pages ? 256 : 0) ^
			(uint64_t)bench->start.looks << 9; /* FNV-1a */

	hash *= 0x100000001b3u;
	for (size_t i = 0; ops->planned && i < bench->items.len; i++)
		hash = (hash ^ (unsigned char)bench->items.data[i]) * 0x100000001b3u;
	return (hash >> (64 - STAGE_BITS)) << POSITION_BITS;
}

struct stored {
	uint64_t position, trial;
	int signal;
	char *signatures;
	bool kept;
};

struct earlier {
	VEC(struct stored) list;
	uint64_t from, to;
};

static void take(void *ctx, const struct run_row *row)
{
	struct earlier *earlier = ctx;

	if (row->position > earlier->from && row->position < earlier->to)
		VEC_PUSH(&earlier->list,
			 ((struct stored){ .position = row->position,
					   .trial = row->trial,
					   .signal = row->signal,
					   .signatures = mem_strdup(row->signatures),
					   .kept = row->kept }));
}

/* As it was when it ended. */
static void read_again(struct bench *bench, const struct stored *stored)
{
	bench->spent.trials++;
	bench->spent.replayed++;
	bench->round.signal = stored->kept ? stored->signal : 0;
	bench_take_reading(bench, bench_reading_of(bench, stored->trial, stored->signal));
	bench->ret->evidence.trials++;
	bench_count(bench, stored->signatures[0] != '\0', bench_shows(bench, stored->signatures));
}

static int resume(struct bench *bench, const struct round_ops *ops, bool *ret_enough,
		  struct err *err)
{
	struct earlier earlier = { .from = bench->round.stage,
				   .to = bench->round.stage + (1u << POSITION_BITS) };
	int r = case_runs(bench->runner.cs, bench->runner.series, take, &earlier, err);

	*ret_enough = false;
	VEC_FOREACH (&earlier.list, stored) {
		bench->round.next = stored->position + 1;
		if (r < 0 || !ops->replays || *ret_enough ||
		    bench->spent.trials >= bench->request->limits.trials)
			continue;
		read_again(bench, stored);
		*ret_enough = bench_enough(bench);
	}
	VEC_FREE(&earlier.list, stored, mem_free(stored->signatures));
	return r;
}

int round_run(struct bench *bench, const struct round_ops *ops, struct err *err)
{
	uint64_t before = bench->spent.replayed;
	bool enough;
	int r;

	bench->round.ops = ops;
	bench->round.stage = stage_of(bench, ops);
	bench->round.next = bench->round.stage + 1;
	bench->round.failed = bench->round.watched = bench->round.trials = 0;
	bench->round.missed = 0;
	r = resume(bench, ops, &enough, err);
	if (r == 0 && bench->spent.replayed > before)
		BENCH_SAY(bench, "chase:stored", said_number(bench->spent.replayed - before));
	return r == 0 && !enough ? runner_run(&bench->runner, err) : r;
}
