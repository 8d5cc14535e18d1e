#include "engine/chase/chase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/autopsy/pointers.h"
#include "engine/chase/clues.h"
#include "engine/chase/stakeout.h"
#include "engine/heap/evidence.h"
#include "engine/heap/heap.h"
#include "engine/stats/rate.h"
#include "engine/trial/observe.h"

#define LEVELS_MAX 4u	      /* steps of the trail that are watched */
#define FAILURES_UNWATCHED 3u /* failing trials whose victim was not watched, until another way */
#define HARMLESS_MAX 40u
#define HARMLESS_PER_TRIAL 6u
#define NEAR_NS 10000000u
#define HEAP_TRIALS 6u

/* What a failing trial showed at one level. */
struct sight {
	uint64_t trial;
	bool watched, since_birth;
	struct victim victim;
	uint64_t birth_value;  /* what was there when the watch began */
	struct evidence write; /* kind EVIDENCE_WRITE; write NULL: nobody was caught */
	struct evidence race;  /* race NULL: none */
	struct block_key source_key;
	struct home home;
	struct block_life *in;	   /* the victim's block */
	bool stale;		   /* the pointer there was stored before its target was born */
	struct block_life *target; /* the freed block that it leads to */
	bool target_exact;
	struct log_block former;
};

struct level {
	VEC(struct sight) sights; /* one per failing trial */
};

struct chase {
	const struct chase_request *request;
	struct chase_result *ret;
	struct runner runner;
	struct symbols *symbols;
	struct autopsy *autopsy;
	struct hook_planner *hooks;
	uint64_t next; /* position */
	uint64_t end;  /* no position after this */
	bool looking;  /* for the first crash */
	bool guarding; /* heap observer, with watches on what it found damaged */
	uint64_t guarded_caught;
	bool found;
	uint64_t found_count; /* crashes seen meanwhile */
	struct clues first;
	struct stakeout stakeout;
	struct strbuf items; /* of the plan */
	struct level levels[LEVELS_MAX + 4];
	unsigned int level_count;
	uint64_t round_failed, round_watched; /* of this round: failing trials; victim watched */
	uint64_t key_right, key_tried;
	unsigned int harmless;
	size_t heap_findings;
	/* Of the trial that is being read, until it is known whether it failed. */
	struct crash_report report;
	char name[24];
	uint64_t number;
	int signal;
	bool pending;
	double started_s;
};

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

/* ---- reading a failing trial that was watched ---------------------------------------------------
 */

/* The step of this trial's trail that is the home of the stake. */
static const struct trail_step *same_step(const struct trail *trail, const struct stake *stake)
{
	VEC_FOREACH (&trail->steps, step)
		if (home_same(&step->home, &stake->home))
			return step;
	return NULL;
}

static struct event_log *same_log(struct watch_log *log, const struct event_log *as)
{
	VEC_FOREACH (&log->logs.list, in)
		if (strcmp(in->name, as->name) == 0)
			return in;
	return NULL;
}

/* Stored before the block was born that has the place now: it was meant for the one before. Ids of
 * one thread are in the order of time, those of different threads need not be. */
static bool stored_before(const struct log_hit *hit, bool exact, const struct log_block *now)
{
	return exact && hit->lane == now->key.lane && hit->allocations != 0 &&
	       hit->allocations <= now->id;
}

static void see_target(struct chase *chase, struct clues *clues, const struct trail_step *step,
		       const struct stake_result *result, struct sight *sight)
{
	const struct log_block *freed = NULL;

	if (step->to.id != 0 && step->to.state == LOG_BLOCK_FREED &&
	    step->to.relation == LOG_INSIDE)
		freed = &step->to;
	else if (step->to_former.id != 0 && result->caught &&
		 stored_before(result->last->hit, result->exact, &step->to))
		freed = &step->to_former;
	if (!freed)
		return;
	sight->stale = true;
	sight->target = mem_alloc(sizeof(*sight->target));
	block_life_read(clues->scene.log, freed, "the pointer", chase->symbols, sight->target);
	sight->target->value = step->value;
	sight->target_exact = step->value == freed->start;
	sight->former = *freed;
	sight->former.value = step->value;
}

