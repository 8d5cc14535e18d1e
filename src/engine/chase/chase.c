#include "engine/chase/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/heap/evidence.h"
#include "engine/heap/heap.h"
#include "engine/stats/rate.h"
#include "engine/trial/observe.h"

#define FAILURES_UNWATCHED 3u /* failing trials whose victim was not watched, until another way */
#define FAILURES_PER_VICTIM 10u /* …and while some were: keys that hold by chance */
#define HEAP_TRIALS 6u

static void say(struct chase *chase, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct chase *chase, const char *fmt, ...)
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

static int chase_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct chase *chase = ctx;

	if (chase->next > chase->end || out_of_time(chase))
		return 0;
	*ret = (struct run){ .position = chase->next++ };
	return 1;
}

static void chase_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct chase *chase = ctx;

	series_fill_job(chase->request->program, chase->request->slot_env, job);
	job->examined = true;
	job->wild = true;
	job->observer = chase->guarding	 ? OBSERVE_HEAP
			: chase->looking ? OBSERVE_IDS
					 : OBSERVE_WATCH;
	if (chase->scouting)
		job->observer = OBSERVE_IDS;
	if (!chase->looking)
		strbuf_add(&job->plan_items, chase->items.data, chase->items.len);
}

/* Whoever made the mapped file shorter may have been another trial. */
static void find_cut(struct chase *chase, struct crash *crash)
{
	struct file_cut *cut = NULL;

	if (crash->fault == FAULT_MAPPING_SHRANK && crash->file_inode != 0 && !crash->cut &&
	    case_find_cut(chase->runner.cs, crash->file_device, crash->file_inode,
			  crash->realtime_ns, &cut, NULL) == 0)
		crash->cut = cut;
}

static void chase_examine(void *ctx, const struct trial_result *result, const char *name)
{
	struct chase *chase = ctx;

	chase->number = result->number.value;
	chase->signal = result->end.signal != 0 ? result->end.signal : result->end.observed.signal;
	(void)snprintf(chase->name, sizeof(chase->name), "%s", name);
	crash_report_deinit(&chase->report);
	chase->report = (struct crash_report){ 0 };
	chase->pending = true;
	/* The crash and what it touched, while its directory is there. */
	if (chase->signal != 0)
		(void)autopsy_trial(chase->autopsy, case_trials_dir(chase->runner.cs), name,
				    chase->signal, AUTOPSY_WHOLE, &chase->report, NULL);
	if (chase->report.crashes.count > 0)
		find_cut(chase, &chase->report.crashes.items[0]);
	chase->ret->evidence.trials++;
	/* The directory of a trial that passed is gone before it is recorded. */
	if (chase->guarding)
		read_guarded(chase);
	else if (chase->scouting)
		read_scouted(chase);
	else if (!chase->looking && chase->signal == 0 && result->end.exit_status == 0)
		read_passing(chase);
}

/* What nobody can write to is not watched: a mapping whose file was cut, a wrong free. Then more of
 * the same are looked at, as they are. */
static bool worth_watching(const struct chase *chase)
{
	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING || e->kind == EVIDENCE_BAD_FREE)
			return false;
	return chase->first.has_trail;
}

static void look_at_crash(struct chase *chase)
{
	AUTO(clues_deinit) struct clues clues = { 0 };

	if (clues_open(&clues, case_trials_dir(chase->runner.cs), chase->name, chase->number,
		       chase->signal, chase->symbols, NULL) < 0 ||
	    !clues.has_scene)
		return;
	chase->found_count++;
	clues_tell(&clues, chase->symbols, &chase->report, &chase->ret->evidence);
	if (chase->found)
		return;
	chase->found = true;
	chase->first = clues;
	clues = (struct clues){ 0 };
}

/* Only the failure that is chased counts; `record` comes between examine and ended. */
static void chase_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct chase *chase = ctx;
	bool failed = false, wanted = false;

	VEC_FOREACH (&record->signatures->list, s) {
		failed = true;
		wanted |=
			!chase->request->signature || strcmp(s->id, chase->request->signature) == 0;
	}
	if (!chase->pending)
		return;
	chase->pending = false;
	chase->ret->evidence.failed += failed;
	if (chase->guarding || chase->scouting)
		return;
	if (!chase->looking) {
		chase->ret->watched_trials++;
		chase->ret->watched_failed += failed && wanted;
		if (failed && wanted)
			read_failing(chase);
		return;
	}
	if (failed && wanted)
		look_at_crash(chase);
}

