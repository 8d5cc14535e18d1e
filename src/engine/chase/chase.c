#include "engine/chase/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stats/rate.h"

#define FAILURES_UNWATCHED 3u /* failing trials whose victim was not watched, until another way */
#define QUIET_TRIALS 20u /* without a failure, and so many times as many as the first one took… */
#define QUIET_TIMES 8u	  /* …until a hook is said to hide it */
#define FAILURES_PER_VICTIM 10u /* …and while some were: keys that hold by chance */

void chase_say(struct chase *chase, const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	va_list args;

	if (!chase->request->say)
		return;
	va_start(args, fmt);
	strbuf_vaddf(&sb, fmt, args);
	va_end(args);
	chase->request->say(chase->request->say_ctx, strbuf_str(&sb));
}

/* ---- trials ------------------------------------------------------------------------------------
 */

static bool out_of_time(const struct chase *chase)
{
	return chase->request->deadline_s > 0 && series_now_s() > chase->request->deadline_s;
}

static enum observer observer_of(enum stage_kind kind)
{
	switch (kind) {
	case STAGE_LOOK:
	case STAGE_AWAIT:
	case STAGE_SCOUT:
		return OBSERVE_IDS;
	case STAGE_GUARD:
	case STAGE_RELEASE:
		return OBSERVE_HEAP;
	default:
		return OBSERVE_WATCH;
	}
}

/* What was watched is counted apart from what was not. */
static unsigned int arm_of(enum stage_kind kind)
{
	switch (observer_of(kind)) {
	case OBSERVE_HEAP:
		return CHASE_ARM_GUARDED;
	case OBSERVE_IDS:
		return CHASE_ARM_LOOKING;
	default:
		return CHASE_ARM_WATCHED;
	}
}

/* An observer that is known to hide it is not tried for ever. */
static bool gives_up(const struct chase *chase)
{
	return chase->kind == STAGE_LOOK && !chase->found && chase->request->look > 0 &&
	       chase->used >= chase->request->look;
}

static int chase_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct chase *chase = ctx;

	if (chase->used >= chase->request->trials || out_of_time(chase) || gives_up(chase))
		return 0;
	chase->used++;
	*ret = (struct run){ .position = chase->next++, .arm = arm_of(chase->kind) };
	return 1;
}

static void chase_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct chase *chase = ctx;

	series_fill_job(chase->request->program, chase->request->slot_env, job);
	job->examined = true;
	job->wild = true;
	job->observer = observer_of(chase->kind);
	job->without_ids = chase->request->without_ids && job->observer != OBSERVE_HEAP;
	job->pages = chase->pages && chase->kind == STAGE_WATCH;
	if (stage_has_plan(chase->kind))
		strbuf_add(&job->plan_items, chase->items.data, chase->items.len);
}

/* The crash and what it touched, while its directory is there. */
void chase_read_crash(struct chase *chase)
{
	crash_report_deinit(&chase->report);
	chase->report = (struct crash_report){ 0 };
	if (chase->signal != 0)
		(void)autopsy_trial(chase->autopsy, case_trials_dir(chase->runner.cs), chase->name,
				    chase->signal, AUTOPSY_WHOLE, &chase->report, NULL);
}

static void chase_examine(void *ctx, const struct trial_result *result, const char *name)
{
	struct chase *chase = ctx;

	chase->number = result->number.value;
	chase->signal = result->end.signal != 0 ? result->end.signal : result->end.observed.signal;
	(void)snprintf(chase->name, sizeof(chase->name), "%s", name);
	chase->pending = true;
	chase_read_crash(chase);
	chase->ret->evidence.trials++;
	/* The directory of a trial that passed is gone before it is recorded. */
	if (chase->kind == STAGE_RELEASE)
		read_release(chase);
	else if (chase->kind == STAGE_GUARD)
		read_guarded(chase);
	else if (chase->kind == STAGE_SCOUT)
		read_scouted(chase);
	else if (chase->kind == STAGE_WATCH && chase->signal == 0 && result->end.exit_status == 0)
		read_passing(chase);
}

