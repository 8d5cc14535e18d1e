/*
 * Trials of those experiments that ask who did it: one series, round after round (rounds.c).
 */
#include "hunt/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "base/now.h"
#include "judge/judge.h"
#include "search/stats/rate.h"

#define STRANGERS 3u   /* in a row, until they are taken for the same failure */
#define QUIET_LOOK 40u /* trials without a crash, until guards are asked */

void bench_say(struct bench *bench, const struct said *said)
{
	if (bench->request->say)
		bench->request->say(bench->request->say_ctx, said);
}

void bench_say_values(struct bench *bench, const char *id, struct said_value *values)
{
	AUTO(said_deinit) struct said said = { 0 };

	said_make(&said, id, values);
	bench_say(bench, &said);
}

static bool out_of_time(const struct bench *bench)
{
	return bench->request->limits.deadline_s > 0 &&
	       clock_s() > bench->request->limits.deadline_s;
}

/* On watched pages there are no guards: whatever is written behind a block is caught there. */
static enum observer observer_of(const struct bench *bench)
{
	const struct round_ops *ops = bench->round.ops;

	return ops->may_pages && bench->homes.pages ? OBSERVE_WATCH : ops->observer;
}

/* What was watched is counted apart from what was not. */
static unsigned int arm_of(const struct bench *bench)
{
	switch (observer_of(bench)) {
	case OBSERVE_HEAP:
		return CHASE_ARM_GUARDED;
	case OBSERVE_IDS:
		return CHASE_ARM_LOOKING;
	default:
		return CHASE_ARM_WATCHED;
	}
}

static bool will_do(const struct bench *bench)
{
	struct rate seen = { 0 };
	uint64_t missing;

	if (!bench->round.ops->missing)
		return false;
	bench_rate(bench, &seen.trials, &seen.failed);
	missing = bench->round.ops->missing(bench, &seen);
	return missing > 0 && seen.failed <= seen.trials &&
	       runner_will_do(&bench->runner, seen.trials, seen.failed, missing);
}

static int bench_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct bench *bench = ctx;

	if (bench->spent.trials >= bench->request->limits.trials || out_of_time(bench) ||
	    look_gives_up(bench) || will_do(bench))
		return 0;
	bench->spent.trials++;
	*ret = (struct run){ .position = bench->round.next++, .arm = arm_of(bench) };
	return 1;
}

static void bench_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct bench *bench = ctx;
	const struct round_ops *ops = bench->round.ops;

	/* Before the user's settings: of two for one name the last one holds. */
	if (ops->same_hashes && !getenv("PYTHONHASHSEED"))
		strv_add(&job->env, "PYTHONHASHSEED=1");
	series_fill_job(bench->request->program, bench->request->slot_env, job);
	job->examined = true;
	job->wild = true;
	job->observer = observer_of(bench);
	job->without_ids = bench->request->start.without_ids && job->observer != OBSERVE_HEAP;
	job->pages = ops->pages || (ops->may_pages && bench->homes.pages);
	if (ops->planned)
		strbuf_add(&job->plan_items, bench->items.data, bench->items.len);
}

void bench_take_reading(struct bench *bench, struct reading *reading)
{
	reading_close(bench->round.reading);
	bench->round.reading = reading;
	bench->round.number = reading_trial(reading);
}

struct reading *bench_reading_of(struct bench *bench, uint64_t trial, int signal)
{
	return readings_open(runner_readings(&bench->runner), bench->runner.cs, trial, signal);
}

const struct crash *bench_crash(struct bench *bench)
{
	return bench->round.signal != 0 ? reading_crash(bench->round.reading, CRASH_WHOLE) : NULL;
}

static void bench_examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	struct bench *bench = ctx;
	bool passed;

	/* It is read on when it is known whether it failed in the way that is chased. */
	bench_take_reading(bench, reading_share(reading));
	bench->round.signal =
		result->end.signal != 0 ? result->end.signal : result->end.observed.signal;
	bench->round.pending = true;
	bench->ret->evidence.trials++;
	passed = bench->round.signal == 0 && result->end.exit_status == 0;
	if (bench->round.ops->read_any)
		bench->round.ops->read_any(bench, passed);
}

void bench_count(struct bench *bench, bool failed, bool wanted)
{
	bench->ret->evidence.failed += failed;
	bench->ret->others += failed && !wanted;
	bench->round.trials++;
	if (bench->round.ops->observer == OBSERVE_HEAP) {
		bench->ret->guarded_trials++;
		bench->ret->guarded_failed += failed;
	} else if (bench->round.ops == &homes_round) {
		bench->ret->watched_trials++;
		bench->ret->watched_failed += wanted;
	}
	if (wanted && bench->round.ops->read_failing)
		bench->round.ops->read_failing(bench);
	else if (wanted && bench->round.signal != 0)
		reading_tell_proof(bench->round.reading, &bench->ret->evidence);
}

