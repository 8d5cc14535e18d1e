/*
 * Trials with guards around blocks and freed ones kept back: which block is damaged, freed twice,
 * or used after its free. Then the damaged bytes are watched, with the guards still on.
 *
 * They are run where the crash says too little by itself, and where what was caught can be read in
 * two ways.
 */
#include "hunt/bench.h"

#include <string.h>

#include "engine/heap/evidence.h"
#include "engine/heap/heap.h"
#include "engine/trial/observe.h"

#define HEAP_TRIALS 6u /* where it fails nearly always; more where it seldom does */
#define HEAP_TRIALS_MAX 40u
#define UNFAILED_TRIALS 20u /* where it has not failed at all */
#define GUARDED_TRIALS 12u  /* for each failing trial that is wanted, until nothing is caught */
#define EXPECTED_TIMES \
	4.0 /* as many trials as one damage takes: then this way does not lead there */

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

static void stake_damage(struct chase *chase, const struct heap_report *report)
{
	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	VEC_FOREACH (&report->findings, finding)
		if (finding->kind <= HEAP_WRITE_AFTER_FREE && !finding->continued &&
		    chase->stakeout.list.count < LEVELS_MAX &&
		    stakeout_add_damage(&chase->stakeout, finding) &&
		    chase->stakeout.list.count == 1 && report->heap.trials > 0)
			chase->damage_rate = (double)finding->trials / (double)report->heap.trials;
}

/* Does what was found tell why it fails? A mismatched delete, for one, does not. */
static bool is_telling(const struct heap_finding *finding)
{
	return !finding->continued && finding->kind != HEAP_MISMATCHED_FREE;
}

/* It read outside of its own block: what it found there is poison of a block that somebody freed,
 * and rightly so. */
static bool is_by_stray(const struct chase *chase, const struct evidence *e)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	return chase->first->has_backtrack && backtrack->steps.count > 0 &&
	       backtrack->steps.items[0].strayed.id != 0 && e->kind == EVIDENCE_FREED_USE &&
	       e->freed_use->poison;
}

static void drop_strays(const struct chase *chase, struct evidence_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->list.count; i++)
		if (is_by_stray(chase, &list->list.items[i]))
			evidence_deinit(&list->list.items[i]);
		else
			list->list.items[kept++] = list->list.items[i];
	list->list.count = kept;
}

/* What was found in trials that failed in another way is about another failure. */
static int take_evidence(struct chase *chase, const struct series_identity *identity,
			 const struct heap_report *report, struct err *err)
{
	const struct chase_request *request = chase->request;
	struct evidence_list list = { 0 };
	int r = 0;

	heap_evidence(report, &list);
	drop_strays(chase, &list);
	if (request->others)
		r = bystanders_drop(request->others, request->target, chase->runner.cs, identity,
				    &list, err);
	VEC_FOREACH (&report->findings, finding)
		VEC_FOREACH (&list.list, e)
			if (e->trial == finding->trial && is_telling(finding)) {
				chase->heap_findings++;
				break;
			}
	VEC_FOREACH (&list.list, e)
		VEC_PUSH(&chase->guarded.list, *e);
	VEC_DEINIT(&list.list);
	return r;
}

/* As many that the failure comes up at least once with some 98 %, at the rate that was seen: there
 * are four times as many as it takes on average. */
static unsigned int heap_trials(const struct chase *chase)
{
	uint64_t failed = chase->ret->evidence.failed, trials = chase->ret->evidence.trials;
	uint64_t wanted = failed > 0 ? 4 * trials / failed : UNFAILED_TRIALS;
	uint64_t left = chase_trials_left(chase);

	wanted = wanted < HEAP_TRIALS ? HEAP_TRIALS : wanted;
	wanted = wanted > HEAP_TRIALS_MAX ? HEAP_TRIALS_MAX : wanted;
	return (unsigned int)(left < wanted ? left : wanted);
}

char *guards_request(const struct chase *chase, struct heap_request *ret)
{
	const struct chase_request *request = chase->request;
	char *settings = heap_settings(request->identity.settings);

	*ret = (struct heap_request){ .identity = request->identity,
				      .settings = request->settings,
				      .program = request->program,
				      .slot_env = request->slot_env,
				      .jobs = request->jobs,
				      .trials = heap_trials(chase),
				      .seed = chase->first->trial,
				      .progress = request->progress,
				      .progress_ctx = request->progress_ctx };
	ret->identity.command = "heap";
	ret->identity.settings = settings;
	observe_heap_defaults(ret->seed, &ret->plan);
	return settings;
}