/* What nobody can write to is not watched: a mapping whose file was cut, a wrong free. Then more of
 * the same are looked at, as they are. */
static bool worth_watching(const struct chase *chase)
{
	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING || e->kind == EVIDENCE_BAD_FREE)
			return false;
	return chase->first.has_trail && !cuts_wait(chase);
}

static void look_at_crash(struct chase *chase)
{
	AUTO(clues_deinit) struct clues clues = { 0 };

	if (clues_open(&clues, case_trials_dir(chase->runner.cs), chase->name, chase->number,
		       chase->signal, chase->symbols, NULL) < 0 ||
	    !clues.has_scene)
		return;
	chase->found_count++;
	cuts_note(chase, &clues);
	clues_tell(&clues, chase->symbols, &chase->report, &chase->ret->evidence);
	if (chase->found)
		return;
	chase->found = true;
	chase->first = clues;
	clues = (struct clues){ 0 };
}

void chase_count(struct chase *chase, bool failed, bool wanted)
{
	chase->ret->evidence.failed += failed;
	chase->ret->others += failed && !wanted;
	chase->round_trials++;
	switch (chase->kind) {
	case STAGE_LOOK:
	case STAGE_AWAIT:
		if (wanted)
			look_at_crash(chase);
		break;
	case STAGE_WATCH:
		chase->ret->watched_trials++;
		chase->ret->watched_failed += wanted;
		if (wanted)
			read_failing(chase);
		break;
	case STAGE_RACE:
		if (wanted)
			read_race(chase);
		break;
	case STAGE_LEAD:
		if (wanted)
			read_lead(chase);
		break;
	case STAGE_GUARD:
	case STAGE_RELEASE:
		chase->ret->guarded_trials++;
		chase->ret->guarded_failed += failed;
		break;
	case STAGE_SCOUT:
		break;
	}
}

/* Only the failure that is chased counts; `record` comes between examine and ended. */
static void chase_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct chase *chase = ctx;
	bool failed = false, wanted = false;

	VEC_FOREACH (&record->signatures->list, s) {
		failed = true;
		wanted |= !chase->request->target || target_is(chase->request->target, s);
	}
	if (chase->pending)
		chase_count(chase, failed, wanted);
	chase->pending = false;
}

/* It does not fail any more since functions are hooked. */
static bool is_hidden(const struct chase *chase)
{
	return chase->quiet_max > 0 && chase->round_failed == 0 &&
	       chase->round_trials >= chase->quiet_max;
}

bool chase_enough(struct chase *chase)
{
	switch (chase->kind) {
	case STAGE_GUARD:
		return chase->guarded_caught >= chase->request->wanted ||
		       (chase->guarded_caught == 0 && chase->round_trials >= chase->guarded_max);
	case STAGE_RELEASE:
		return release_enough(chase);
	case STAGE_SCOUT:
		return chase->round_trials > 0;
	case STAGE_RACE:
		return race_enough(chase);
	case STAGE_AWAIT:
		cuts_settle(chase);
		return !cuts_wait(chase);
	case STAGE_LOOK:
		cuts_settle(chase);
		if (cuts_wait(chase))
			return false;
		return chase->found &&
		       (worth_watching(chase) || chase->found_count >= chase->request->wanted);
	default:
		return chase->round_watched >= chase->request->wanted || is_hidden(chase) ||
		       (chase->round_watched == 0 && chase->round_failed >= FAILURES_UNWATCHED) ||
		       (chase->other_way && chase->round_failed >= FAILURES_PER_VICTIM &&
			chase->round_failed >= FAILURES_PER_VICTIM * chase->round_watched);
	}
}

static bool chase_ended(void *ctx, const struct run *run, bool failed)
{
	return chase_enough(ctx);
}

