/*
 * Trials with guards around blocks and freed ones kept back: which block is damaged, freed twice,
 * or used after its free. Then the damaged bytes are watched, with the guards still on.
 *
 * They are run where the crash says too little by itself, and where what was caught can be read in
 * two ways.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "judge/judge.h"
#include "run/observe.h"
#include "run/settings.h"
#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define HEAP_TRIALS 6u /* where it fails nearly always; more where it seldom does */
#define HEAP_TRIALS_MAX 40u
#define SAME_LEAST 5u	    /* trials that die in one place with guards, to say that they do */
#define UNFAILED_TRIALS 20u /* where it has not failed at all */
#define GUARDED_TRIALS 12u  /* for each failing trial that is wanted, until nothing is caught */
#define EXPECTED_TIMES \
	4.0 /* as many trials as one damage takes: then this way does not lead there */

static void set_watch_on_damage(struct bench *bench, const struct heap_report *report)
{
	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
	VEC_FOREACH (&report->findings, finding)
		if (finding->kind <= HEAP_WRITE_AFTER_FREE && !finding->continued &&
		    bench->watchset.list.count < LEVELS_MAX &&
		    watchset_add_damage(&bench->watchset, finding) &&
		    bench->watchset.list.count == 1 && report->heap.trials > 0)
			bench->guards.damage_rate =
				(double)finding->trials / (double)report->heap.trials;
}

/* Does what was found tell why it fails? A mismatched delete, for one, does not. */
static bool is_telling(const struct heap_finding *finding)
{
	return !finding->continued && finding->kind != HEAP_MISMATCHED_FREE;
}

/* It read outside of its own block: what it found there is poison of a block that somebody freed,
 * and rightly so. */
static bool is_by_stray(const struct evidence *e, const void *ctx)
{
	const struct bench *bench = ctx;
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	return bench->start.first->has_backtrack && backtrack->steps.count > 0 &&
	       backtrack->steps.items[0].strayed.id != 0 && e->kind == EVIDENCE_FREED_USE &&
	       e->freed_use->poison;
}

/* What was found in trials that failed in another way is about another failure. */
int guards_take(struct bench *bench, const struct series_identity *identity,
		struct heap_report *report, struct err *err)
{
	const struct chase_request *request = bench->request;
	struct evidence_list list = { 0 };
	int r = 0;

	heap_evidence(report, &list);
	evidence_drop(&list, is_by_stray, bench);
	if (request->others)
		r = bystanders_drop(request->others, request->target, bench->runner.cs, identity,
				    &list, err);
	VEC_FOREACH (&report->findings, finding)
		VEC_FOREACH (&list.list, e)
			if (e->trial == finding->trial && is_telling(finding)) {
				bench->guards.findings++;
				break;
			}
	VEC_FREE(&list.list, e,
		 VEC_PUSH(evidence_of_crash(e) ? &bench->ret->evidence.list
					       : &bench->guards.seen.list,
			  *e));
	return r;
}

/* As many that the failure comes up at least once with some 98 %, at the rate that was seen: there
 * are four times as many as it takes on average. Of few trials all may have failed by chance. */
unsigned int guards_trials(const struct bench *bench)
{
	uint64_t left = bench_trials_left(bench), failed, trials, wanted;

	bench_rate(bench, &trials, &failed);
	wanted = failed > 0 ? 4 * (trials + 1) / failed : UNFAILED_TRIALS;
	wanted = wanted < HEAP_TRIALS ? HEAP_TRIALS : wanted;
	wanted = wanted > HEAP_TRIALS_MAX ? HEAP_TRIALS_MAX : wanted;
	return (unsigned int)(left < wanted ? left : wanted);
}

char *guards_request(const struct bench *bench, struct heap_request *ret)
{
	const struct chase_request *request = bench->request;
	char *settings =
		series_settings_with(request->identity.settings, "observe", "observe 4:heap\n");

	*ret = (struct heap_request){ .series = { .identity = request->identity,
						  .settings = request->settings,
						  .program = request->program,
						  .slot_env = request->slot_env,
						  .jobs = request->jobs,
						  .progress = request->progress,
						  .progress_ctx = request->progress_ctx },
				      .trials = guards_trials(bench),
				      .found_enough = (unsigned int)bench_wanted(bench),
				      .seed = bench->start.first->trial };
	ret->series.identity.command = "heap";
	ret->series.identity.settings = settings;
	observe_heap_defaults(ret->seed, &ret->plan);
	return settings;
}

