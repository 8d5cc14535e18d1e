#include "hunt/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stats/rate.h"
#include "judge/judge.h"

#define FAILURES_UNWATCHED 3u	/* failing trials whose victim was not watched, until another way */
#define FAILURES_PER_VICTIM 10u /* …and while some were: keys that hold by chance */
#define QUIET_LOOK 40u		/* trials without a crash, until guards are asked */

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

/* On watched pages there are no guards: whatever is written behind a block is caught there. */
static enum observer observer_of(const struct chase *chase)
{
	if (chase->kind == STAGE_GUARD && chase->pages)
		return OBSERVE_WATCH;
	switch (chase->kind) {
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
static unsigned int arm_of(const struct chase *chase)
{
	switch (observer_of(chase)) {
	case OBSERVE_HEAP:
		return CHASE_ARM_GUARDED;
	case OBSERVE_IDS:
		return CHASE_ARM_LOOKING;
	default:
		return CHASE_ARM_WATCHED;
	}
}

/* An observer that is known to hide it is not tried for ever, and what does not crash is looked at
 * with guards. */
static bool gives_up(const struct chase *chase)
{
	return chase->kind == STAGE_LOOK && !chase->found && chase->look_max > 0 &&
	       chase->used >= chase->look_max;
}

static int chase_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct chase *chase = ctx;

	if (chase->used >= chase->request->trials || out_of_time(chase) || gives_up(chase))
		return 0;
	chase->used++;
	*ret = (struct run){ .position = chase->next++, .arm = arm_of(chase) };
	return 1;
}

static void chase_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct chase *chase = ctx;

	series_fill_job(chase->request->program, chase->request->slot_env, job);
	job->examined = true;
	job->wild = true;
	job->observer = observer_of(chase);
	job->without_ids = chase->request->without_ids && job->observer != OBSERVE_HEAP;
	job->pages = chase->pages && (chase->kind == STAGE_WATCH || chase->kind == STAGE_GUARD);
	job->pages |= chase->kind == STAGE_FENCE;
	if (stage_has_plan(chase->kind))
		strbuf_add(&job->plan_items, chase->items.data, chase->items.len);
}

void chase_take_reading(struct chase *chase, struct reading *reading)
{
	reading_close(chase->reading);
	chase->reading = reading;
	chase->number = reading_trial(reading);
}

struct reading *chase_reading_of(struct chase *chase, uint64_t trial, int signal)
{
	return readings_open(runner_readings(&chase->runner), chase->runner.cs, trial, signal);
}

const struct crash *chase_crash(struct chase *chase)
{
	return chase->signal != 0 ? reading_crash(chase->reading, CRASH_WHOLE) : NULL;
}

static void chase_examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	struct chase *chase = ctx;

	/* It is read on when it is known whether it failed in the way that is chased. */
	chase_take_reading(chase, reading_share(reading));
	chase->signal = result->end.signal != 0 ? result->end.signal : result->end.observed.signal;
	chase->pending = true;
	chase->ret->evidence.trials++;
	if (chase->kind == STAGE_RELEASE)
		read_release(chase);
	else if (chase->kind == STAGE_GUARD)
		read_guarded(chase);
	else if (chase->kind == STAGE_FENCE)
		read_fenced(chase);
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
	return chase->first->has_backtrack && !cuts_wait(chase);
}

static void found_first(struct chase *chase, struct reading *reading,
			const struct crash_reading *crashed)
{
	chase->found = true;
	chase->first = crashed;
	chase->first_reading = reading_share(reading);
}

