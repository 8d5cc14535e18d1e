/*
 * A chase that begins with a piece of evidence: the bytes that it is about are watched, whoever
 * found them.
 */
#include "hunt/inquiry.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FAILURES_UNWATCHED 3u
#define VECTOR 64u /* bytes */

/* The bytes whose writer is looked for; NULL: none. */
static const struct home *home_of(const struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_WRITE:
	case EVIDENCE_SIGHTING:
		return e->write->flags & WRITE_COPIED ? &e->write->source : &e->write->home;
	case EVIDENCE_WATCH:
		return &e->watch->home;
	case EVIDENCE_OUTSIDE:
		return &e->outside->home;
	case EVIDENCE_HOLDER:
		return &e->holder->home;
	case EVIDENCE_RACE:
		return &e->race->home;
	case EVIDENCE_HOP:
		return &e->hop->home;
	default:
		return lead_strayed(e);
	}
}

const struct home *lead_strayed(const struct evidence *e)
{
	if (e->kind == EVIDENCE_FAULT_VALUE && !e->fault_value->divisor &&
	    e->fault_value->value != 0)
		return &e->fault_value->home;
	return e->kind == EVIDENCE_OVER_READ && e->freed_use->unpointed ? &e->freed_use->from
									: NULL;
}

bool lead_is_crash(const struct evidence *e)
{
	return e->kind == EVIDENCE_CRASH || e->kind == EVIDENCE_FREED_USE;
}

static int nothing_to_watch(const struct evidence *e, struct err *err)
{
	(void)err_set(err, -EINVAL,
		      "evidence %" PRIu64 " (%s) is not about bytes that somebody wrote", e->id,
		      evidence_kind_name(e->kind));
	return err_set_remedy(err,
			      "name a damaged block (canary), a caught write, a watch or a holder: "
			      "'redhand report --json' has them all with their numbers");
}

/* After err_set(). */
static int not_found_again(const struct evidence *e, struct err *err)
{
	(void)err_set_prefix(err, "evidence %" PRIu64, e->id);
	return err_set_remedy(err,
			      "take one that names a block with its key (CONTEXT#NUMBER), or run "
			      "redhand chase without it");
}

/* A global is found again by its module, as the trial of the evidence had it in memory. */
static int watch_global(struct bench *bench, const struct evidence *e, const struct home *home,
			struct err *err)
{
	AUTO(reading_closep)
	struct reading *reading = bench_reading_of(bench, e->trial, 0);
	const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);

	if (!crashed->has_record)
		(void)err_set(err, -ENOENT, "the log of its trial is no longer there");
	else if (watchset_add_global(&bench->watchset, crashed->record.log, home))
		return 0;
	else
		(void)err_set(err, -ENOENT, "the place of its variable is not known");
	return not_found_again(e, err);
}

/* The pointer that strayed in this trial, out of the same home, as it holds it; 0: none did. */
static uint64_t strayed_pointer(struct bench *bench, const struct home *home,
				const struct home **ret)
{
	const struct damage *damage = reading_damage(bench->round.reading);

	VEC_FOREACH (&damage->findings, f)
		if (f->kind == HEAP_OVER_READ && home_same(&f->from, home)) {
			*ret = &f->from;
			return f->pointer;
		}
	*ret = &damage->fence.nowhere;
	return home_same(*ret, home) ? damage->fence.pointer : 0;
}

/* Fences leave no log of a trial that passes: the variable is looked up while one ends. */
static void read_place(struct bench *bench, bool passed)
{
	const struct home *home;
	struct event_logs *logs;

	(void)passed;
	if (strayed_pointer(bench, lead_strayed(bench->request->start.lead), &home) == 0 ||
	    reading_logs(bench->round.reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log)
		if (bench->watchset.list.count == 0)
			(void)watchset_add_global(&bench->watchset, log, home);
}

static bool place_known(struct bench *bench)
{
	return bench->watchset.list.count > 0 || bench->round.trials >= FAILURES_UNWATCHED;
}

static const struct round_ops place_round = {
	.id = 14, .observer = OBSERVE_FENCE, .read_any = read_place, .enough = place_known
};

static int watch_home(struct bench *bench, const struct evidence *e, const struct home *home,
		      struct err *err)
{
	if (home->kind == HOME_GLOBAL && lead_strayed(e)) {
		int r = round_run(bench, &place_round, err);

		if (r < 0 || bench->watchset.list.count > 0)
			return r;
	} else if (home->kind == HOME_GLOBAL) {
		return watch_global(bench, e, home, err);
	}
	if (home->kind == HOME_BLOCK &&
	    watchset_add_block(&bench->watchset, home->key, home->offset, (uint32_t)home->len))
		return 0;
	(void)err_set(err, -ENOENT, "its block has no key to find it by in another run");
	return not_found_again(e, err);
}

static void see_last(struct bench *bench, const struct hit *last, unsigned int found)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, bench->round.number, true);
	bool part;

	hit_describe(last, bench->symbols, e.write);
	part = e.write->flags & WRITE_UPDATE || e.write->fit != FIT_EXACT;
	/* A whole pointer that only the kernel was given may be a question: is something there? */
	if (!part && bench->request->start.lead->kind == EVIDENCE_FAULT_VALUE) {
		evidence_deinit(&e);
		return;
	}
	home_deinit(&e.write->home);
	home_copy(&e.write->home, &bench->watchset.list.items[0].home);
	/* What was made of a pointer in its place is bad by that; what was put there whole somebody
	 * else may have made. */
	e.write->flags |= WRITE_LAST;
	if (part)
		e.write->flags |= found;
	VEC_PUSH(&bench->guards.seen.list, e);
	bench->round.watched++;
}