/* Two threads at one place, one right after the other. */
static void see_race(struct chase *chase, const struct watch_log *log, const struct event_log *in,
		     struct sight *sight, const struct stake_result *result)
{
	const struct caught *other = NULL;
	struct writer writer;
	bool decoded;

	if (!result->exact)
		return;
	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log == in && hit->address == sight->victim.address &&
		    hit->tid != result->last->hit->tid &&
		    hit->number != result->last->hit->number &&
		    llabs((int64_t)(hit->time_ns - result->last->hit->time_ns)) < (int64_t)NEAR_NS)
			other = caught;
	}
	if (!other)
		return;
	sight->race = evidence_new(EVIDENCE_RACE, sight->trial, true);
	sight->race.race->first = mem_alloc(sizeof(*sight->race.race->first));
	sight->race.race->second = mem_alloc(sizeof(*sight->race.race->second));
	home_copy(&sight->race.race->home, &sight->home);
	decoded = caught_decode(other, &writer) == 0;
	caught_tell(other, decoded ? &writer : NULL, chase->symbols, sight->race.race->first);
	decoded = caught_decode(result->last, &writer) == 0;
	caught_tell(result->last, decoded ? &writer : NULL, chase->symbols,
		    sight->race.race->second);
	if (other->hit->time_ns > result->last->hit->time_ns) {
		struct write_seen *first = sight->race.race->first;

		sight->race.race->first = sight->race.race->second;
		sight->race.race->second = first;
	}
	sight->race.race->gap_ns =
		(uint64_t)llabs((int64_t)(other->hit->time_ns - result->last->hit->time_ns));
	/* Both made the same value out of what they had read: one of the two is lost. */
	sight->race.race->lost_update =
		sight->race.race->first->new == sight->race.race->second->new &&
		sight->race.race->first->old != sight->race.race->first->new &&
		sight->race.race->second->old == sight->race.race->second->new;
}

static void see_level(struct chase *chase, struct clues *clues, const struct watch_log *log,
		      struct event_log *in, const struct stake *stake,
		      const struct trail_step *step)
{
	struct sight sight = { .trial = clues->trial,
			       .victim = { .address = step->home.address,
					   .value = step->value,
					   .id = step->in.id,
					   .len = step->width } };
	struct stake_result result;

	stakeout_look(log, in, &sight.victim, &result);
	sight.watched = result.watched;
	sight.since_birth = result.since_birth && stake->by == STAKE_KEY;
	sight.birth_value = result.watched ? result.row.first_value : 0;
	home_copy(&sight.home, &step->home);
	if (step->in.id != 0) {
		sight.in = mem_alloc(sizeof(*sight.in));
		block_life_read(clues->scene.log, &step->in, "the home", chase->symbols, sight.in);
	}
	if (result.caught) {
		sight.write = evidence_new(EVIDENCE_WRITE, clues->trial, true);
		stakeout_tell(&result, &sight.victim, in, chase->symbols, sight.write.write,
			      &sight.source_key);
		/* Named as the crash names it: the same in all trials. */
		home_deinit(&sight.write.write->home);
		home_copy(&sight.write.write->home, &step->home);
		see_race(chase, log, in, &sight, &result);
	}
	see_target(chase, clues, step, &result, &sight);
	if (stake->by == STAKE_KEY) {
		chase->key_tried++;
		chase->key_right += sight.watched;
	}
	VEC_PUSH(&chase->levels[stake->level].sights, sight);
}

/* The source of a copy, in the same trial: the latest write there before the copy. */
static void see_source(struct chase *chase, struct clues *clues, const struct watch_log *log,
		       struct event_log *in, const struct stake *stake)
{
	struct level *above = &chase->levels[stake->level - 1];
	const struct sight *copy = NULL;
	struct stake_result result;
	struct sight sight = { .trial = clues->trial };