/* Where the user named the failure, all others that come up while it is waited for are known from
 * then on: what guards show of them is not about it. */
static void note_others(struct bench *bench, const struct signatures *signatures)
{
	const struct chase_request *request = bench->request;

	if (!request->others || !request->target || !request->target->exact ||
	    observer_of(bench) != OBSERVE_IDS)
		return;
	VEC_FOREACH (&signatures->list, s)
		bystanders_note(request->others, request->target, s);
}

/* The block that a wrong free, or a use after the free, is about. */
static const char *misused(const struct evidence *e)
{
	const struct block_life *block = e->kind == EVIDENCE_BAD_FREE	 ? e->bad_free->block
					 : e->kind == EVIDENCE_FREED_USE ? e->freed_use->block
									 : NULL;

	return block ? block->key : NULL;
}

/* Is it about blocks of the place in the code whose block the first crash read, or misused? */
static bool is_of_the_same(const struct bench *bench, const char *key)
{
	VEC_FOREACH (&bench->start.first->backtrack.steps, step)
		if (step->home.kind == HOME_BLOCK && step->home.key &&
		    key_same_context(step->home.key, key))
			return true;
	return VEC_ANY(&bench->ret->evidence.list, e,
		       e->trial == bench->start.first->trial && misused(e) &&
			       key_same_context(misused(e), key));
}

/* One bug dies in many ways: the trial that has ended misused a block of the same kind. */
static bool is_related(struct bench *bench)
{
	const struct crash_reading *crashed;
	struct evidence_list seen = { 0 };
	bool related = false;

	if (!bench->start.found || bench->round.signal == 0)
		return false;
	crashed = reading_backtrack(bench->round.reading, THROUGH_OBJECTS);
	if (crashed->has_record)
		crash_reading_tell(crashed, bench->symbols, bench_crash(bench), &seen);
	VEC_FOREACH (&seen.list, e)
		related |= misused(e) && is_of_the_same(bench, misused(e));
	evidence_list_deinit(&seen);
	return related;
}

/* What a failing trial shows: what is chased; or a crash that nobody has met before. */
struct shown {
	bool failed, wanted, stranger;
};

/* One corruption dies in many ways. What is chased may be a late consequence, which nothing leads
 * back from: then another crash of the same test is as good. */
static bool is_kin(const struct bench *bench, const struct signature *s)
{
	const char *test = bench->request->target->signature.test;

	return bench->round.ops == &look_round && bench->start.found &&
	       !bench->start.first->has_backtrack && bench->request->start.chosen &&
	       cstr_same(s->test, test);
}

static void look_at(struct bench *bench, const struct signature *s, struct shown *ret)
{
	const struct chase_request *request = bench->request;
	bool wanted = !request->target || target_is(request->target, s);
	bool stranger = !wanted && s->kind == FAILURE_SIGNAL && request->others &&
			!request->target->exact && !bystanders_have(request->others, s);

	if (stranger && is_kin(bench, s)) {
		signature_deinit(&bench->start.kin);
		signature_copy(&bench->start.kin, s);
		wanted = true;
	}
	/* Nobody had to wait for what every run shows. */
	ret->failed |= wanted || !request->others || !strv_has(&request->others->always, s->id);
	ret->wanted |= wanted || (stranger && (bench->start.moved || is_related(bench)));
	ret->stranger |= stranger;
}

/* A watch, or a hook, changes what stands on the stack and in registers, and so how it dies. Where
 * it only dies in a way that it never did without, that is taken for the same failure. */
static void note_stranger(struct bench *bench, const struct shown *shown)
{
	struct start *start = &bench->start;

	if (bench->round.ops != &homes_round || start->moved || start->strayed)
		return;
	start->strangers = shown->wanted ? 0 : start->strangers + shown->stranger;
	if (bench->round.failed > 0 || start->strangers < STRANGERS)
		return;
	start->strayed = bench->request->start.seen_once;
	start->moved = !start->strayed;
	BENCH_SAY(bench, start->moved ? "chase:moved" : "chase:others");
}

/* Only the failure that is chased counts; `record` comes between examine and ended. */
static void bench_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct bench *bench = ctx;
	struct shown shown = { 0 };

	VEC_FOREACH (&record->signatures->list, s)
		look_at(bench, s, &shown);
	note_others(bench, record->signatures);
	note_stranger(bench, &shown);
	if (bench->round.pending)
		bench_count(bench, shown.failed, shown.wanted);
	if (shown.stranger && !shown.wanted && observer_of(bench) >= OBSERVE_HEAP)
		reading_tell_proof(bench->round.reading, &bench->ret->evidence);
	bench->round.pending = false;
}