static void chase_tick(void *ctx)
{
	struct chase *chase = ctx;
	const struct chase_request *request = chase->request;

	if (request->progress)
		request->progress(request->progress_ctx,
				  &(struct series_progress_view){
					  .done = chase->ret->evidence.trials,
					  .wanted = request->trials,
					  .ran = chase->runner.ran,
					  .seconds = series_now_s() - chase->started_s,
					  .rate = rate_wilson(chase->ret->evidence.trials,
							      chase->ret->evidence.failed,
							      RATE_CONFIDENCE),
				  });
}

static const struct runner_ops chase_ops = {
	.next = chase_next,
	.prepare = chase_prepare,
	.examine = chase_examine,
	.record = chase_record,
	.ended = chase_ended,
	.tick = chase_tick,
};

/* ---- rounds ------------------------------------------------------------------------------------
 */

static int find_crash(struct chase *chase, struct err *err)
{
	const struct chase_request *request = chase->request;
	uint64_t from = request->lead ? request->lead->trial : request->from;
	AUTO(mem_freep) char *name = mem_printf("%" PRIu64, from);

	if (from != 0 &&
	    clues_open(&chase->first, case_trials_dir(chase->runner.cs), name, from, 0,
		       chase->symbols, NULL) == 0 &&
	    chase->first.has_trail && chase->first.trail.steps.items[0].in.id != 0) {
		(void)autopsy_trial(chase->autopsy, case_trials_dir(chase->runner.cs), name, 0,
				    AUTOPSY_WHOLE, &chase->report, NULL);
		clues_tell(&chase->first, chase->symbols, &chase->report, &chase->ret->evidence);
		chase->found = true;
		return 0;
	}
	clues_deinit(&chase->first);
	chase_say(chase, "running it with%s allocation ids until it fails, to see what is hit",
		  request->without_ids ? "out" : "");
	return stage_run(chase, STAGE_LOOK, err);
}

/* Where a home is the same in every run, whichever block it is: nothing has to be found again. */
static bool is_named(const struct trail_step *step, enum stake_by *ret)
{
	*ret = step->home.kind == HOME_STACK	? STAKE_FRAME
	       : step->home.kind == HOME_THREAD ? STAKE_THREAD
						: STAKE_GLOBAL;
	return step->home.kind == HOME_GLOBAL || step->home.kind == HOME_STACK ||
	       step->home.kind == HOME_THREAD;
}

/* A variable that only leads to the object whose field is bad is not asked for: a hook on its
 * function costs more than it tells. */
static bool leads_on(const struct trail *trail, unsigned int level)
{
	for (unsigned int i = 0; i < level; i++)
		if (trail->steps.items[i].home.kind != HOME_STACK &&
		    !trail->steps.items[i].by_value)
			return trail->steps.items[level].home.kind == HOME_STACK;
	return false;
}

/* How the homes are watched in a round: by key; then as what the outermost function on the stack
 * that has them is given; then the next one. */
static bool stake_out(struct chase *chase, unsigned int round)
{
	const struct trail *trail = &chase->first.trail;
	bool any = false;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++) {
		const struct trail_step *step = &trail->steps.items[i];
		enum stake_by by;
		bool named = is_named(step, &by), added = false;

		if (leads_on(trail, i) || (chase->no_frames && step->home.kind == HOME_STACK))
			continue;
		if (named)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  by, 0);
		else if (round == 0)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  STAKE_KEY, 0);
		else if (!any)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  STAKE_ARGUMENT, round - 1);
		any |= added && !named;
	}
	return chase->stakeout.list.count > 0 && (round == 0 || any);
}

/* Is there anything that stake_out() would watch in that round? */
static bool can_stake_out(const struct chase *chase, unsigned int round)
{
	const struct trail *trail = &chase->first.trail;

	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++)
		if (trail->steps.items[i].home.kind == HOME_BLOCK &&
		    trail->steps.items[i].handles.count >= round)
			return true;
	return false;
}