	VEC_FOREACH (&above->sights, s)
		if (s->trial == clues->trial && s->write.write &&
		    (s->write.write->flags & WRITE_COPIED))
			copy = s;
	if (!copy || !home_same(&copy->write.write->source, &stake->home))
		return;
	sight.victim = (struct victim){ .address = copy->write.write->source.address,
					.value = copy->write.write->new,
					.len = (unsigned int)copy->write.write->source.len };
	VEC_FOREACH (&log->hits, caught)
		if (caught->log == in && caught->hit->address == copy->victim.address &&
		    watched_word(caught->hit->new, caught->hit->bytes) == copy->victim.value)
			sight.victim.before = caught->hit->number;
	stakeout_look(log, in, &sight.victim, &result);
	sight.watched = result.watched || stake->by == STAKE_GLOBAL;
	home_copy(&sight.home, &copy->write.write->source);
	if (result.caught) {
		sight.write = evidence_new(EVIDENCE_WRITE, clues->trial, true);
		stakeout_tell(&result, &sight.victim, in, chase->symbols, sight.write.write,
			      &sight.source_key);
		home_deinit(&sight.write.write->home);
		home_copy(&sight.write.write->home, &sight.home);
	}
	VEC_PUSH(&chase->levels[stake->level].sights, sight);
}

/* Who else writes there without harm: for each writer its last whole hit. */
static void see_harmless(struct chase *chase, const struct watch_log *log, uint64_t trial,
			 bool failing, const struct clues *clues)
{
	unsigned int told = 0;
	uint64_t seen[HARMLESS_PER_TRIAL];

	for (size_t i = log->hits.count; i-- > 0 && told < HARMLESS_PER_TRIAL;) {
		const struct caught *caught = &log->hits.items[i];
		uint64_t rip = caught->hit->gregs[LOG_GREG_RIP];
		struct evidence e;
		struct writer writer;
		bool known = false, victim = false;

		for (unsigned int k = 0; k < told; k++)
			known |= seen[k] == rip;
		if (clues && clues->has_trail)
			VEC_FOREACH (&clues->trail.steps, step)
				victim |= step->home.address == caught->hit->address;
		if (known || victim || chase->harmless >= HARMLESS_MAX ||
		    (caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)))
			continue;
		seen[told++] = rip;
		chase->harmless++;
		e = evidence_new(EVIDENCE_WRITE, trial, failing);
		caught_tell(caught, caught_decode(caught, &writer) == 0 ? &writer : NULL,
			    chase->symbols, e.write);
		VEC_PUSH(&chase->ret->evidence.list, e);
	}
}

static void read_failing(struct chase *chase)
{
	AUTO(clues_deinit) struct clues clues = { 0 };
	struct watch_log log = { 0 };
	int trials = case_trials_dir(chase->runner.cs);
	bool watched = false;

	chase->round_failed++;
	if (clues_open(&clues, trials, chase->name, chase->number, chase->signal, chase->symbols,
		       NULL) < 0 ||
	    !clues.has_trail || watch_log_open(trials, chase->name, &log, NULL) < 0) {
		watch_log_deinit(&log);
		return;
	}
	for (size_t i = 0; i < chase->stakeout.list.count; i++) {
		const struct stake *stake = &chase->stakeout.list.items[i];
		const struct trail_step *step = same_step(&clues.trail, stake);
		struct event_log *in = same_log(&log, clues.scene.log);

		if (!in)
			continue;
		if (step && stake->level < LEVELS_MAX)
			see_level(chase, &clues, &log, in, stake, step);
		else if (stake->level >= LEVELS_MAX)
			see_source(chase, &clues, &log, in, stake);
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&chase->levels[i].sights, sight)
			watched |= sight->trial == clues.trial && sight->watched &&
				   (sight->write.write || sight->stale || sight->since_birth);
	chase->round_watched += watched;
	see_harmless(chase, &log, chase->number, true, &clues);
	clues_tell(&clues, chase->symbols, &chase->report, &chase->ret->evidence);
	watch_log_deinit(&log);
}

static void read_passing(struct chase *chase)
{
	struct watch_log log = { 0 };

	if (chase->harmless < HARMLESS_MAX &&
	    watch_log_open(case_trials_dir(chase->runner.cs), chase->name, &log, NULL) == 0)
		see_harmless(chase, &log, chase->number, false, NULL);
	watch_log_deinit(&log);
}