static bool chase_ended(void *ctx, const struct run *run, bool failed)
{
	struct chase *chase = ctx;

	if (chase->guarding)
		return chase->guarded_caught >= chase->request->wanted;
	if (chase->scouting)
		return true;
	if (chase->looking)
		return chase->found &&
		       (worth_watching(chase) || chase->found_count >= chase->request->wanted);
	return chase->round_watched >= chase->request->wanted ||
	       (chase->round_watched == 0 && chase->round_failed >= FAILURES_UNWATCHED) ||
	       (chase->other_way && chase->round_failed >= FAILURES_PER_VICTIM *
								   chase->round_watched &&
		chase->round_failed >= FAILURES_PER_VICTIM);
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
	AUTO(mem_freep) char *name = mem_printf("%" PRIu64, request->from);

	if (request->from != 0 &&
	    clues_open(&chase->first, case_trials_dir(chase->runner.cs), name, request->from, 0,
		       chase->symbols, NULL) == 0 &&
	    chase->first.has_trail && chase->first.trail.steps.items[0].in.id != 0) {
		(void)autopsy_trial(chase->autopsy, case_trials_dir(chase->runner.cs), name, 0,
				    AUTOPSY_WHOLE, &chase->report, NULL);
		clues_tell(&chase->first, chase->symbols, &chase->report, &chase->ret->evidence);
		chase->found = true;
		return 0;
	}
	clues_deinit(&chase->first);
	chase->looking = true;
	say(chase, "running it with allocation ids until it fails, to see what is hit");
	return runner_run(&chase->runner, err);
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
		bool added = false;

		if (step->home.kind == HOME_GLOBAL)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  STAKE_GLOBAL, 0);
		else if (round == 0)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  STAKE_KEY, 0);
		else if (!any)
			added = stakeout_add_step(&chase->stakeout, &chase->first.scene, step, i,
						  STAKE_ARGUMENT, round - 1);
		any |= added && step->home.kind != HOME_GLOBAL;
	}
	return chase->stakeout.list.count > 0 && (round == 0 || any);
}

/* Is there anything that stake_out() would watch in that round? */
static bool can_stake_out(const struct chase *chase, unsigned int round)
{
	const struct trail *trail = &chase->first.trail;

	for (unsigned int i = 0; i < trail->steps.count && i < LEVELS_MAX; i++)
		if (trail->steps.items[i].home.kind != HOME_GLOBAL &&
		    trail->steps.items[i].handles.count >= round)
			return true;
	return false;
}

static int plan(struct chase *chase, struct err *err)
{
	int r;

	strbuf_clear(&chase->items);
	/* Anew each time: a planner hands out what it has not planned before. */
	hook_planner_free(chase->hooks);
	chase->hooks = NULL;
	r = hook_planner_new(chase->request->program_path, chase->request->settings->cwd,
			     chase->request->slot_env, &chase->hooks, err);
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
	int r = plan(chase, err);

	chase->looking = false;
	chase->round_failed = chase->round_watched = 0;
	return r == 0 ? runner_run(&chase->runner, err) : r;
}

static bool may_go_on(const struct chase *chase)
{
	return !chase->runner.interrupted && chase->next <= chase->end && !out_of_time(chase);
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
 * was caught leaving the value. -1: none. */
static int telling_level(const struct chase *chase)
{
	int caught = -1;

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		size_t stale = 0, writes = 0;

		VEC_FOREACH (&chase->levels[i].sights, sight) {
			stale += sight->stale;
			writes += sight->write.write != NULL;
		}
		if (stale > 0)
			return (int)i;
		/* Never written, and not zero: what was there before the block was. */
		if (caught < 0 && (writes > 0 || unwritten(&chase->levels[i])))
			caught = (int)i;
	}
	return caught;
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

/* ---- with guards --------------------------------------------------------------------------------
 */

/* The series of the same command under the heap observer: as cmd/trial_options.c writes it. */
static char *heap_settings(const char *text)
{
	static const char from[] = "observe 5:watch\n", to[] = "observe 4:heap\n";
	const char *at = strstr(text, from);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!at)
		return mem_printf("%sheap 1\n", text);
	strbuf_add(&sb, text, (size_t)(at - text));
	strbuf_adds(&sb, to);
	strbuf_adds(&sb, at + strlen(from));
	return strbuf_take(&sb);
}

/* Guards around blocks and freed ones kept back: which block is damaged, freed twice, or used after
 * its free. Then the damaged bytes are watched, with the guards still on. */
