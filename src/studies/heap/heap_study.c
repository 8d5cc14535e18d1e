#include "studies/heap/heap_study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "read/sweeps.h"
#include "run/observe.h"
#include "run/outcome.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "studies/heap/chance.h"
#include "studies/heap/dangling.h"
#include "studies/heap/heap_findings.h"
#include "studies/series/compare.h"
#include "studies/series/schedule.h"
#include "wire/checksum.h"

#define CHANCE_STEP 10
#define FENCE_TRIALS 2	    /* that all blocks had fences in */
#define FENCE_TRIALS_MAX 16 /* that not all had: contexts take turns */
#define PLACE_PROOFS 2	    /* with one more placement, once it has shown something */
#define FENCE_SLACK_MOST 16 /* bytes between a block and its fence */
#define FEW_TRIALS 20	    /* with fewer per arm only a large effect can show */
#define PROOFS_MAX 24	    /* pieces that crashes leave, of which all say the same */

struct heap {
	const struct heap_request *request;
	struct runner runner;
	struct heap_report *report;
	struct schedule schedule;
	struct chance chance;
	struct plan_heap plan;
	uint64_t next;	  /* position */
	uint64_t first;	  /* the position before the scheduled ones */
	uint64_t guarded; /* trials with guards */
	bool fencing;	  /* the trials with fences that come after the others */
	uint64_t fenced;  /* trials with fences that were begun */
	uint64_t placed;  /* of these, the ones before the placement of now; 0: it is the first */
	uint16_t place;	  /* PLAN_FENCE_…, on top of what was asked for */
	bool probing;	  /* the one trial that tells which contexts the function has */
	double started_s;
};

/* Poison by chance: have too few failed yet to tell whose freed blocks it goes with? Half as often
 * again is wanted as would do if nothing else made it fail. Whether somebody is suspected by
 * now is not asked: who looks often enough and stops then finds somebody by luck. */
static bool wants_more(const struct heap *heap)
{
	uint64_t trials, failed;

	if (heap->request->compare || heap->schedule.per_arm >= heap->request->trials_max)
		return false;
	tally_failed(&heap->runner.tally, HEAP_ARM_HEAP, TALLY_ALL, &trials, &failed);
	/* Another output may come of several words at once: then each takes longer to tell. */
	if (heap->request->outcome)
		return heap->chance.failed > 0;
	if (failed == 0 && heap->request->give_up_clean)
		return false;
	return 2 * failed < 3 * chance_needed(&heap->chance, heap->plan.poison_ppm);
}

/* Where not all contexts have fences at once, each has its turn in one of 2^level trials. */
static uint64_t fence_trials(const struct heap *heap)
{
	uint64_t turns = 1ull << heap->report->fence.level;
	uint64_t least = heap->request->fence.trials;

	least = least < FENCE_TRIALS ? FENCE_TRIALS : least;
	if (turns < least)
		return least;
	return turns < FENCE_TRIALS_MAX ? turns : FENCE_TRIALS_MAX;
}

/* How many trials with fences there are to be by the end of this placement. Placements other than
 * the first get one trial each, and more where that one showed something. */
static uint64_t fenced_until(const struct heap *heap)
{
	if (heap->placed == 0)
		return fence_trials(heap);
	return heap->placed + (heap->report->findings.count > 0 ? PLACE_PROOFS : 1);
}

/* In how many trials the finding that was met most often was seen; what tells nothing by itself
 * left out. */
static uint64_t found(const struct heap *heap)
{
	uint64_t most = 0;

	VEC_FOREACH (&heap->report->findings, finding)
		if (!finding->continued && finding->kind != HEAP_MISMATCHED_FREE &&
		    finding->trials > most &&
		    (!heap->request->damage || finding->kind <= HEAP_WRITE_AFTER_FREE))
			most = finding->trials;
	return most;
}

static bool will_do(const struct heap *heap)
{
	uint64_t seen = found(heap);

	return seen < heap->request->found_enough &&
	       runner_will_do(&heap->runner, heap->runner.ran, seen,
			      heap->request->found_enough - seen);
}