int guards_count(struct bench *bench, const struct series_identity *identity,
		 struct heap_report *report, struct experiment_made *made, struct err *err)
{
	int r = bystanders_discount(bench->request->others, bench->request->target,
				    bench->runner.cs, identity, HEAP_ARM_HEAP, &report->heap, made,
				    err);

	if (r < 0)
		return r;
	bench->ret->evidence.trials += report->heap.trials;
	bench->ret->evidence.failed += made->telling;
	bench->ret->guarded_trials += report->heap.trials;
	bench->ret->guarded_failed += report->heap.failed;
	bench->spent.trials += report->heap.trials;
	if (report->heap.trials > 0)
		bench->guards.trial_s = report->seconds / (double)report->heap.trials;
	evidence_add_experiment(&bench->ret->evidence, made);
	return 0;
}

/* Do all trials with guards die where the first crash did? Then what stands in new blocks and in
 * freed ones does not matter: both were overwritten. */
static void note_same_fault(struct bench *bench, const struct heap_report *report)
{
	AUTO(strbuf_deinit) struct strbuf place = { 0 };

	bench_first_place(bench, &place);
	bench->guards.same_fault = report->crash_place && report->findings.count == 0 &&
				   report->heap.failed >= SAME_LEAST &&
				   strcmp(report->crash_place, strbuf_str(&place)) == 0;
	if (bench->guards.same_fault)
		evidence_add_experiment(&bench->ret->evidence,
					&(struct experiment_made){ .kind = EXPERIMENT_FILL_FRESH,
								   .trials = report->heap.trials,
								   .telling = report->heap.failed,
								   .coverage = 1 });
}

static bool asked(const struct bench *bench, enum guards_reason reason)
{
	return bench->guards.asked & 1u << reason;
}

static int run_heap(struct bench *bench, struct heap_report *report, struct err *err)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = guards_request(bench, &heap);
	bool plain = bench_plain_fault(bench);
	struct experiment_made made;
	int r;

	if (plain)
		heap.plan.item.flags |= PLAN_HEAP_FRESH;
	heap.damage = asked(bench, GUARDS_OVERRUN);
	r = heap_run(bench->runner.cs, &heap, report, err);
	if (r == 0) {
		if (plain)
			note_same_fault(bench, report);
		heap_experiment(report, EXPERIMENT_GUARDS, &made);
		r = guards_count(bench, &heap.series.identity, report, &made, err);
	}
	if (r == 0) {
		r = guards_take(bench, &heap.series.identity, report, err);
		set_watch_on_damage(bench, report);
	}
	bench->runner.interrupted |= report->interrupted;
	return r;
}

static void read_any(struct bench *bench, bool passed);

static bool enough(struct bench *bench)
{
	const struct guards *guards = &bench->guards;

	/* Bytes that are nobody's were damaged, and who did it was seen: that is proof. */
	return guards->caught >= bench_wanted(bench) ||
	       bench->round.trials >= guards->max * (1 + guards->caught - guards->before);
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	const struct guards *guards = &bench->guards;
	uint64_t wanted = bench_wanted(bench);

	*seen = (struct rate){ .trials = bench->round.trials,
			       .failed = guards->caught - guards->before };
	return guards->caught < wanted ? wanted - guards->caught : 0;
}

static const struct round_ops guards_round = { .id = 4,
					       .observer = OBSERVE_HEAP,
					       .planned = true,
					       .may_pages = true,
					       .read_any = read_any,
					       .enough = enough,
					       .missing = missing };

static int run_guarded(struct bench *bench, struct err *err)
{
	int r = bench_plan(bench, err);

	bench->guards.before = bench->guards.caught;
	bench->guards.max = bench->request->limits.wanted * GUARDED_TRIALS;
	if (!bench->homes.pages && bench->guards.damage_rate > 0) {
		/* Once in so many trials at least, it is damaged again. */
		uint64_t expected = (uint64_t)(EXPECTED_TIMES / bench->guards.damage_rate);

		if (expected < bench->guards.max)
			bench->guards.max = expected;
	}
	return r == 0 ? round_run(bench, &guards_round, err) : r;
}

/* First the very blocks, by their keys; where those do not lead there, the newest of their kind;
 * then all of them. */