static void look_at_crash(struct chase *chase)
{
	const struct crash_reading *crashed = reading_backtrack(chase->reading, THROUGH_OBJECTS);

	if (!crashed->has_record)
		return;
	chase->found_count++;
	cuts_note(chase, crashed);
	crash_reading_tell(crashed, chase->symbols, chase_crash(chase), &chase->ret->evidence);
	if (!chase->found)
		found_first(chase, chase->reading, crashed);
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
	case STAGE_FENCE:
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

/* It does not fail any more since it is watched this way. */
bool chase_hidden(const struct chase *chase)
{
	return chase->quiet_max > 0 && chase->round_failed == 0 &&
	       chase->round_trials >= chase->quiet_max;
}

bool chase_enough(struct chase *chase)
{
	switch (chase->kind) {
	case STAGE_GUARD:
		return chase->guarded_caught >= chase->request->wanted ||
		       chase->round_trials >= chase->guarded_max * (1 + chase->guarded_caught -
								    chase->guarded_before);
	case STAGE_RELEASE:
		return release_enough(chase);
	case STAGE_SCOUT:
		return chase->round_trials > 0;
	case STAGE_FENCE:
		return readers_enough(chase);
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
		return (chase->round_watched >= chase->request->wanted && !awaits_passing(chase)) ||
		       chase_hidden(chase) ||
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
					  .at_most = true,
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

	if (from != 0) {
		AUTO(reading_closep)
		struct reading *reading = chase_reading_of(chase, from, 0);
		const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);

		if (crashed->has_backtrack && crashed->backtrack.steps.items[0].in.id != 0) {
			crash_reading_tell(crashed, chase->symbols,
					   reading_crash(reading, CRASH_WHOLE),
					   &chase->ret->evidence);
			found_first(chase, reading, crashed);
			return 0;
		}
	}
	chase_say(chase, "running it with%s allocation ids until it fails, to see what is hit",
		  request->without_ids ? "out" : "");
	return stage_run(chase, STAGE_LOOK, err);
}

/* Damage need not crash: a wrong result, or nothing at all, is all that some programs show. Where
 * guards show nothing either, it is waited for as long as was asked. */
static int find_damage(struct chase *chase, bool *ret_told, struct err *err)
{
	int r;

	if (!chase->request->unfailed || !chase_may_go_on(chase))
		return 0;
	chase_say(chase, "no crash in %" PRIu64 " trials", chase->used);
	r = guards_instead(chase, ret_told, err);
	chase->looks += !chase->runner.interrupted;
	if (r < 0 || *ret_told || !chase_may_go_on(chase))
		return r;
	chase->look_max = 0;
	chase_say(chase, "they show nothing: running it on until it crashes");
	return stage_run(chase, STAGE_LOOK, err);
}

static uint64_t look_max(const struct chase_request *request)
{
	uint64_t most = request->trials * 2 / 3;

	if (!request->unfailed)
		return request->look;
	return most < 1 ? 1 : most < QUIET_LOOK ? most : QUIET_LOOK;
}

/* Anew each time: a planner hands out what it has not planned before. */
int chase_begin_plan(struct chase *chase, struct err *err)
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
	int r = chase_begin_plan(chase, err);

	/* First: what is watched as its result has its id then. */
	if (r == 0 && chase->recycler.found &&
	    recycler_plan(&chase->recycler, chase->hooks, &chase->items, NULL) < 0)
		recycler_deinit(&chase->recycler);
	if (r == 0)
		r = stakeout_plan(&chase->stakeout, chase->hooks, &chase->items, err);
	return r;
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

/* Where the crash says too little by itself: glibc's own alarm, a value that leads nowhere; a free
 * that is wrong because of what was written to freed memory before. */
static bool wants_heap(const struct chase *chase)
{
	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING ||
		    (e->kind == EVIDENCE_FREED_USE && !e->freed_use->place_reused) ||
		    (e->kind == EVIDENCE_BAD_FREE && e->bad_free->kind == BAD_FREE_MISMATCHED))
			return false;
	return true;
}

/* Somebody was caught writing to a block whose place was another's before: he may be its rightful
 * owner, and the reader the one who is wrong. Guards tell: with them no place is given out again so
 * soon. */
static bool is_ambiguous(const struct chase *chase, int level)
{
	if (level < 0 || (size_t)level >= chase->first->backtrack.steps.count ||
	    !chase_may_go_on(chase))
		return false;
	VEC_FOREACH (&chase->levels[level].sights, sight)
		if (sight->stale)
			return false;
	return chase->first->backtrack.steps.items[level].in_former;
}

/* The bad value stands in an object of CPython's pools, whose places have always been others', or
 * it was found by looking for it in such a place: that block is hardly the one that the crash
 * meant. */