static int heap_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct heap *heap = ctx;

	if (heap->probing) {
		if (heap->next > 1)
			return 0;
		*ret = (struct run){ .position = heap->next++, .arm = HEAP_ARM_HEAP };
		return 1;
	}
	if (heap->fencing) {
		if (heap->fenced >= fenced_until(heap))
			return 0;
		*ret = (struct run){ .position = heap->next++,
				     .arm = heap->place & PLAN_FENCE_EXACT ? HEAP_ARM_EXACT
									   : HEAP_ARM_FENCE };
		return 1;
	}
	if (will_do(heap))
		return 0;
	if (heap->next > heap->first + schedule_runs(&heap->schedule)) {
		if (!wants_more(heap))
			return 0;
		heap->schedule.per_arm += CHANCE_STEP;
	}
	*ret = (struct run){
		.position = heap->next,
		.arm = heap->request->compare
			       ? schedule_at(&heap->schedule, heap->next - heap->first).arm
			       : HEAP_ARM_HEAP
	};
	heap->next++;
	return 1;
}

/* Whoever reads a freed block is to find there what he would have found: no poison. */
static void prepare_fence(struct heap *heap, struct plan_heap *plan, struct trial_job *job)
{
	struct plan_fence fence;

	observe_fence_defaults((uint32_t)(heap->request->seed + heap->fenced), &fence);
	fence.item.flags = heap->request->fence.flags | heap->place;
	if (heap->fenced++ & 1)
		fence.item.flags |= PLAN_FENCE_FILLED;
	strbuf_add(&job->plan_items, &fence, sizeof(fence));
	job->observer = OBSERVE_FENCE;
	plan->poison_ppm = 0;
	heap->report->fence_trials++;
}

static void heap_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct heap *heap = ctx;
	struct plan_heap plan = heap->plan;

	series_fill_job(heap->request->series.program, heap->request->series.slot_env, job);
	job->observer = run->arm == HEAP_ARM_CRASH ? OBSERVE_CRASH : OBSERVE_HEAP;
	if (run->arm == HEAP_ARM_CRASH)
		return;
	if (run->arm >= HEAP_ARM_FENCE || heap->request->fence.when == HEAP_FENCE_INSTEAD)
		prepare_fence(heap, &plan, job);
	/* Each trial has guards, poison and coins of its own. */
	plan.seed = (checksum_mix(heap->request->seed, run->position) & ~1ull) |
		    (heap->guarded++ & 1); /* the gap between blocks: docs/design/guards.md */
	heap->report->sampled_trials += (plan.item.flags & PLAN_HEAP_SAMPLED) != 0;
	strbuf_add(&job->plan_items, &plan, sizeof(plan));
}

static void note_outcome(struct heap_report *report, uint64_t outcome)
{
	report->outcomes_differ |= report->outcome != 0 && report->outcome != outcome;
	report->outcome = report->outcomes_differ ? 0 : outcome;
}

static bool is_at(const struct crash *crash, const char *wanted)
{
	AUTO(strbuf_deinit) struct strbuf place = { 0 };

	if (crash)
		crash_place(crash, &place);
	return strcmp(strbuf_str(&place), wanted) == 0;
}

static void note_place(struct heap_report *report, const struct crash *crash)
{
	AUTO(strbuf_deinit) struct strbuf place = { 0 };

	if (crash)
		crash_place(crash, &place);
	report->crashes_differ |= !crash || (report->crash_place &&
					     strcmp(report->crash_place, strbuf_str(&place)) != 0);
	mem_free(report->crash_place);
	report->crash_place = report->crashes_differ ? NULL : strbuf_take(&place);
}

/* What the coins are asked about: does it end in another way, crash elsewhere, fail at all? */
static void toss_read(struct heap *heap, struct reading *reading, const struct crash *crash,
		      bool failed)
{
	const struct heap_request *request = heap->request;

	if (heap->plan.poison_ppm < 1000000)
		chance_read(&heap->chance, &heap->plan, reading,
			    request->outcome  ? reading_outcome(reading) != request->outcome
			    : request->unlike ? !is_at(crash, request->unlike)
					      : failed);
}

