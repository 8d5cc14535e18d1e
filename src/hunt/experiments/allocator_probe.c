/* Allocators of the program's own: what was caught is asked again with them followed. */
#include "hunt/inquiry.h"

static void read_any(struct bench *bench, bool passed)
{
	struct event_logs *logs;

	if (!bench->probe.recycler.found && reading_logs(bench->round.reading, &logs, NULL) == 0)
		scout_read(&bench->probe.scout, logs, &bench->probe.recycler);
}

static bool enough(struct bench *bench)
{
	return bench->round.trials > 0;
}

/* Any trial tells. */
static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	*seen = (struct rate){ .trials = 1, .failed = 1 };
	return 1;
}

static const struct round_ops probe_round = { .id = 3,
					      .observer = OBSERVE_IDS,
					      .planned = true,
					      .read_any = read_any,
					      .enough = enough,
					      .missing = missing };

/* Looks on for one trial, whether it fails or not. */
static int find_recycler(struct bench *bench, const struct backtrack_step *step, struct err *err)
{
	struct stack allocated = { 0 };
	int r = 0;

	if (!event_log_context(bench->start.first->record.log, step->in.context, bench->symbols,
			       &allocated) ||
	    !scout_begin(&allocated, step->in.key.stack_hash, &bench->probe.scout))
		goto out;
	bench_say(bench, "looking at %zu functions for an allocator of the program's own",
		  bench->probe.scout.list.count);
	r = bench_begin_plan(bench, err);
	if (r < 0)
		goto out;
	scout_plan(&bench->probe.scout, bench->hooks, &bench->items);
	r = round_run(bench, &probe_round, err);
out:
	scout_deinit(&bench->probe.scout);
	stack_deinit(&allocated);
	return r;
}

/* Nothing has to be found where the user has said it. */
static void take_given(struct bench *bench, const struct backtrack_step *step)
{
	struct stack allocated = { 0 };

	if (bench->request->settings->allocators.count > 0 &&
	    event_log_context(bench->start.first->record.log, step->in.context, bench->symbols,
			      &allocated))
		recycler_take_given(&bench->request->settings->allocators, &allocated,
				    step->in.key.stack_hash, step->in.size, &bench->probe.recycler);
	stack_deinit(&allocated);
}

static int find_recyclers(struct bench *bench, struct err *err)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;
	int r = 0;

	for (size_t i = 0; r == 0 && i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];
		bool known = step->home.kind != HOME_BLOCK || step->in.key.stack_hash == 0 ||
			     step->in.api >= LOG_API_PYTHON_OBJECT;

		for (size_t k = 0; k < i; k++)
			known |= backtrack->steps.items[k].in.key.stack_hash ==
				 step->in.key.stack_hash;
		if (!known && !bench->probe.recycler.found)
			take_given(bench, step);
		if (!known && !bench->probe.recycler.found && bench_may_go_on(bench))
			r = find_recycler(bench, step, err);
	}
	return r;
}

static void stake_out_recycled(struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	stakeout_deinit(&bench->stakeout);
	bench->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		enum stake_by by;

		if (home_left_out(bench, i))
			continue;
		if (step->home.kind == HOME_BLOCK &&
		    step->in.key.stack_hash == bench->probe.recycler.stack_hash)
			(void)stakeout_add_result(&bench->stakeout, step, i,
						  bench->probe.recycler.hands_out);
		else
			(void)stakeout_add_step(&bench->stakeout, &bench->start.first->record, step,
						i, home_is_named(step, &by) ? by : STAKE_KEY, 0);
	}
}

/* What was caught without it stands, and with it the question. */
static void leave_open(struct bench *bench, const char *words)
{
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&bench->homes.levels[i].sights, sight)
			if (!sight->followed && sight->write.write && !sight->write.note) {
				sight->write.write->free_basis = FREE_UNSEEN;
				sight->write.note = mem_strdup(words);
			}
}

/* What was caught is known of blocks as malloc has them. Had the object been given back by then, to
 * an allocator of the program's own? Or is it another object that got the block since? */
static int follow_recycler(struct bench *bench, int level, struct err *err)
{
	AUTO(mem_freep) char *words = NULL;
	int r;

	VEC_FOREACH (&bench->homes.levels[level].sights, sight)
		if (sight->stale)
			return 0;
	r = find_recyclers(bench, err);
	if (r < 0 || !bench->probe.recycler.found || !bench_may_go_on(bench))
		return r;
	bench_say(bench, "%s", bench->probe.recycler.words);
	if (bench->probe.recycler.whole)
		stake_out_recycled(bench);
	words = mem_strdup(bench->probe.recycler.words);
	r = run_again(bench, err);
	leave_open(bench, words);
	return r;
}

/* The pointer that wrote was another block's, as malloc has them: whatever an allocator between the
 * two has done, it was outside of its own. */
static bool came_from_elsewhere(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight) {
		const struct write_seen *w = sight->write.write;

		if (w && !(w->base && w->victim && w->base->id != 0 && w->victim->id != 0 &&
			   w->base->id != w->victim->id))
			return false;
	}
	return level->sights.count > 0;
}

bool probe_may_tell(const struct bench *bench)
{
	int level = telling_level(bench);

	return level >= 0 && !bench->homes.followed && !copied_from(&bench->homes.levels[level]) &&
	       !came_from_elsewhere(&bench->homes.levels[level]);
}

/* Where guards will be asked whether it ran out of another block, they are asked first. */
static bool applies(struct inquiry *inq, struct strbuf *why)
{
	const struct bench *bench = inq->bench;

	return bench->homes.watched && !bench->told && !bench->homes.concluded &&
	       guards_reason(bench) == GUARDS_REASONS && probe_may_tell(bench);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, 1, 1.2, ret);
}

static int run(struct inquiry *inq)
{
	inq->bench->homes.followed = true;
	return follow_recycler(inq->bench, telling_level(inq->bench), inq->err);
}

const struct experiment_ops experiment_allocator_probe = { .name = "allocator-probe",
							   .question = QUESTION_WHO,
							   .kind = EXPERIMENT_WATCH,
							   .chance = 0.1,
							   .applies = applies,
							   .price = price,
							   .run = run };