static bool is_elsewhere(const struct chase *chase)
{
	const struct backtrack_step *step = &chase->first->backtrack.steps.items[0];

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
	chase->ret->outcome = mem_printf("who wrote it is known after %u hop%s", chase->ret->hops,
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

	if (r == 0 && !chase->found)
		r = find_damage(chase, &told, err);
	if (r < 0 || told || !chase->found)
		return r;
	if (!chase->first->has_backtrack && wants_heap(chase))
		return guards_instead(chase, &told, err);
	if (!worth_watching(chase)) {
		chase->ret->outcome =
			mem_strdup(chase->first->no_backtrack ? chase->first->no_backtrack
							      : "nothing to follow");
		return 0;
	}
	chase_say(chase, "trial %" PRIu64 ": %zu home%s found on the way back from the crash",
		  chase->first->trial, chase->first->backtrack.steps.count,
		  chase->first->backtrack.steps.count == 1 ? "" : "s");
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

/* What was caught, if anybody was, does not explain it. */
static bool is_nobody(const struct chase *chase)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&chase->ret->evidence, &verdict);
	return verdict.class == VERDICT_NOT_CAUGHT;
}

/* Guards, where they have not been asked yet; then whether it goes with what stands in blocks. */
static int try_the_rest(struct chase *chase, struct err *err)
{
	bool told = false;
	int r = 0;

	if (!chase->found || !chase_may_go_on(chase) || !wants_heap(chase) || !is_nobody(chase))
		return 0;
	if (chase->ret->guarded_trials == 0)
		r = guards_instead(chase, &told, err);
	return r == 0 && !told && chase_may_go_on(chase) ? guards_values(chase, err) : r;
}

/* Who did it may be two threads that did it together. */
static int chase_whole(struct chase *chase, struct err *err)
{
	const struct evidence *lead = chase->request->lead;
	int r;

	if (lead && !lead_is_crash(lead))
		return lead_follow(chase, lead, err);
	if (chase->request->freed)
		return guards_values(chase, err);
	r = chase_all(chase, err);
	if (r == 0 && chase->found && chase_may_go_on(chase))
		r = race_look(chase, err);
	return r == 0 ? try_the_rest(chase, err) : r;
}

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err)
{
	static const struct crash_reading none;
	struct chase chase = {
		.request = request, .ret = ret, .first = &none, .started_s = series_now_s()
	};
	struct series_start start = { 0 };
	int r;

	chase.look_max = look_max(request);
	chase.runner.settings = request->settings;
	chase.symbols = runner_symbols(&chase.runner);
	chase.runner.observer = OBSERVE_IDS;
	chase.runner.slots = request->jobs;
	chase.runner.ops = &chase_ops;
	chase.runner.ctx = &chase;
	r = series_resume(cs, &request->identity, request->fresh, 0, &chase.runner, &start, err);
	if (r == 0)
		r = chase_whole(&chase, err);
	if (r == 0)
		r = await_cut(&chase, err);
	if (!ret->outcome && chase.tossed > 0)
		ret->outcome = mem_printf("guards around blocks showed no damage, and %" PRIu64
					  " trials no sign that it goes with what stands in freed "
					  "or new blocks",
					  chase.tossed);
	if (!ret->outcome)
		ret->outcome =
			mem_strdup(chase.found	     ? "it ended before anything was caught"
				   : ret->others > 0 ? "it failed in other ways only"
				   : chase.looks > 0 ? "it did not crash, and guards around blocks "
						       "showed no damage"
						     : "it did not crash");
	ret->found = chase.found;
	ret->interrupted = chase.runner.interrupted;
	forget_sights(&chase);
	evidence_list_deinit(&chase.guarded);
	reading_close(chase.reading);
	reading_close(chase.first_reading);
	stakeout_deinit(&chase.stakeout);
	recycler_deinit(&chase.recycler);
	VEC_DEINIT(&chase.files);
	strbuf_deinit(&chase.items);
	hook_planner_free(chase.hooks);
	runner_deinit(&chase.runner);
	return r;
}

void chase_result_deinit(struct chase_result *result)
{
	evidence_list_deinit(&result->evidence);
	mem_free(result->outcome);
}