bool bench_shows(struct bench *bench, const char *signatures)
{
	struct shown shown = { 0 };
	char id[SIGNATURE_ID_LEN + 1];

	while ((signatures = signature_next_id(signatures, id)) != NULL) {
		AUTO(signature_deinit) struct signature s = { 0 };

		/* What cannot be read has not shown it. */
		if (case_signature(bench->runner.cs, id, &s, NULL) == 0)
			look_at(bench, &s, &shown);
	}
	note_stranger(bench, &shown);
	return shown.wanted;
}

/* It does not fail any more since it is watched this way. */
bool bench_hidden(const struct bench *bench)
{
	return bench->round.quiet_max > 0 && bench->round.failed == 0 &&
	       bench->round.trials >= bench->round.quiet_max;
}

bool bench_enough(struct bench *bench)
{
	return bench->start.strayed || bench->round.ops->enough(bench);
}

static bool bench_ended(void *ctx, const struct run *run, bool failed)
{
	return bench_enough(ctx);
}

static void bench_tick(void *ctx)
{
	struct bench *bench = ctx;
	const struct chase_request *request = bench->request;

	if (request->progress)
		request->progress(request->progress_ctx,
				  &(struct series_progress_view){
					  .done = bench->ret->evidence.trials,
					  .wanted = request->limits.trials,
					  .at_most = true,
					  .ran = bench->runner.ran,
					  .seconds = clock_s() - bench->spent.since_s,
					  .rate = rate_wilson(bench->ret->evidence.trials,
							      bench->ret->evidence.failed,
							      RATE_CONFIDENCE),
				  });
}

static const struct runner_ops bench_ops = {
	.next = bench_next,
	.prepare = bench_prepare,
	.examine = bench_examine,
	.record = bench_record,
	.ended = bench_ended,
	.tick = bench_tick,
};

/* Anew each time: a planner hands out what it has not planned before. */
int bench_begin_plan(struct bench *bench, struct err *err)
{
	const struct chase_request *request = bench->request;

	strbuf_clear(&bench->items);
	hook_planner_free(bench->hooks);
	bench->hooks = NULL;
	return hook_planner_new(&(struct libraries_request){ .program = request->program_path,
							     .cwd = request->settings->cwd,
							     .env = request->slot_env },
				&bench->hooks, err);
}

int bench_plan(struct bench *bench, struct err *err)
{
	int r = bench_begin_plan(bench, err);

	/* First: what is watched as its result has its id then. */
	if (r == 0 && bench->probe.own.found &&
	    own_allocator_plan(&bench->probe.own, bench->hooks, &bench->items, NULL) < 0)
		own_allocator_deinit(&bench->probe.own);
	if (r == 0)
		r = watchset_plan(&bench->watchset, bench->hooks, &bench->items, err);
	return r;
}

uint64_t bench_trials_left(const struct bench *bench)
{
	return bench->spent.trials < bench->request->limits.trials
		       ? bench->request->limits.trials - bench->spent.trials
		       : 0;
}

bool bench_may_go_on(const struct bench *bench)
{
	return !bench->runner.interrupted && !bench->start.strayed &&
	       bench->spent.trials < bench->request->limits.trials && !out_of_time(bench);
}

static bool is_misplaced(const struct evidence *e)
{
	return e->kind == EVIDENCE_BAD_FREE &&
	       (e->bad_free->kind == BAD_FREE_INTERIOR || e->bad_free->kind == BAD_FREE_FOREIGN);
}

/* Somebody may have moved the pointer that was freed, in its place. What a function has in its own
 * variable, it has moved itself. */
static bool may_be_moved(const struct bench *bench)
{
	const struct crash_reading *first = bench->start.first;

	return first->has_backtrack && first->backtrack.steps.items[0].home.kind != HOME_STACK &&
	       VEC_ANY(&bench->ret->evidence.list, e,
		       is_misplaced(e) && e->trial == first->trial &&
			       e->bad_free->pointer == first->backtrack.pointer);
}

/* What nobody can write to is not watched: a mapping whose file was cut, a wrong free of what is
 * kept nowhere. Then more of the same are looked at, as they are. */
bool bench_worth_watching(const struct bench *bench)
{
	bool moved = may_be_moved(bench);

	VEC_FOREACH (&bench->ret->evidence.list, e)
		if (e->kind == EVIDENCE_MAPPING ||
		    (e->kind == EVIDENCE_BAD_FREE && !(moved && is_misplaced(e))))
			return false;
	return bench->start.first->has_backtrack && !cuts_wait(bench);
}

/* Where the crash says too little by itself: glibc's own alarm, a value that leads nowhere; a free
 * that is wrong because of what was written to freed memory before. Of an object of Python's that
 * the crash used after its end it does not say who let go of it; guards lead there. */