static int look_at_heap(struct chase *chase, struct err *err)
{
	const struct chase_request *request = chase->request;
	AUTO(mem_freep) char *settings = heap_settings(request->identity.settings);
	struct heap_report report = { 0 };
	struct heap_request heap = { .identity = request->identity,
				     .settings = request->settings,
				     .program = request->program,
				     .slot_env = request->slot_env,
				     .jobs = request->jobs,
				     .trials = HEAP_TRIALS,
				     .seed = chase->first.trial,
				     .progress = request->progress,
				     .progress_ctx = request->progress_ctx };
	int r;

	heap.identity.command = "heap";
	heap.identity.settings = settings;
	observe_heap_defaults(heap.seed, &heap.plan);
	say(chase, "running it with guards around blocks, to see which is damaged");
	r = heap_run(chase->runner.cs, &heap, &report, err);
	if (r == 0) {
		chase->ret->evidence.trials += report.heap.trials;
		chase->ret->evidence.failed += report.heap.failed;
		heap_evidence(&report, &chase->ret->evidence);
		stakeout_deinit(&chase->stakeout);
		chase->stakeout = (struct stakeout){ 0 };
		VEC_FOREACH (&report.findings, finding)
			if (finding->kind <= HEAP_WRITE_AFTER_FREE && !finding->continued &&
			    chase->stakeout.list.count < LEVELS_MAX)
				(void)stakeout_add_damage(&chase->stakeout, finding);
		chase->heap_findings = report.findings.count;
	}
	chase->runner.interrupted |= report.interrupted;
	heap_report_deinit(&report);
	if (r < 0 || chase->stakeout.list.count == 0 || chase->runner.interrupted)
		return r;
	say(chase, "watching the damaged bytes");
	r = plan(chase, err);
	chase->looking = false;
	chase->guarding = true;
	if (r == 0)
		r = runner_run(&chase->runner, err);
	chase->guarding = false;
	return r;
}

/* Where the crash says too little by itself: glibc's own alarm, a value that leads nowhere. */
static bool wants_heap(const struct chase *chase)
{
	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING || e->kind == EVIDENCE_BAD_FREE ||
		    e->kind == EVIDENCE_FREED_USE)
			return false;
	return true;
}

/* Somebody was caught writing to a block whose place was another's before: he may be its rightful
 * owner, and the reader the one who is wrong. Guards tell: with them no place is given out again so
 * soon. */
static bool is_ambiguous(const struct chase *chase, int level)
{
	if (level < 0 || (size_t)level >= chase->first.trail.steps.count || !may_go_on(chase))
		return false;
	VEC_FOREACH (&chase->levels[level].sights, sight)
		if (sight->stale)
			return false;
	return chase->first.trail.steps.items[level].in_former;
}