int watch_damage(struct bench *bench, struct err *err)
{
	bool pages;
	int r;

	BENCH_SAY(bench, "damage:watch");
	r = run_guarded(bench, err);
	if (r < 0 || bench->guards.caught >= bench_wanted(bench) || !bench_may_go_on(bench) ||
	    !watchset_widen(&bench->watchset))
		return r;
	BENCH_SAY(bench, "damage:newest");
	r = run_guarded(bench, err);
	if (r < 0 || bench->guards.caught >= bench_wanted(bench) || !bench_may_go_on(bench) ||
	    bench->watchset.list.items[0].offset < 0)
		return r;
	BENCH_SAY(bench, "damage:pages");
	pages = bench->homes.pages;
	bench->homes.pages = true;
	r = run_guarded(bench, err);
	bench->homes.pages = pages;
	return r;
}

static int look_at_heap(struct bench *bench, struct err *err)
{
	struct heap_report report = { 0 };
	int r;

	BENCH_SAY(bench, "damage:guards");
	r = run_heap(bench, &report, err);
	if (r == 0 && bench->watchset.list.count > 0 && bench_may_go_on(bench))
		r = watch_damage(bench, err);
	if (r == 0)
		refcount_note(bench, &report);
	heap_report_deinit(&report);
	return r;
}

/* Without guards a place in CPython's pools, and many another, has had several owners, and what was
 * found there is the last one's. Where it is known now which object was used, those are guesses. */
static bool is_guess(const struct evidence *e, const void *ctx)
{
	return e->kind == EVIDENCE_FREED_USE && e->freed_use->block &&
	       (e->freed_use->block->python || e->freed_use->place_reused);
}

static void forget_guesses(struct bench *bench)
{
	if (VEC_ANY(&bench->guards.seen.list, e, e->kind == EVIDENCE_FREED_USE && e->failing))
		evidence_drop(&bench->ret->evidence, is_guess, NULL);
}

void guards_adopt(struct bench *bench)
{
	forget_guesses(bench);
	VEC_FOREACH (&bench->guards.seen.list, e)
		VEC_PUSH(&bench->ret->evidence.list, *e);
	bench->guards.seen.list.count = 0;
	bench->told = true;
	SAY(&bench->ret->outcome, "outcome:found",
	    said_word(bench->guards.findings > 0	? "with:guards"
		      : bench->round.ops == &shut_round ? "with:fence"
							: "with:garbage"),
	    said_flag(bench->guards.caught > 0));
}

static bool may_be_overrun(const struct level *level)
{
	VEC_FOREACH (&level->observations, observation) {
		const struct write_seen *w = observation->write.write;

		if (!w || observation->dangling.stale || !w->victim || (w->flags & WRITE_KERNEL))
			continue;
		/* The same bytes stand elsewhere, too: whose they were is not known. Nor where a
		 * pointer that runs came from. */
		if (w->flags & WRITE_COPIED || w->code.motion != 0)
			return true;
		/* Through a pointer to the block's start and a displacement: a field, meant. The C
		 * library's copies know no fields. */
		if (!(w->writer.count > 0 && frame_is_runtime(&w->writer.frames[0])) && w->base &&
		    w->base->value == w->victim->start && w->store_start > w->base->value)
			continue;
		/* A pointer that runs has left no sign of the block that it came from. */
		if (!w->base || w->base->id == w->victim->id)
			return true;
	}
	return false;
}

static const char *function_of(const struct write_seen *w)
{
	const struct frame *site = stack_site_or_top(&w->writer);

	return site && site->function ? site->function : "";
}

static bool caught_before(const struct level *level, const struct write_seen *w)
{
	return VEC_ANY(&level->observations, observation,
		       observation->write.write &&
			       strcmp(function_of(observation->write.write), function_of(w)) == 0);
}

/* Do they show the same writer, or an object used after its end? A bent pointer leads to any. */
static bool confirms(const struct bench *bench)
{
	int level = telling_level(bench);

	if (bench->release.key && (level < 0 || !level_bends(&bench->homes.levels[level])))
		return true;
	return VEC_ANY(&bench->guards.seen.list, e,
		       e->kind == EVIDENCE_WRITE && level >= 0 &&
			       caught_before(&bench->homes.levels[level], e->write));
}

/* The same key may lead to a larger block in another trial: what was behind the end is its own
 * there. */