bool bench_wants_guards(const struct bench *bench)
{
	return !VEC_ANY(&bench->ret->evidence.list, e,
			e->kind == EVIDENCE_MAPPING ||
				(e->kind == EVIDENCE_FREED_USE && !e->freed_use->place_reused &&
				 !(e->freed_use->block && e->freed_use->block->python)) ||
				(e->kind == EVIDENCE_BAD_FREE &&
				 e->bad_free->kind == BAD_FREE_MISMATCHED));
}

/* What was caught, if anybody was, does not explain it. */
bool bench_is_nobody(const struct bench *bench)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&bench->ret->evidence, &verdict);
	return verdict.class == VERDICT_NOT_CAUGHT;
}

bool bench_settled(const struct bench *bench)
{
	if (!bench->start.found)
		return false;
	if (bench->told || bench->homes.concluded)
		return true;
	if (!bench->start.first->has_backtrack && bench_wants_guards(bench))
		return bench->guards.asked & 1u << GUARDS_NO_BACKTRACK;
	return !bench_worth_watching(bench);
}

bool bench_plain_fault(const struct bench *bench)
{
	uint64_t trials, failed;
	bool any = false;

	bench_rate(bench, &trials, &failed);
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		if (e->kind == EVIDENCE_CRASH && !crash_is_plain(e->crash))
			return false;
		any |= e->kind == EVIDENCE_CRASH;
	}
	return any && trials == failed;
}

void bench_first_place(const struct bench *bench, struct strbuf *sb)
{
	VEC_FOREACH (&bench->ret->evidence.list, e)
		if (e->kind == EVIDENCE_CRASH && sb->len == 0)
			crash_place(e->crash, sb);
}

void bench_rate(const struct bench *bench, uint64_t *trials, uint64_t *failed)
{
	*trials = bench->request->start.rate.trials + bench->ret->evidence.trials;
	*failed = bench->request->start.rate.failed + bench->ret->evidence.failed -
		  bench->ret->others;
}

static uint64_t look_max(const struct chase_request *request)
{
	uint64_t most = request->limits.trials * 2 / 3;

	if (!request->start.unfailed)
		return request->limits.look;
	return most < 1 ? 1 : most < QUIET_LOOK ? most : QUIET_LOOK;
}

int bench_open(struct bench *bench, struct case_store *cs, const struct chase_request *request,
	       struct chase_result *ret, struct err *err)
{
	static const struct crash_reading none;
	struct series_start start = { 0 };

	*bench = (struct bench){ .request = request, .ret = ret };
	bench->start.first = &none;
	bench->start.look_max = look_max(request);
	bench->spent.since_s = clock_s();
	bench->runner.settings = request->settings;
	bench->runner.cs = cs;
	bench->symbols = runner_symbols(&bench->runner);
	bench->runner.observer = OBSERVE_IDS;
	bench->runner.slots = request->jobs;
	bench->runner.ops = &bench_ops;
	bench->runner.ctx = bench;
	return series_resume(cs, &request->identity, request->fresh, 0, &bench->runner, &start,
			     err);
}

/* How it ended, where nothing has said so. */
static void tell_outcome(struct bench *bench)
{
	const struct start *start = &bench->start;

	if (start->found && !bench->told && !bench_worth_watching(bench) && bench->filled == 0)
		SAY(&bench->ret->outcome, "outcome:no-way-back",
		    said_text(start->first->no_backtrack));
	else if (bench->filled > 0)
		SAY(&bench->ret->outcome, "outcome:filled", said_number(bench->filled));
	else
		SAY(&bench->ret->outcome, start->found		   ? "outcome:ended"
					  : bench->ret->others > 0 ? "outcome:others"
					  : start->looks > 0	   ? "outcome:no-damage"
								   : "outcome:no-crash");
}

void bench_close(struct bench *bench)
{
	if (!said_anything(&bench->ret->outcome))
		tell_outcome(bench);
	bench->ret->found = bench->start.found;
	bench->ret->interrupted = bench->runner.interrupted;
	homes_forget(bench);
	evidence_list_deinit(&bench->guards.seen);
	reading_close(bench->round.reading);
	reading_close(bench->start.reading);
	signature_deinit(&bench->start.kin);
	watchset_deinit(&bench->watchset);
	own_allocator_deinit(&bench->probe.own);
	release_deinit(&bench->release);
	type_variables_deinit(&bench->neighbours.known);
	home_deinit(&bench->neighbours.holder);
	VEC_DEINIT(&bench->files);
	strbuf_deinit(&bench->items);
	hook_planner_free(bench->hooks);
	runner_deinit(&bench->runner);
}