/* ---- what the heap observer found ---------------------------------------------------------------
 */

/* The last write there that was not ours: it is what damaged the guard or the freed block. */
static const struct caught *damaging_hit(const struct watch_log *log, uint32_t watch)
{
	const struct caught *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->hit->watch == watch &&
		    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0)
			found = caught;
	return found;
}

static void read_guarded(struct chase *chase)
{
	struct watch_log log = { 0 };
	bool any = false;

	if (watch_log_open(case_trials_dir(chase->runner.cs), chase->name, &log, NULL) == 0) {
		for (size_t i = 0; i < chase->stakeout.list.count; i++) {
			const struct caught *caught = damaging_hit(&log, (uint32_t)i);
			struct evidence e;
			struct writer writer;

			if (!caught)
				continue;
			any = true;
			e = evidence_new(EVIDENCE_WRITE, chase->number, true);
			caught_tell(caught, caught_decode(caught, &writer) == 0 ? &writer : NULL,
				    chase->symbols, e.write);
			home_deinit(&e.write->home);
			home_copy(&e.write->home, &chase->stakeout.list.items[i].home);
			e.write->flags |= WRITE_LAST | WRITE_FOUND;
			VEC_PUSH(&chase->ret->evidence.list, e);
		}
	}
	chase->guarded_caught += any;
	watch_log_deinit(&log);
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
	if (chase->guarding)
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
	if (chase->looking)
		return chase->found &&
		       (worth_watching(chase) || chase->found_count >= chase->request->wanted);
	return chase->round_watched >= chase->request->wanted ||
	       (chase->round_watched == 0 && chase->round_failed >= FAILURES_UNWATCHED);
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

static int plan(struct chase *chase, struct err *err)
{
	int r;

	strbuf_clear(&chase->items);
	/* Anew each time: a planner hands out what it has not planned before. */
	hook_planner_free(chase->hooks);
	chase->hooks = NULL;
	r = hook_planner_new(chase->request->program_path, chase->request->settings->cwd,
			     chase->request->slot_env, &chase->hooks, err);
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

/* ---- evidence ----------------------------------------------------------------------------------
 */

static void tell_account(struct chase *chase, const struct sight *sight)
{
	struct evidence e = evidence_new(EVIDENCE_WATCH, sight->trial, true);
	bool traced = chase->request->settings->flags & TRIAL_TRACED;

	home_copy(&e.watch->home, &sight->home);
	e.watch->mode = mem_strdup(traced ? "ptrace" : "hw");
	e.watch->victim_watched = sight->watched;
	e.watch->since_birth = sight->since_birth;
	e.watch->kernel_writes = !traced;
	e.watch->value_known = true;
	e.watch->value = sight->victim.value;
	e.watch->birth_value = sight->birth_value;
	e.watch->hits = sight->write.write ? 1 : 0;
	VEC_PUSH(&chase->ret->evidence.list, e);
}

static void tell_holder(struct chase *chase, struct sight *sight)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, sight->trial, true);

	home_copy(&e.holder->home, &sight->home);
	e.holder->holder = TAKE(sight->in);
	e.holder->target = TAKE(sight->target);
	e.holder->used = true;
	e.holder->exact = sight->target_exact;
	if (sight->write.write)
		stack_copy(&e.holder->written_by, &sight->write.write->writer);
	VEC_PUSH(&chase->ret->evidence.list, e);
}