/* The last change of the bytes before the failure. */
static void read_failing_trial(struct bench *bench)
{
	const struct hit *last = NULL;

	bench->round.failed++;
	VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught)
		if (!(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0)
			last = caught;
	if (last)
		see_last(bench, last, 0);
}

/* Caught so often, or no victim is among the watched ones. */
static bool enough(struct bench *bench)
{
	return bench->round.watched >= bench->request->limits.wanted ||
	       (bench->round.watched == 0 && bench->round.failed >= FAILURES_UNWATCHED);
}

static const struct round_ops evidence_round = { .id = 8,
						 .observer = OBSERVE_WATCH,
						 .planned = true,
						 .replays = true,
						 .read_failing = read_failing_trial,
						 .enough = enough };

/* Readers of vectors begin before their pointer. */
static bool is_about(const struct log_hit *hit, uint64_t pointer)
{
	uint64_t stored;

	memcpy(&stored, hit->new, sizeof(stored));
	return stored - pointer + VECTOR < 2 * VECTOR;
}

/* Who put it there. Nothing fails: fences see that it is followed. */
static void read_strayed(struct bench *bench, bool passed)
{
	const struct home *home;
	uint64_t pointer = strayed_pointer(bench, &bench->watchset.list.items[0].home, &home);
	const struct hit *last = NULL;

	(void)passed;
	if (pointer == 0)
		return;
	bench->round.failed++;
	VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught)
		if (!(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0 &&
		    is_about(caught->hit, pointer))
			last = caught;
	if (last)
		see_last(bench, last, WRITE_FOUND);
}

static const struct round_ops strayed_round = { .id = 13,
						.observer = OBSERVE_FENCE,
						.planned = true,
						.read_any = read_strayed,
						.enough = enough };

static void adopt(struct bench *bench, uint64_t caught)
{
	VEC_FOREACH (&bench->guards.seen.list, e)
		VEC_PUSH(&bench->ret->evidence.list, *e);
	bench->guards.seen.list.count = 0;
	bench->ret->hops = 1;
	SAY(&bench->ret->outcome, "outcome:evidence", said_count(caught));
}

static int lead_follow(struct bench *bench, const struct evidence *e, struct err *err)
{
	const struct home *home = home_of(e);
	int r;

	if (e->kind == EVIDENCE_CANARY && e->canary->block) {
		if (!watchset_add_block(&bench->watchset, e->canary->block->key, e->canary->offset,
					(uint32_t)e->canary->len)) {
			(void)err_set(err, -ENOENT,
				      "its block has no key to find it by in another run");
			return not_found_again(e, err);
		}
		bench->watchset.list.items[0].after_free = e->canary->side == CANARY_FREED;
		bench->watchset.list.items[0].size = e->canary->block->size;
		r = watch_damage(bench, err);
		if (r == 0)
			adopt(bench, bench->guards.caught);
		return r;
	}
	if (!home || home->kind == HOME_UNKNOWN)
		return nothing_to_watch(e, err);
	r = watch_home(bench, e, home, err);
	if (r == 0)
		r = bench_plan(bench, err);
	if (r == 0) {
		if (lead_strayed(e))
			BENCH_SAY(bench, "chase:stray-pointer", said_home(home));
		else
			BENCH_SAY(bench, "chase:evidence", said_number(e->id));
		r = round_run(bench, lead_strayed(e) ? &strayed_round : &evidence_round, err);
	}
	if (r == 0)
		adopt(bench, bench->round.watched);
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct evidence *lead = inq->bench->request->start.lead;

	return lead && !lead_is_crash(lead);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, (double)inq->bench->request->limits.wanted, 1.5, ret);
}

static int run(struct inquiry *inq)
{
	return lead_follow(inq->bench, inq->bench->request->start.lead, inq->err);
}

EXPERIMENT(from_evidence, .name = "from-evidence", .question = QUESTION_WHO,
	   .kind = EXPERIMENT_WATCH, .chance = 0.7, .applies = applies, .price = price, .run = run);
