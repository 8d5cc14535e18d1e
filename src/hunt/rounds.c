/*
 * A stage: trials with one plan, until what they should show has been seen.
 *
 * A stage is known by its plan. Its trials have positions in the series that say so, and a chase
 * that was ended goes on with those that are stored: of a failing trial everything that was logged
 * is still there, and a passing one had nothing to tell but that it passed.
 */
#include "hunt/bench.h"

#include <inttypes.h>
#include <stdio.h>

#define POSITION_BITS 24 /* trials of a stage */
#define STAGE_BITS 24

bool stage_has_plan(enum stage_kind kind)
{
	return kind != STAGE_LOOK && kind != STAGE_AWAIT;
}

static uint64_t stage_of(const struct chase *chase, enum stage_kind kind)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)kind ^ (chase->pages ? 256 : 0) ^
			(uint64_t)chase->looks << 9; /* FNV-1a */

	hash *= 0x100000001b3u;
	for (size_t i = 0; stage_has_plan(kind) && i < chase->items.len; i++)
		hash = (hash ^ (unsigned char)chase->items.data[i]) * 0x100000001b3u;
	return (hash >> (64 - STAGE_BITS)) << POSITION_BITS;
}

struct stored {
	uint64_t position, trial;
	int signal;
	bool failed, wanted, kept;
};

struct earlier {
	VEC(struct stored) list;
	const struct chase *chase;
	uint64_t from, to;
};

static void take(void *ctx, const struct run_row *row)
{
	struct earlier *earlier = ctx;
	const struct target *target = earlier->chase->request->target;
	bool failed = row->signatures[0] != '\0', wanted = failed;

	if (row->position <= earlier->from || row->position >= earlier->to)
		return;
	/* What cannot be read has not shown it. */
	if (failed && target &&
	    target_shown(target, earlier->chase->runner.cs, row->signatures, &wanted, NULL) < 0)
		wanted = false;
	VEC_PUSH(&earlier->list, ((struct stored){ .position = row->position,
						   .trial = row->trial,
						   .signal = row->signal,
						   .failed = failed,
						   .wanted = wanted,
						   .kept = row->kept }));
}

/* As it was when it ended. */
static void read_again(struct chase *chase, const struct stored *stored)
{
	chase->used++;
	chase->replayed++;
	chase->signal = stored->kept ? stored->signal : 0;
	chase_take_reading(chase, chase_reading_of(chase, stored->trial, stored->signal));
	chase->ret->evidence.trials++;
	chase_count(chase, stored->failed, stored->wanted);
}

/* What the others look for shows in trials that pass, too, and those have left no log. */
static bool reads_stored(enum stage_kind kind)
{
	return kind != STAGE_GUARD && kind != STAGE_RELEASE && kind != STAGE_SCOUT &&
	       kind != STAGE_FENCE;
}

static int resume(struct chase *chase, enum stage_kind kind, bool *ret_enough, struct err *err)
{
	struct earlier earlier = { .chase = chase,
				   .from = chase->stage,
				   .to = chase->stage + (1u << POSITION_BITS) };
	int r = case_runs(chase->runner.cs, chase->runner.series, take, &earlier, err);

	*ret_enough = false;
	VEC_FOREACH (&earlier.list, stored) {
		chase->next = stored->position + 1;
		if (r < 0 || !reads_stored(kind) || *ret_enough ||
		    chase->used >= chase->request->trials)
			continue;
		read_again(chase, stored);
		*ret_enough = chase_enough(chase);
	}
	VEC_DEINIT(&earlier.list);
	return r;
}

int stage_run(struct chase *chase, enum stage_kind kind, struct err *err)
{
	uint64_t before = chase->replayed;
	bool enough;
	int r;

	chase->kind = kind;
	chase->stage = stage_of(chase, kind);
	chase->next = chase->stage + 1;
	chase->round_failed = chase->round_watched = chase->round_trials = 0;
	r = resume(chase, kind, &enough, err);
	if (r == 0 && chase->replayed > before)
		chase_say(chase, "%" PRIu64 " trial%s of it %s in the case already",
			  chase->replayed - before, chase->replayed - before == 1 ? "" : "s",
			  chase->replayed - before == 1 ? "is" : "are");
	return r == 0 && !enough ? runner_run(&chase->runner, err) : r;
}