static bool hit_outside(const struct log_hit *hit)
{
	return hit->id == 0 || hit->address < hit->start || hit->address - hit->start >= hit->size;
}

/* By malloc and its kin, for themselves: their links, and what calloc clears. */
static bool by_allocator(const struct hit *caught, struct symbols *symbols)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, 0, false);
	bool by;

	hit_describe(caught, symbols, e.write);
	by = stack_in_allocator(&e.write->writer);
	evidence_deinit(&e);
	return by;
}

/* The write there that was not ours. Of a guard it is the last one, whose bytes were found. Of a
 * freed block it is the first: whoever was handed the pointer by him writes there, too, and knows
 * no better. */
static const struct hit *damaging_hit(const struct trial_hits *log, uint32_t watch, bool after_free,
				      struct symbols *symbols)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->hit->watch == watch && !(found && after_free) &&
		    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0 &&
		    (after_free ? hit_freed(caught->hit) : hit_outside(caught->hit)) &&
		    !by_allocator(caught, symbols))
			found = caught;
	return found;
}

static void read_any(struct bench *bench, bool passed)
{
	const struct trial_hits *log = reading_hits(bench->round.reading);
	bool any = false;

	for (size_t i = 0; i < bench->watchset.list.count; i++) {
		const struct hit *caught = damaging_hit(
			log, (uint32_t)i, bench->watchset.list.items[i].after_free, bench->symbols);
		struct evidence e;

		if (!caught)
			continue;
		any = true;
		e = evidence_new(EVIDENCE_WRITE, bench->round.number, true);
		hit_describe(caught, bench->symbols, e.write);
		home_deinit(&e.write->home);
		home_copy(&e.write->home, &bench->watchset.list.items[i].home);
		e.write->flags |= WRITE_LAST | WRITE_FOUND;
		e.write->code.motion = watchset_runs(caught, bench->symbols);
		VEC_PUSH(&bench->guards.seen.list, e);
	}
	bench->guards.caught += any;
}

/* Somebody was caught writing to a block whose place was another's before: he may be its rightful
 * owner, and the reader the one who is wrong. Guards tell: with them no place is given out again so
 * soon. */
static bool is_ambiguous(const struct bench *bench, int level)
{
	if (level < 0 || (size_t)level >= bench->start.first->backtrack.steps.count ||
	    bench->start.first->backtrack.crooked || bench->start.first->backtrack.freed ||
	    !bench_may_go_on(bench) || level_bends(&bench->homes.levels[level]))
		return false;
	VEC_FOREACH (&bench->homes.levels[level].observations, observation)
		if (observation->dangling.stale)
			return false;
	return bench->start.first->backtrack.steps.items[level].in_former;
}

/* The bad value stands in an object of CPython's pools, whose places have always been others', or
 * it was found by looking for it in such a place: that block is hardly the one that the crash
 * meant. */
static bool is_elsewhere(const struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;
	const struct backtrack_step *step = &backtrack->steps.items[0], *in = step;

	/* A pointer of which a part was changed stands where it was changed; and an object that
	 * lives for a moment was the one that the crash meant, as the code says. */
	if (backtrack->crooked || (!step->by_value && homes_one_of_many(bench)))
		return false;
	/* What is no block's (a type, a word of the interpreter's) was read by way of one. */
	while (in->in.id == 0 && in + 1 < backtrack->steps.items + backtrack->steps.count)
		in++;
	if (in->in.api == LOG_API_PYTHON_OBJECT || in->in.api == LOG_API_PYTHON_MEMORY)
		return true;
	return step->by_value && !step->by_field &&
	       (step->in_former || step->in.api == LOG_API_HOOKED);
}

/* Before the homes are watched. */
static enum guards_reason reason_at_start(const struct bench *bench)
{
	const struct start *start = &bench->start;

	if (!start->found)
		return bench->request->start.unfailed && start->rounds > 0 &&
				       !asked(bench, GUARDS_NO_CRASH)
			       ? GUARDS_NO_CRASH
			       : GUARDS_REASONS;
	if (!start->first->has_backtrack)
		return bench_wants_guards(bench) && !asked(bench, GUARDS_NO_BACKTRACK)
			       ? GUARDS_NO_BACKTRACK
			       : GUARDS_REASONS;
	if (bench_worth_watching(bench) && is_elsewhere(bench) && !asked(bench, GUARDS_ELSEWHERE))
		return GUARDS_ELSEWHERE;
	return GUARDS_REASONS;
}