void guards_count(struct chase *chase, const struct heap_report *report)
{
	chase->ret->evidence.trials += report->heap.trials;
	chase->ret->evidence.failed += report->heap.failed;
	chase->ret->guarded_trials += report->heap.trials;
	chase->ret->guarded_failed += report->heap.failed;
	chase->used += report->heap.trials;
	if (report->heap.trials > 0)
		chase->guarded_s = report->seconds / (double)report->heap.trials;
}

static int run_heap(struct chase *chase, struct heap_report *report, struct err *err)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = guards_request(chase, &heap);
	struct experiment_made made;
	int r = heap_run(chase->runner.cs, &heap, report, err);

	if (r == 0) {
		guards_count(chase, report);
		heap_experiment(report, EXPERIMENT_GUARDS, &made);
		evidence_add_experiment(&chase->ret->evidence, &made);
		r = take_evidence(chase, &heap.identity, report, err);
		stake_damage(chase, report);
	}
	chase->runner.interrupted |= report->interrupted;
	return r;
}

static int run_guarded(struct chase *chase, struct err *err)
{
	int r = chase_plan(chase, err);

	chase->guarded_before = chase->guarded_caught;
	chase->guarded_max = chase->request->wanted * GUARDED_TRIALS;
	if (!chase->pages && chase->damage_rate > 0) {
		/* Once in so many trials at least, it is damaged again. */
		uint64_t expected = (uint64_t)(EXPECTED_TIMES / chase->damage_rate);

		if (expected < chase->guarded_max)
			chase->guarded_max = expected;
	}
	return r == 0 ? stage_run(chase, STAGE_GUARD, err) : r;
}

/* First the very blocks, by their keys; where those do not lead there, the newest of their kind;
 * then all of them. */
int watch_damage(struct chase *chase, struct err *err)
{
	bool pages;
	int r;

	chase_say(chase, "watching the damaged bytes");
	r = run_guarded(chase, err);
	if (r < 0 || chase->guarded_caught >= chase->request->wanted || !chase_may_go_on(chase) ||
	    !stakeout_widen(&chase->stakeout))
		return r;
	chase_say(chase,
		  "the keys did not lead to the damage: watching the same byte of the newest "
		  "blocks of that context");
	r = run_guarded(chase, err);
	if (r < 0 || chase->guarded_caught >= chase->request->wanted || !chase_may_go_on(chase) ||
	    chase->stakeout.list.items[0].offset < 0)
		return r;
	chase_say(chase, "watching it in all blocks of that context, on watched pages");
	pages = chase->pages;
	chase->pages = true;
	r = run_guarded(chase, err);
	chase->pages = pages;
	return r;
}

/* An object was used after its last reference had been given back: by whom? */
static int look_for_release(struct chase *chase, const struct heap_report *report, struct err *err)
{
	int r;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	if (!release_stake_out(chase, report))
		return 0;
	chase_say(chase, "an object was used after its end: watching its count of references");
	r = chase_plan(chase, err);
	if (r == 0)
		r = stage_run(chase, STAGE_RELEASE, err);
	tell_release(chase, &chase->guarded);
	release_deinit(&chase->release);
	return r;
}

static int look_at_heap(struct chase *chase, struct err *err)
{
	struct heap_report report = { 0 };
	int r;

	chase_say(chase, "running it with guards around blocks, to see which is damaged");
	r = run_heap(chase, &report, err);
	if (r == 0 && chase->stakeout.list.count > 0 && chase_may_go_on(chase))
		r = watch_damage(chase, err);
	if (r == 0 && chase_may_go_on(chase))
		r = look_for_release(chase, &report, err);
	heap_report_deinit(&report);
	return r;
}

/* Without guards a place in CPython's pools, and many another, has had several owners, and what was
 * found there is the last one's. Where it is known now which object was used, those are guesses. */
static void forget_guesses(struct chase *chase)
{
	struct evidence_list *list = &chase->ret->evidence;
	bool known = false;
	size_t kept = 0;

	VEC_FOREACH (&chase->guarded.list, e)
		known |= e->kind == EVIDENCE_FREED_USE && e->failing;
	if (!known)
		return;
	for (size_t i = 0; i < list->list.count; i++) {
		struct evidence *e = &list->list.items[i];

		if (e->kind == EVIDENCE_FREED_USE && e->freed_use->block &&
		    (e->freed_use->block->python || e->freed_use->place_reused))
			evidence_deinit(e);
		else
			list->list.items[kept++] = *e;
	}
	list->list.count = kept;
}