static void heap_examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	struct heap *heap = ctx;
	const struct trial_end *end = &result->end;
	/* What the trial died of; NULL when that was no crash, or there is no record of it. */
	const struct crash *crash = NULL;
	struct finding_trial trial = { .number = result->number.value,
				       .failed = judge_failed(heap->request->series.settings, end),
				       .end = end };
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0 || logs->list.count == 0)
		return;
	if (heap->probing) {
		heap->plan.sweep_count =
			(uint32_t)sweeps_contexts_of(reading, heap->request->sweep_function,
						     heap->plan.sweep_hashes, PLAN_SWEEP_MAX);
		return;
	}
	/* Blocks without alignment are what it died of, as far as anybody knows. */
	if (heap->place & PLAN_FENCE_EXACT && end->observed.signal != 0)
		return;
	findings_add(&trial, reading, heap->report);
	if (end->observed.signal != 0)
		crash = reading_crash(reading, CRASH_WHOLE);
	if (!heap->fencing && !heap->request->compare) {
		note_place(heap->report, crash);
		note_outcome(heap->report, reading_outcome(reading));
	}
	if (crash) /* one that shows a freed block is a finding like the others */
		findings_add_crash(&trial, crash, heap->report);
	/* Of damage that was seen, the crash may be no more than what came of it. */
	if (crash && !findings_in(heap->report, trial.number) &&
	    heap->report->crashes.list.count < PROOFS_MAX)
		reading_tell_proof(reading, &heap->report->crashes);
	sweeps_read(reading, crash, heap->report);
	/* There is something to be found: from now on with guards around every block. */
	if (trial.failed || heap->report->findings.count > 0)
		heap->plan.item.flags &= (uint16_t)~PLAN_HEAP_SAMPLED;
	toss_read(heap, reading, crash, trial.failed);
}

static bool heap_ended(void *ctx, const struct run *run, bool failed)
{
	const struct heap *heap = ctx;

	if (heap->request->suspect_p > 0 &&
	    (chance_idle(&heap->chance, heap->request->unlike || heap->request->outcome) ||
	     chance_told(&heap->chance, heap->plan.poison_ppm, heap->request->suspect_p)))
		return true;
	return heap->request->found_enough > 0 && found(heap) >= heap->request->found_enough;
}