/* The block whose place another one has now was used, too: the crash alone could not tell. */
static void tell_recycled_use(struct chase *chase, const struct sight *sight)
{
	struct evidence e;

	VEC_FOREACH (&chase->ret->evidence.list, known)
		if (known->kind == EVIDENCE_FREED_USE && known->trial == sight->trial)
			return;
	if (!sight->target)
		return;
	e = evidence_new(EVIDENCE_FREED_USE, sight->trial, true);
	e.freed_use->block = mem_alloc(sizeof(*e.freed_use->block));
	*e.freed_use->block = *sight->target;
	e.freed_use->block->via = mem_strdup(sight->target->via);
	e.freed_use->block->key = sight->target->key ? mem_strdup(sight->target->key) : NULL;
	e.freed_use->block->allocated = (struct stack){ 0 };
	e.freed_use->block->freed = (struct stack){ 0 };
	stack_copy(&e.freed_use->block->allocated, &sight->target->allocated);
	stack_copy(&e.freed_use->block->freed, &sight->target->freed);
	e.freed_use->offset = (int64_t)(sight->former.value - sight->former.start);
	VEC_FOREACH (&chase->ret->evidence.list, known)
		if (known->kind == EVIDENCE_CRASH && known->trial == sight->trial) {
			stack_copy(&e.freed_use->user, &known->crash->stack);
			break;
		}
	VEC_PUSH(&chase->ret->evidence.list, e);
}

static void tell_hop(struct chase *chase, unsigned int number, const struct level *level,
		     enum hop_end end)
{
	struct evidence e = evidence_new(EVIDENCE_HOP, 0, true);
	const struct sight *best = NULL;

	e.hop->number = number;
	VEC_FOREACH (&level->sights, sight) {
		e.hop->watched += sight->watched;
		e.hop->caught += sight->write.write != NULL || sight->stale;
		if (!best || sight->write.write)
			best = sight;
	}
	if (best)
		home_copy(&e.hop->home, &best->home);
	e.hop->trials = chase->ret->evidence.trials;
	e.hop->key_right = chase->key_right;
	e.hop->key_tried = chase->key_tried;
	e.hop->end = end;
	VEC_PUSH(&chase->ret->evidence.list, e);
	chase->ret->hops = number;
}

static void tell_level(struct chase *chase, struct level *level, unsigned int number,
		       enum hop_end end)
{
	tell_hop(chase, number, level, end);
	VEC_FOREACH (&level->sights, sight) {
		tell_account(chase, sight);
		if (sight->stale) {
			tell_recycled_use(chase, sight);
			tell_holder(chase, sight);
		}
		if (sight->write.write) {
			VEC_PUSH(&chase->ret->evidence.list, sight->write);
			sight->write.write = NULL;
		}
		if (sight->race.race) {
			VEC_PUSH(&chase->ret->evidence.list, sight->race);
			sight->race.race = NULL;
		}
	}
}

static void level_deinit(struct level *level)
{
	VEC_FOREACH (&level->sights, sight) {
		home_deinit(&sight->home);
		block_life_free(sight->in);
		block_life_free(sight->target);
		if (sight->write.write)
			evidence_deinit(&sight->write);
		if (sight->race.race)
			evidence_deinit(&sight->race);
	}
	VEC_DEINIT(&level->sights);
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
		r = run_round(chase, err);
		if (chase->round_watched > 0)
			break;
		if (may_go_on(chase))
			forget_sights(chase);
	}
	return r;
}

/* Watches the source of a copy together with what was watched before. What the first round saw
 * counts until the second has seen it again. */
static int follow_copies(struct chase *chase, int level, struct err *err)
{
	const struct sight *copy = copied_from(&chase->levels[level]);
	struct level before[LEVELS_MAX];
	int r;

	if (chase->request->hops < 2 || !may_go_on(chase) || !copy ||
	    !stakeout_add_source(&chase->stakeout, chase->first.scene.log, copy->write.write,
				 &copy->source_key, LEVELS_MAX))
		return 0;
	say(chase, "the value was only copied: watching where it came from, too");
	memcpy(before, chase->levels, sizeof(before));
	memset(chase->levels, 0, sizeof(before));
	r = run_round(chase, err);
	if (telling_level(chase) >= 0) {
		for (unsigned int i = 0; i < LEVELS_MAX; i++)
			level_deinit(&before[i]);
		return r;
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		level_deinit(&chase->levels[i]);
	memcpy(chase->levels, before, sizeof(before));
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
		r = heap_instead(chase, err);
		if (r < 0 || chase->heap_findings > 0)
			return r;
	}
	if (r == 0 && level >= 0)
		r = follow_copies(chase, level, err);
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