static bool can_stake_context(const struct chase *chase)
{
	const struct trail *trail = &chase->first.trail;

	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++)
		if (trail->steps.items[i].home.kind == HOME_BLOCK &&
		    trail->steps.items[i].in.key.stack_hash != 0)
			return true;
	return false;
}

/* Last: any block of the context that the first block among the homes has. */
static bool stake_context(struct chase *chase)
{
	const struct trail *trail = &chase->first.trail;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++)
		if (stakeout_add_step(&chase->stakeout, &chase->first.scene, &trail->steps.items[i],
				      i, STAKE_CONTEXT, 0))
			return true;
	return false;
}

/* Anew each time: a planner hands out what it has not planned before. */
static int begin_plan(struct chase *chase, struct err *err)
{
	const struct chase_request *request = chase->request;

	strbuf_clear(&chase->items);
	hook_planner_free(chase->hooks);
	chase->hooks = NULL;
	return hook_planner_new(&(struct libraries_request){ .program = request->program_path,
							     .cwd = request->settings->cwd,
							     .env = request->slot_env },
				&chase->hooks, err);
}

int chase_plan(struct chase *chase, struct err *err)
{
	int r = begin_plan(chase, err);

	/* First: what is watched as its result has its id then. */
	if (r == 0 && chase->recycler.found &&
	    recycler_plan(&chase->recycler, chase->hooks, &chase->items, NULL) < 0)
		recycler_deinit(&chase->recycler);
	if (r == 0)
		r = stakeout_plan(&chase->stakeout, chase->hooks, &chase->items, err);
	return r;
}

static int run_round(struct chase *chase, struct err *err)
{
	int r = chase_plan(chase, err);

	return r == 0 ? stage_run(chase, STAGE_WATCH, err) : r;
}

uint64_t chase_trials_left(const struct chase *chase)
{
	return chase->used < chase->request->trials ? chase->request->trials - chase->used : 0;
}

bool chase_may_go_on(const struct chase *chase)
{
	return !chase->runner.interrupted && chase->used < chase->request->trials &&
	       !out_of_time(chase);
}

/* Watched from its birth on in every failing trial, never written, and still not zero. */
static bool unwritten(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight)
		if (!sight->since_birth || sight->write.write || sight->victim.value == 0)
			return false;
	return level->sights.count > 0;
}

/* The level whose home tells: where a pointer outlived its block; else the first at which somebody
 * was caught leaving the value; else where a pointer to a live block was put, which is hardly to
 * blame. -1: none. */
static int telling_level(const struct chase *chase)
{
	int caught = -1, healthy = -1;

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		size_t stale = 0, writes = 0, sound = 0;

		VEC_FOREACH (&chase->levels[i].sights, sight) {
			stale += sight->stale;
			writes += sight->write.write != NULL && !sight->healthy;
			/* A function's own variable says nothing about anything else. */
			sound += sight->write.write != NULL && sight->healthy &&
				 sight->home.kind != HOME_STACK;
		}
		if (healthy < 0 && sound > 0)
			healthy = (int)i;
		if (stale > 0)
			return (int)i;
		/* Never written, and not zero: what was there before the block was. */
		if (caught < 0 && (writes > 0 || unwritten(&chase->levels[i])))
			caught = (int)i;
	}
	return caught >= 0 ? caught : healthy;
}

/* All that was caught there is how a pointer to a live block came to its place. */
static bool is_healthy(const struct level *level)
{
	size_t writes = 0;

	VEC_FOREACH (&level->sights, sight) {
		writes += sight->write.write != NULL;
		if (sight->write.write && !sight->healthy)
			return false;
	}
	return writes > 0;
}

/* Did what was caught there only copy the value? Then the home it came from, in most trials. */
static const struct sight *copied_from(const struct level *level)
{
	const struct sight *found = NULL;
	size_t copies = 0, writes = 0;

	VEC_FOREACH (&level->sights, sight) {
		writes += sight->write.write != NULL;
		if (!sight->write.write || sight->stale ||
		    !(sight->write.write->flags & WRITE_COPIED))
			continue;
		copies++;
		found = sight;
	}
	return copies * 2 > writes ? found : NULL;
}