static void heap_tick(void *ctx)
{
	struct heap *heap = ctx;
	const struct heap_request *request = heap->request;
	uint64_t trials, failed;

	if (!request->series.progress)
		return;
	tally_failed(&heap->runner.tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	request->series.progress(request->series.progress_ctx,
				 &(struct series_progress_view){
					 .done = heap->runner.tally.trials,
					 .wanted = heap->first + schedule_runs(&heap->schedule),
					 .ran = heap->runner.ran,
					 .seconds = clock_s() - heap->started_s,
					 .rate = rate_wilson(trials, failed, RATE_CONFIDENCE),
				 });
}

static const struct runner_ops heap_ops = {
	.next = heap_next,
	.prepare = heap_prepare,
	.examine = heap_examine,
	.ended = heap_ended,
	.tick = heap_tick,
};

static struct rate rate_of(const struct heap *heap, unsigned int arm)
{
	uint64_t trials, failed;

	tally_failed(&heap->runner.tally, arm, TALLY_ALL, &trials, &failed);
	return rate_wilson(trials, failed, RATE_CONFIDENCE);
}

static void say_effect(const struct heap_report *report, struct said *ret)
{
	const struct rate *plain = &report->plain, *heap = &report->heap;
	bool few = plain->trials < FEW_TRIALS, alike = report->p >= COMPARE_ALPHA;

	if (plain->failed + heap->failed == 0)
		SAY(ret, "observer:untold", said_number(heap->trials), said_number(plain->trials));
	else
		SAY(ret,
		    alike && few && heap->rate < plain->rate ? "observer:open"
		    : alike				     ? "observer:harmless"
		    : heap->rate < plain->rate		     ? "observer:hides"
							     : "observer:brings-out",
		    said_number(heap->failed), said_number(heap->trials),
		    said_number(plain->failed), said_number(plain->trials), said_real(report->p),
		    said_flag(few));
}

static void compare(struct heap *heap)
{
	struct heap_report *report = heap->report;

	report->plain = rate_of(heap, HEAP_ARM_CRASH);
	report->heap = rate_of(heap, HEAP_ARM_HEAP);
	report->fence_rate = rate_of(heap, HEAP_ARM_FENCE);
	report->exact_rate = rate_of(heap, HEAP_ARM_EXACT);
	report->compared = report->plain.trials > 0 && report->heap.trials > 0;
	if (!report->compared)
		return;
	report->p = fisher_two_sided(&(struct fisher_table){ .trials_a = report->plain.trials,
							     .failed_a = report->plain.failed,
							     .trials_b = report->heap.trials,
							     .failed_b = report->heap.failed });
	say_effect(report, &report->sentence);
}

static int probe(struct heap *heap, struct err *err)
{
	int r;

	heap->probing = true;
	r = runner_run(&heap->runner, err);
	heap->probing = false;
	heap->first = heap->next - 1;
	if (r < 0 || heap->runner.interrupted)
		return r;
	if (heap->plan.sweep_count == 0) {
		(void)err_set(err, -ENOENT, "no block is allocated by '%s' or below it",
			      heap->request->sweep_function);
		return err_set_remedy(err,
				      "a function's name as stacks show it, a context's key of 16 "
				      "hexadecimal digits, all, or sampled");
	}
	heap->plan.sweep = PLAN_SWEEP_CONTEXTS;
	return 0;
}

static int run_placed(struct heap *heap, uint16_t place, struct err *err)
{
	heap->fencing = true;
	heap->place = place;
	heap->placed = heap->fenced;
	return runner_run(&heap->runner, err);
}

/* Was somebody first seen at a fence that a few bytes lie before? He may have begun in those. */
static bool begins_late(const struct heap *heap)
{
	VEC_FOREACH (&heap->report->findings, f) {
		uint64_t behind = (uint64_t)f->offset - f->size;

		if (f->fenced && f->live && behind > 0 && behind < FENCE_SLACK_MOST)
			return true;
	}
	return false;
}

/* Fences behind blocks as far as alignment allows; then before blocks, where what is read there
 * shows; then right behind the last byte, which some programs do not bear. */
static int run_fenced(struct heap *heap, struct err *err)
{
	bool placed = heap->request->fence.flags != 0;
	int r = 0;

	if (heap->request->fence.when == HEAP_FENCE_AFTERWARDS)
		r = run_placed(heap, 0, err);
	if (r == 0 && !placed && heap->report->findings.count == 0 &&
	    heap->request->fence.when == HEAP_FENCE_AFTERWARDS && !heap->runner.interrupted)
		r = run_placed(heap, PLAN_FENCE_FRONT, err);
	if (r == 0 && !placed && !heap->runner.interrupted &&
	    (heap->report->findings.count == 0 ? heap->request->fence.when == HEAP_FENCE_AFTERWARDS
					       : begins_late(heap)))
		r = run_placed(heap, PLAN_FENCE_EXACT | PLAN_FENCE_FILLED, err);
	return r;
}

static int run_all(struct heap *heap, struct err *err)
{
	int r = 0;

	heap->plan.sweep =
		heap->request->sweep_function ? PLAN_SWEEP_NONE : heap->request->plan.sweep;
	if (heap->request->sweep_function)
		r = probe(heap, err);
	if (r == 0 && !heap->runner.interrupted)
		r = runner_run(&heap->runner, err);
	if (r < 0 || heap->runner.interrupted || heap->request->fence.when == HEAP_FENCE_NEVER ||
	    (heap->request->fence.when == HEAP_FENCE_AFTERWARDS &&
	     heap->report->findings.count > 0))
		return r;
	return run_fenced(heap, err);
}

static void conclude(struct heap *heap)
{
	struct heap_report *report = heap->report;

	compare(heap);
	findings_sort(report);
	dangling_sort(report);
	if (heap->plan.poison_ppm >= 1000000)
		return;
	chance_conclude(&heap->chance, heap->plan.poison_ppm, heap->request->suspect_p > 0, report);
	report->needed = chance_needed(&heap->chance, heap->plan.poison_ppm);
}

int heap_run(struct case_store *cs, const struct heap_request *request, struct heap_report *ret,
	     struct err *err)
{
	struct heap heap = {
		.request = request,
		.report = ret,
		.plan = request->plan,
		.schedule = { .arms = request->compare ? 2 : 1,
			      .per_arm = request->trials,
			      .batch = 1,
			      .seed = request->seed },
		.next = 1,
		.started_s = clock_s(),
	};
	struct series_start start = { 0 };
	int r;

	heap.runner.settings = request->series.settings;
	heap.runner.observer = OBSERVE_HEAP;
	heap.runner.slots = request->series.jobs;
	heap.runner.ops = &heap_ops;
	heap.runner.ctx = &heap;
	r = series_resume(cs, &request->series.identity, true, request->seed, &heap.runner, &start,
			  err);
	if (r == 0)
		r = run_all(&heap, err);
	if (r == 0)
		conclude(&heap);
	ret->case_dir = case_dir(cs);
	ret->program = request->series.program;
	ret->seed = request->seed;
	ret->quarantine_mib = request->plan.quarantine_mib;
	ret->poison_chance = request->plan.poison_ppm / 1e6;
	ret->seconds = clock_s() - heap.started_s;
	ret->interrupted = heap.runner.interrupted;
	chance_deinit(&heap.chance);
	runner_deinit(&heap.runner);
	return r;
}
