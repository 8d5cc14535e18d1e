/* Allocators of the program's own: what was caught is asked again with them followed. */
#include "hunt/inquiry.h"

static void read_any(struct bench *bench, bool passed)
{
	struct event_logs *logs;

	if (!bench->probe.own.found && reading_logs(bench->round.reading, &logs, NULL) == 0)
		allocator_probe_read(&bench->probe.probe, logs, &bench->probe.own);
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
static int find_own_allocator(struct bench *bench, const struct backtrack_step *step,
			      struct err *err)
{
	struct stack allocated = { 0 };
	int r = 0;

	if (!event_log_context(bench->start.first->record.log, step->in.context, bench->symbols,
			       &allocated) ||
	    !allocator_probe_begin(&allocated, step->in.key.stack_hash, &bench->probe.probe))
		goto out;
	BENCH_SAY(bench, "chase:probe", said_number(bench->probe.probe.list.count));
	r = bench_begin_plan(bench, err);
	if (r < 0)
		goto out;
	allocator_probe_plan(&bench->probe.probe, bench->hooks, &bench->items);
	r = round_run(bench, &probe_round, err);
out:
	allocator_probe_deinit(&bench->probe.probe);
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
		own_allocator_take_given(&bench->request->settings->allocators, &allocated,
					 step->in.key.stack_hash, step->in.size, &bench->probe.own);
	stack_deinit(&allocated);
}

static int find_own_allocators(struct bench *bench, struct err *err)
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
		if (!known && !bench->probe.own.found)
			take_given(bench, step);
		if (!known && !bench->probe.own.found && bench_may_go_on(bench))
			r = find_own_allocator(bench, step, err);
	}
	return r;
}

static void watch_recycled(struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		enum locate_by by;

		if (home_left_out(bench, i))
			continue;
		if (step->home.kind == HOME_BLOCK &&
		    step->in.key.stack_hash == bench->probe.own.stack_hash)
			(void)watchset_add_result(&bench->watchset, step, i,
						  bench->probe.own.hands_out);
		else
			(void)watchset_add_step(&bench->watchset, &bench->start.first->record, step,
						i, home_is_named(step, &by) ? by : LOCATE_KEY, 0);
	}
}

/* What was caught without it stands, and with it the question. */
static void leave_open(struct bench *bench, const struct said *basis)
{
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&bench->homes.levels[i].observations, observation)
			if (!observation->followed && observation->write.write &&
			    !said_anything(&observation->write.note)) {
				observation->write.write->free_basis = FREE_UNSEEN;
				said_copy(&observation->write.note, basis);
			}
}

/* What was caught is known of blocks as malloc has them. Had the object been given back by then, to
 * an allocator of the program's own? Or is it another object that got the block since? */
static int follow_own_allocator(struct bench *bench, int level, struct err *err)
{
	AUTO(said_deinit) struct said basis = { 0 };
	int r;

	VEC_FOREACH (&bench->homes.levels[level].observations, observation)
		if (observation->dangling.stale)
			return 0;
	r = find_own_allocators(bench, err);
	if (r < 0 || !bench->probe.own.found || !bench_may_go_on(bench))
		return r;
	bench_say(bench, &bench->probe.own.basis);
	if (bench->probe.own.whole)
		watch_recycled(bench);
	said_copy(&basis, &bench->probe.own.basis);
	r = run_again(bench, err);
	leave_open(bench, &basis);
	return r;
}

/* The pointer that wrote was another block's, as malloc has them: whatever an allocator between the
 * two has done, it was outside of its own. */
static bool came_from_elsewhere(const struct level *level)
{
	VEC_FOREACH (&level->observations, observation) {
		const struct write_seen *w = observation->write.write;

		if (w && !(w->base && w->victim && w->base->id != 0 && w->victim->id != 0 &&
			   w->base->id != w->victim->id))
			return false;
	}
	return level->observations.count > 0;
}

bool probe_may_tell(const struct bench *bench)
{
	int level = telling_level(bench);

	return level >= 0 && !bench->homes.followed && !copied_from(&bench->homes.levels[level]) &&
	       !came_from_elsewhere(&bench->homes.levels[level]);
}

/* Where guards will be asked whether it ran out of another block, they are asked first. */
static bool applies(struct inquiry *inq, struct said *why)
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
	return follow_own_allocator(inq->bench, telling_level(inq->bench), inq->err);
}

EXPERIMENT(allocator_probe, .name = "allocator-probe", .question = QUESTION_WHO,
	   .kind = EXPERIMENT_WATCH, .chance = 0.1, .applies = applies, .price = price, .run = run);