/* Where the crash says too little by itself: glibc's own alarm, a value that leads nowhere; a free
 * that is wrong because of what was written to freed memory before. */
static bool wants_heap(const struct chase *chase)
{
	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING || e->kind == EVIDENCE_FREED_USE ||
		    (e->kind == EVIDENCE_BAD_FREE && e->bad_free->kind == BAD_FREE_MISMATCHED))
			return false;
	return true;
}

/* Somebody was caught writing to a block whose place was another's before: he may be its rightful
 * owner, and the reader the one who is wrong. Guards tell: with them no place is given out again so
 * soon. */
static bool is_ambiguous(const struct chase *chase, int level)
{
	if (level < 0 || (size_t)level >= chase->first.trail.steps.count || !chase_may_go_on(chase))
		return false;
	VEC_FOREACH (&chase->levels[level].sights, sight)
		if (sight->stale)
			return false;
	return chase->first.trail.steps.items[level].in_former;
}

/* The bad value stands in an object of CPython's pools, whose places have always been others', or it
 * was found by looking for it in such a place: that block is hardly the one that the crash
 * meant. */
static bool is_elsewhere(const struct chase *chase)
{
	const struct trail_step *step = &chase->first.trail.steps.items[0];

	if (step->in.api == LOG_API_PYTHON_OBJECT || step->in.api == LOG_API_PYTHON_MEMORY)
		return true;
	return step->by_value && !step->by_field &&
	       (step->in_former || step->in.api == LOG_API_HOOKED);
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static void forget_sights(struct chase *chase)
{
	for (size_t i = 0; i < sizeof(chase->levels) / sizeof(chase->levels[0]); i++)
		level_deinit(&chase->levels[i]);
	memset(chase->levels, 0, sizeof(chase->levels));
}

static bool any_stale(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight)
		if (sight->stale)
			return true;
	return false;
}