static int heap_instead(struct chase *chase, struct err *err)
{
	int r = look_at_heap(chase, err);

	if (r == 0 && chase->heap_findings > 0)
		chase->ret->outcome =
			mem_printf("found with guards around blocks%s",
				   chase->guarded_caught > 0 ? ", and caught there" : "");
	return r;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static void forget_sights(struct chase *chase)
{
	for (size_t i = 0; i < sizeof(chase->levels) / sizeof(chase->levels[0]); i++)
		level_deinit(&chase->levels[i]);
	memset(chase->levels, 0, sizeof(chase->levels));
}

/* What was seen before counts until this round has seen it again. */
static int run_again(struct chase *chase, struct err *err)
{
	struct level before[LEVELS_MAX];
	int was = telling_level(chase), now;
	size_t seen = 0;
	int r;

	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		seen += chase->levels[i].sights.count;
	memcpy(before, chase->levels, sizeof(before));
	memset(chase->levels, 0, sizeof(before));
	r = run_round(chase, err);
	now = telling_level(chase);
	/* A home farther away from the failure says less. */
	if ((now >= 0 && (was < 0 || now <= was)) || seen == 0) {
		for (unsigned int i = 0; i < LEVELS_MAX; i++)
			level_deinit(&before[i]);
		return r;
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		level_deinit(&chase->levels[i]);
	memcpy(chase->levels, before, sizeof(before));
	return r;
}

static int watch_homes(struct chase *chase, struct err *err)
{
	int r = 0;

	for (unsigned int round = 0; r == 0 && may_go_on(chase); round++) {
		if (!stake_out(chase, round))
			break;
		say(chase,
		    round == 0 ? "watching %zu home%s by the key of their blocks"
			       : "the keys did not lead to the victim: watching %zu home%s as what "
				 "a function on the crash's stack is given",
		    chase->stakeout.list.count, chase->stakeout.list.count == 1 ? "" : "s");
		chase->other_way = can_stake_out(chase, round + 1);
		r = run_again(chase, err);
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

	if (chase->request->hops < 2 || !may_go_on(chase) || !copy ||
	    !stakeout_add_source(&chase->stakeout, copy->write.write, &copy->source, LEVELS_MAX))
		return 0;
	say(chase, "the value was only copied: watching where it came from, too");
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
	say(chase, "looking at %zu functions for an allocator of the program's own",
	    chase->scout.list.count);
	strbuf_clear(&chase->items);
	hook_planner_free(chase->hooks);
	chase->hooks = NULL;
	r = hook_planner_new(chase->request->program_path, chase->request->settings->cwd,
			     chase->request->slot_env, &chase->hooks, err);
	if (r < 0)
		goto out;
	scout_plan(&chase->scout, chase->hooks, &chase->items);
	chase->looking = false;
	chase->scouting = true;
	r = runner_run(&chase->runner, err);
	chase->scouting = false;
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
			known |= trail->steps.items[k].in.key.stack_hash ==
				 step->in.key.stack_hash;
		if (!known && !chase->recycler.found && may_go_on(chase))
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

		if (step->home.kind == HOME_BLOCK &&
		    step->in.key.stack_hash == chase->recycler.stack_hash)
			(void)stakeout_add_result(&chase->stakeout, step, i,
						  chase->recycler.hands_out);
		else
			(void)stakeout_add_step(
				&chase->stakeout, &chase->first.scene, step, i,
				step->home.kind == HOME_GLOBAL ? STAKE_GLOBAL : STAKE_KEY, 0);
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
	if (r < 0 || !chase->recycler.found || !may_go_on(chase))
		return r;
	say(chase, "%s", chase->recycler.words);
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
		   more		      ? HOP_GOES_ON
		   : may_go_on(chase) ? HOP_ORIGIN
				      : HOP_LIMIT);
	if (more)
		tell_level(chase, source, 2, HOP_ORIGIN);
	chase->ret->outcome = mem_printf("caught after %u hop%s", chase->ret->hops,
					 chase->ret->hops == 1 ? "" : "s");
}

/* The pointer at the source of a copy belongs to the home one level up: levels of sources follow.
 */
static int chase_all(struct chase *chase, struct err *err)
{
	int r = find_crash(chase, err);
	int level;

	if (r < 0 || !chase->found)
		return r;
	if (!chase->first.has_trail && wants_heap(chase))
		return heap_instead(chase, err);
	if (!worth_watching(chase)) {
		chase->ret->outcome = mem_strdup(chase->first.no_trail ? chase->first.no_trail
								       : "nothing to follow");
		return 0;
	}
	say(chase, "trial %" PRIu64 ": %zu home%s found on the way back from the crash",
	    chase->first.trial, chase->first.trail.steps.count,
	    chase->first.trail.steps.count == 1 ? "" : "s");
	r = watch_homes(chase, err);
	level = telling_level(chase);
	if (r == 0 && is_ambiguous(chase, level)) {
		struct stakeout homes = chase->stakeout;

		/* It watches what it finds damaged; the homes are watched again afterwards. */
		chase->stakeout = (struct stakeout){ 0 };
		r = heap_instead(chase, err);
		if (r < 0 || chase->heap_findings > 0) {
			stakeout_deinit(&homes);
			return r;
		}
		stakeout_deinit(&chase->stakeout);
		chase->stakeout = homes;
	}
	if (r == 0 && level >= 0 && copied_from(&chase->levels[level]))
		r = follow_copies(chase, level, err);
	else if (r == 0 && level >= 0)
		r = follow_recycler(chase, level, err);
	if (r == 0)
		conclude(chase);
	return r;
}

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err)
{
	struct chase chase = { .request = request,
			       .ret = ret,
			       .next = 1,
			       .end = request->trials,
			       .started_s = series_now_s() };
	struct series_start start = { 0 };
	int r;

	chase.symbols = symbols_new(&(struct symbols_options){ 0 });
	chase.autopsy = autopsy_new();
	chase.runner.settings = request->settings;
	chase.runner.observer = OBSERVE_IDS;
	chase.runner.slots = request->jobs;
	chase.runner.ops = &chase_ops;
	chase.runner.ctx = &chase;
	r = series_resume(cs, &request->identity, true, 0, &chase.runner, &start, err);
	if (r == 0)
		r = chase_all(&chase, err);
	if (!ret->outcome)
		ret->outcome = mem_strdup(chase.found ? "it ended before anything was caught"
						      : "it did not crash");
	ret->interrupted = chase.runner.interrupted;
	forget_sights(&chase);
	clues_deinit(&chase.first);
	stakeout_deinit(&chase.stakeout);
	recycler_deinit(&chase.recycler);
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