/* When they were watched, and it is not told yet what was seen. */
static enum guards_reason reason_after_homes(const struct bench *bench)
{
	int level = telling_level(bench);
	const struct level *telling = level >= 0 ? &bench->homes.levels[level] : NULL;

	if (!bench->homes.followed && !asked(bench, GUARDS_AMBIGUOUS) &&
	    (is_ambiguous(bench, level) ||
	     ((!telling || is_healthy(telling)) && bench_wants_guards(bench))))
		return GUARDS_AMBIGUOUS;
	if (telling && (bench->homes.followed || !copied_from(telling)) &&
	    !asked(bench, GUARDS_OVERRUN) && !homes_caught_source(bench) &&
	    bench->guards.seen.list.count == 0 && may_be_overrun(telling))
		return GUARDS_OVERRUN;
	return GUARDS_REASONS;
}

enum guards_reason guards_reason(const struct bench *bench)
{
	enum guards_reason reason;

	if (bench->told || bench->request->start.freed ||
	    (bench->request->start.lead && !lead_is_crash(bench->request->start.lead)))
		return GUARDS_REASONS;
	if (!bench->homes.watched) {
		reason = reason_at_start(bench);
		if (reason != GUARDS_REASONS)
			return reason;
	} else if (!bench->homes.concluded) {
		return reason_after_homes(bench);
	}
	return bench_settled(bench) && bench->ret->guarded_trials == 0 &&
			       bench_wants_guards(bench) && bench_is_nobody(bench)
		       ? GUARDS_NOBODY
		       : GUARDS_REASONS;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	return guards_reason(inq->bench) != GUARDS_REASONS && !fences_first(inq);
}

/* Until it has failed often enough; where they show nothing, all of them. */
static void price(const struct inquiry *inq, struct price *ret)
{
	struct price most;

	price_of_trials(inq, guards_trials(inq->bench), 2, &most);
	price_of_failures(inq, (double)bench_wanted(inq->bench), 2, ret);
	if (ret->trials > most.trials)
		*ret = most;
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	enum guards_reason reason = guards_reason(bench);
	struct watchset homes = bench->watchset;
	int r;

	bench->guards.asked |= 1u << reason;
	if (reason == GUARDS_NO_CRASH)
		BENCH_SAY(bench, "chase:no-crash", said_number(bench->spent.trials));
	/* It watches what it finds damaged; the homes are watched again afterwards. */
	bench->watchset = (struct watchset){ 0 };
	r = look_at_heap(bench, inq->err);
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	if (r == 0 && (reason == GUARDS_OVERRUN ? confirms(bench) : bench->guards.findings > 0))
		guards_adopt(bench);
	else if (reason == GUARDS_NO_CRASH)
		bench->start.looks += !bench->runner.interrupted;
	return r;
}

/* Would it be firm with what was caught, which is not told yet? */
static bool firm_as_caught(const struct bench *bench)
{
	const struct level *telling = &bench->homes.levels[telling_level(bench)];
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	struct evidence_list list = { 0 }; /* borrows what it has */

	VEC_FOREACH (&bench->ret->evidence.list, e)
		VEC_PUSH(&list.list, *e);
	VEC_FOREACH (&telling->observations, observation)
		if (observation->write.write)
			VEC_PUSH(&list.list, observation->write);
	judge_evidence(&list, &verdict);
	VEC_DEINIT(&list.list);
	return verdict.firm;
}

/* Where the crash alone is judged firmly, and what was caught speaks of somebody else, who is in
 * doubt. */
static bool overrun_applies(struct inquiry *inq, struct said *why)
{
	return applies(inq, why) && guards_reason(inq->bench) == GUARDS_OVERRUN &&
	       !firm_as_caught(inq->bench);
}

EXPERIMENT(overrun_guards, .name = "guards", .question = QUESTION_WHO, .kind = EXPERIMENT_GUARDS,
	   .chance = 0.5, .refines = true, .repeats = true, .applies = overrun_applies,
	   .price = price, .run = run);

EXPERIMENT(guards, .name = "guards", .question = QUESTION_WHO, .kind = EXPERIMENT_GUARDS,
	   .chance = 0.5, .repeats = true, .applies = applies, .price = price, .run = run);