/* What was seen before counts until this round has seen it again: there, or nearer to the crash. */
static int run_again(struct chase *chase, struct err *err)
{
	struct level before[LEVELS_MAX];
	int had = telling_level(chase), has, r;
	size_t seen = 0;

	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		seen += chase->levels[i].sights.count;
	memcpy(before, chase->levels, sizeof(before));
	memset(chase->levels, 0, sizeof(before));
	r = run_round(chase, err);
	has = telling_level(chase);
	if (seen == 0 || (has >= 0 && (had < 0 || has <= had || any_stale(&chase->levels[has])))) {
		for (unsigned int i = 0; i < LEVELS_MAX; i++)
			level_deinit(&before[i]);
		return r;
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		level_deinit(&chase->levels[i]);
	memcpy(chase->levels, before, sizeof(before));
	return r;
}

/* A hook on a function writes to the stack below it, and takes time. Where it has not failed in so many
 * trials that it should have, the variables are left alone. */
static int run_without_frames(struct chase *chase, struct err *err)
{
	if (!is_hidden(chase))
		return 0;
	chase->quiet_max = 0;
	chase->no_frames = true;
	if (!stake_out(chase, 0))
		return 0;
	chase_say(chase, "it does not fail with a hook on the function whose variable it is: "
			 "watching the other homes only");
	return run_again(chase, err);
}

static uint64_t quiet_max(const struct chase *chase)
{
	uint64_t expected = QUIET_TRIALS + QUIET_TIMES * chase->used;

	VEC_FOREACH (&chase->stakeout.list, stake)
		if (stake->by == STAKE_FRAME)
			return expected < chase_trials_left(chase) / 2
				       ? expected
				       : chase_trials_left(chase) / 2;
	return 0;
}

/* How homes in blocks are found: by what is the same in each run, then any block of the context, the
 * newest ones, then all of them. */
enum way { WAY_SAME, WAY_CONTEXT, WAY_PAGES };

static const char *way_words(enum way way, unsigned int round)
{
	if (way == WAY_PAGES)
		return "watching %zu home%s in all blocks of the same context, on watched pages";
	if (way == WAY_CONTEXT)
		return "watching %zu home%s in any block of the same context";
	return round == 0 ? "watching %zu home%s by the key of their blocks"
			  : "the keys did not lead to the victim: watching %zu home%s as what a "
			    "function on the crash's stack is given";
}

static int watch_homes(struct chase *chase, struct err *err)
{
	enum way way = WAY_SAME;
	int r = 0;

	for (unsigned int round = 0; r == 0 && way != WAY_PAGES && chase_may_go_on(chase);
	     round++) {
		if (way == WAY_CONTEXT)
			way = WAY_PAGES;
		else if (!stake_out(chase, round))
			way = WAY_CONTEXT;
		if (way != WAY_SAME && ((telling_level(chase) >= 0 && chase->round_watched == 0) ||
					!stake_context(chase)))
			break;
		chase_say(chase, way_words(way, round), chase->stakeout.list.count,
			  chase->stakeout.list.count == 1 ? "" : "s");
		chase->other_way = way == WAY_SAME ? can_stake_out(chase, round + 1) ||
							     can_stake_context(chase)
						   : way == WAY_CONTEXT;
		chase->pages = way == WAY_PAGES;
		chase->quiet_max = quiet_max(chase);
		r = run_again(chase, err);
		if (r == 0)
			r = run_without_frames(chase, err);
		chase->quiet_max = 0;
		if (chase->round_watched >= chase->request->wanted ||
		    (chase->round_watched > 0 && !chase->other_way))
			break;
	}
	chase->other_way = false;
	return r;
}

/* Watches the source of a copy together with what was watched before. */
static int follow_copies(struct chase *chase, int level, struct err *err)
{
	const struct sight *copy = copied_from(&chase->levels[level]);

	if (chase->request->hops < 2 || !chase_may_go_on(chase) || !copy ||
	    !stakeout_add_source(&chase->stakeout, copy->write.write, &copy->source, LEVELS_MAX))
		return 0;
	chase_say(chase, "the value was only copied: watching where it came from, too");
	return run_again(chase, err);
}

/* ---- allocators of the program's own ------------------------------------------------------------
 */

/* Looks on for one trial, whether it fails or not. */
static int find_recycler(struct chase *chase, const struct trail_step *step, struct err *err)
{
	struct stack allocated = { 0 };
	int r = 0;

	if (!event_log_context(chase->first.scene.log, step->in.context, chase->symbols,
			       &allocated) ||
	    !scout_begin(&allocated, step->in.key.stack_hash, &chase->scout))
		goto out;
	chase_say(chase, "looking at %zu functions for an allocator of the program's own",
		  chase->scout.list.count);
	r = begin_plan(chase, err);
	if (r < 0)
		goto out;
	scout_plan(&chase->scout, chase->hooks, &chase->items);
	r = stage_run(chase, STAGE_SCOUT, err);
out:
	scout_deinit(&chase->scout);
	stack_deinit(&allocated);
	return r;
}

static int find_recyclers(struct chase *chase, struct err *err)
{
	const struct trail *trail = &chase->first.trail;
	int r = 0;

	for (size_t i = 0; r == 0 && i < trail->steps.count && i < LEVELS_MAX; i++) {
		const struct trail_step *step = &trail->steps.items[i];
		bool known = step->home.kind != HOME_BLOCK || step->in.key.stack_hash == 0 ||
			     step->in.api >= LOG_API_PYTHON_OBJECT;

		for (size_t k = 0; k < i; k++)
			known |= trail->steps.items[k].in.key.stack_hash == step->in.key.stack_hash;
		if (!known && !chase->recycler.found && chase_may_go_on(chase))
			r = find_recycler(chase, step, err);
	}
	return r;
}

static void stake_out_recycled(struct chase *chase)
{
	const struct trail *trail = &chase->first.trail;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++) {
		const struct trail_step *step = &trail->steps.items[i];

		enum stake_by by;

		if (leads_on(trail, i) || (chase->no_frames && step->home.kind == HOME_STACK))
			continue;
		if (step->home.kind == HOME_BLOCK &&
		    step->in.key.stack_hash == chase->recycler.stack_hash)
			(void)stakeout_add_result(&chase->stakeout, step, i,
						  chase->recycler.hands_out);
		else
			(void)stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						is_named(step, &by) ? by : STAKE_KEY, 0);
	}
}