static void adopt(struct chase *chase)
{
	forget_guesses(chase);
	VEC_FOREACH (&chase->guarded.list, e)
		VEC_PUSH(&chase->ret->evidence.list, *e);
	chase->guarded.list.count = 0;
	mem_free(chase->ret->outcome);
	chase->ret->outcome = mem_printf("found with %s%s",
					 chase->heap_findings > 0     ? "guards around blocks"
					 : chase->kind == STAGE_FENCE ? "freed blocks shut"
								      : "garbage in new blocks",
					 chase->guarded_caught > 0 ? ", and caught there" : "");
}

int guards_instead(struct chase *chase, bool *ret_told, struct err *err)
{
	int r = look_at_heap(chase, err);

	*ret_told = r == 0 && chase->heap_findings > 0;
	if (*ret_told)
		adopt(chase);
	return r;
}

/* A wrong value and no damage: it was read where nobody has written it yet, or not any more. */
int guards_values(struct chase *chase, struct err *err)
{
	bool told = false;
	int r = readers_look(chase, &told, err);

	if (r == 0 && !told)
		r = unset_look(chase, &told, err);
	if (told)
		adopt(chase);
	return r;
}

/* ---- was it an overflow? ------------------------------------------------------------------------
 */

bool may_be_overrun(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight) {
		const struct write_seen *w = sight->write.write;

		if (!w || sight->stale || !w->victim || (w->flags & WRITE_KERNEL))
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
	const struct frame *site = stack_site(&w->writer);

	if (!site && w->writer.count > 0)
		site = &w->writer.frames[0];
	return site && site->function ? site->function : "";
}

static bool caught_before(const struct level *level, const struct write_seen *w)
{
	VEC_FOREACH (&level->sights, sight)
		if (sight->write.write &&
		    strcmp(function_of(sight->write.write), function_of(w)) == 0)
			return true;
	return false;
}

int guards_confirm(struct chase *chase, const struct level *level, bool *ret_told, struct err *err)
{
	int r = look_at_heap(chase, err);
	bool same = false;

	VEC_FOREACH (&chase->guarded.list, e)
		same |= e->kind == EVIDENCE_WRITE && caught_before(level, e->write);
	*ret_told = r == 0 && same;
	if (*ret_told)
		adopt(chase);
	return r;
}

/* ---- who damaged what they found ---------------------------------------------------------------
 */

/* Was the block freed when it was written to? While it lives its bytes are its owner's. */
static bool hit_freed(const struct log_hit *hit)
{
	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++)
		if (hit->owners[i].id == hit->id)
			return hit->owners[i].state == LOG_BLOCK_FREED;
	return false;
}

/* The same key may lead to a larger block in another trial: what was behind the end is its own
 * there. */
static bool hit_outside(const struct log_hit *hit)
{
	return hit->id == 0 || hit->address < hit->start || hit->address - hit->start >= hit->size;
}

/* The last write there that was not ours: it is what damaged the guard or the freed block. */
static const struct hit *damaging_hit(const struct trial_hits *log, uint32_t watch, bool after_free)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->hit->watch == watch &&
		    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0 &&
		    (after_free ? hit_freed(caught->hit) : hit_outside(caught->hit)))
			found = caught;
	return found;
}

void read_guarded(struct chase *chase)
{
	const struct trial_hits *log = reading_hits(chase->reading);
	bool any = false;

	for (size_t i = 0; i < chase->stakeout.list.count; i++) {
		const struct hit *caught =
			damaging_hit(log, (uint32_t)i, chase->stakeout.list.items[i].after_free);
		struct evidence e;

		if (!caught)
			continue;
		any = true;
		e = evidence_new(EVIDENCE_WRITE, chase->number, true);
		hit_describe(caught, chase->symbols, e.write);
		home_deinit(&e.write->home);
		home_copy(&e.write->home, &chase->stakeout.list.items[i].home);
		e.write->flags |= WRITE_LAST | WRITE_FOUND;
		e.write->code.motion = stakeout_runs(caught, chase->symbols);
		VEC_PUSH(&chase->guarded.list, e);
	}
	chase->guarded_caught += any;
}