/* What was caught without it stands, and with it the question. */
static void leave_open(struct chase *chase, const char *words)
{
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&chase->levels[i].sights, sight)
			if (!sight->followed && sight->write.write && !sight->write.note) {
				sight->write.write->flags |= WRITE_FREE_UNKNOWN;
				sight->write.note = mem_strdup(words);
			}
}

/* What was caught is known of blocks as malloc has them. Had the object been given back by then, to
 * an allocator of the program's own? Or is it another object that got the block since? */
static int follow_recycler(struct chase *chase, int level, struct err *err)
{
	AUTO(mem_freep) char *words = NULL;
	int r;

	VEC_FOREACH (&chase->levels[level].sights, sight)
		if (sight->stale)
			return 0;
	r = find_recyclers(chase, err);
	if (r < 0 || !chase->recycler.found || !chase_may_go_on(chase))
		return r;
	chase_say(chase, "%s", chase->recycler.words);
	if (chase->recycler.whole)
		stake_out_recycled(chase);
	words = mem_strdup(chase->recycler.words);
	r = run_again(chase, err);
	leave_open(chase, words);
	return r;
}

static void conclude(struct chase *chase)
{
	int level = telling_level(chase);
	struct level *source = &chase->levels[LEVELS_MAX];
	bool more = false;

	if (level < 0) {
		/* Nobody was caught anywhere: the first home's accounts say so. */
		if (chase->levels[0].sights.count > 0)
			tell_level(chase, &chase->levels[0], 1, HOP_NOTHING);
		chase->ret->outcome = mem_strdup(
			chase->ret->watched_failed > 0
				? "nobody was caught writing the homes that the bad value came from"
				: "it did not fail while it was watched");
		return;
	}
	more = source->sights.count > 0;
	tell_level(chase, &chase->levels[level], 1,
		   more			    ? HOP_GOES_ON
		   : chase_may_go_on(chase) ? HOP_ORIGIN
					    : HOP_LIMIT);
	if (more)
		tell_level(chase, source, 2, HOP_ORIGIN);
	chase->ret->outcome = mem_printf("caught after %u hop%s", chase->ret->hops,
					 chase->ret->hops == 1 ? "" : "s");
}

/* Whoever made the file shorter may be in a trial that has ended since, or is yet to come. */
static int await_cut(struct chase *chase, struct err *err)
{
	int r = 0;

	cuts_settle(chase);
	if (!chase->found || !chase_may_go_on(chase) || !cuts_wait(chase))
		return 0;
	chase_say(chase,
		  "a mapped file was made shorter: running it again until it is seen by whom");
	r = stage_run(chase, STAGE_AWAIT, err);
	cuts_settle(chase);
	if (r == 0 && cuts_state(chase) == CUTS_KNOWN) {
		mem_free(chase->ret->outcome);
		chase->ret->outcome = mem_strdup("a mapped file was made shorter");
	}
	return r;
}

static bool anybody_caught(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight)
		if (sight->write.write)
			return true;
	return false;
}

/* The pointer at the source of a copy belongs to the home one level up: levels of sources follow.
 */
static int chase_all(struct chase *chase, struct err *err)
{
	int r = find_crash(chase, err);
	bool told = false;
	int level;

	if (r < 0 || !chase->found)
		return r;
	if (!chase->first.has_trail && wants_heap(chase))
		return guards_instead(chase, &told, err);
	if (!worth_watching(chase)) {
		chase->ret->outcome = mem_strdup(chase->first.no_trail ? chase->first.no_trail
								       : "nothing to follow");
		return 0;
	}
	chase_say(chase, "trial %" PRIu64 ": %zu home%s found on the way back from the crash",
		  chase->first.trial, chase->first.trail.steps.count,
		  chase->first.trail.steps.count == 1 ? "" : "s");
	if (is_elsewhere(chase) && chase_may_go_on(chase))
		r = guards_instead(chase, &told, err);
	if (r < 0 || told)
		return r;
	r = watch_homes(chase, err);
	level = telling_level(chase);
	if (r == 0 && chase_may_go_on(chase) &&
	    (is_ambiguous(chase, level) ||
	     ((level < 0 || is_healthy(&chase->levels[level])) && wants_heap(chase)))) {
		struct stakeout homes = chase->stakeout;

		/* It watches what it finds damaged; the homes are watched again afterwards. */
		chase->stakeout = (struct stakeout){ 0 };
		r = guards_instead(chase, &told, err);
		stakeout_deinit(&chase->stakeout);
		chase->stakeout = homes;
	}
	if (r < 0 || told)
		return r;
	if (level >= 0 && copied_from(&chase->levels[level]))
		r = follow_copies(chase, level, err);
	else if (level >= 0)
		r = follow_recycler(chase, level, err);
	level = telling_level(chase);
	if (r == 0 && level >= 0 && !anybody_caught(&chase->levels[LEVELS_MAX]) &&
	    chase->guarded.list.count == 0 && chase_may_go_on(chase) &&
	    may_be_overrun(&chase->levels[level]))
		r = guards_confirm(chase, &chase->levels[level], &told, err);
	if (r == 0 && !told)
		conclude(chase);
	return r;
}

/* Who did it may be two threads that did it together. */
static int chase_whole(struct chase *chase, struct err *err)
{
	const struct evidence *lead = chase->request->lead;
	int r;

	if (lead && !lead_is_crash(lead))
		return lead_follow(chase, lead, err);
	r = chase_all(chase, err);

	return r == 0 && chase->found && chase_may_go_on(chase) ? race_look(chase, err) : r;
}

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err)
{
	struct chase chase = { .request = request, .ret = ret, .started_s = series_now_s() };
	struct series_start start = { 0 };
	int r;

	chase.symbols = symbols_new(&(struct symbols_options){ 0 });
	chase.autopsy = autopsy_new();
	chase.runner.settings = request->settings;
	chase.runner.observer = OBSERVE_IDS;
	chase.runner.slots = request->jobs;
	chase.runner.ops = &chase_ops;
	chase.runner.ctx = &chase;
	r = series_resume(cs, &request->identity, request->fresh, 0, &chase.runner, &start, err);
	if (r == 0)
		r = chase_whole(&chase, err);
	if (r == 0)
		r = await_cut(&chase, err);
	if (!ret->outcome)
		ret->outcome = mem_strdup(chase.found	    ? "it ended before anything was caught"
					  : ret->others > 0 ? "it failed in other ways only"
							    : "it did not crash");
	ret->found = chase.found;
	ret->interrupted = chase.runner.interrupted;
	forget_sights(&chase);
	evidence_list_deinit(&chase.guarded);
	clues_deinit(&chase.first);
	stakeout_deinit(&chase.stakeout);
	recycler_deinit(&chase.recycler);
	VEC_DEINIT(&chase.files);
	strbuf_deinit(&chase.items);
	crash_report_deinit(&chase.report);
	hook_planner_free(chase.hooks);
	autopsy_free(chase.autopsy);
	symbols_free(chase.symbols);
	runner_deinit(&chase.runner);
	return r;
}

void chase_result_deinit(struct chase_result *result)
{
	evidence_list_deinit(&result->evidence);
	mem_free(result->outcome);
}
