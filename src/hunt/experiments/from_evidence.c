/*
 * A chase that begins with a piece of evidence: the bytes that it is about are watched, whoever
 * found them.
 */
#include "hunt/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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
		return NULL;
	}
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
	return err_remedy(err,
			  "name a damaged block (canary), a caught write, a watch or a holder; "
			  "'redhand report --json' has them all with their numbers");
}

static int not_found_again(const struct evidence *e, const char *what, struct err *err)
{
	(void)err_set(err, -ENOENT, "evidence %" PRIu64 ": %s", e->id, what);
	return err_remedy(err, "take one that names a block with its key (CONTEXT#NUMBER), or run "
			       "redhand chase without it");
}

/* A global is found again by its module, as the trial of the evidence had it in memory. */
static int stake_global(struct chase *chase, const struct evidence *e, const struct home *home,
			struct err *err)
{
	AUTO(reading_closep)
	struct reading *reading = chase_reading_of(chase, e->trial, 0);
	const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);

	if (!crashed->has_record)
		return not_found_again(e, "what its trial logged is no longer there", err);
	if (!stakeout_add_global(&chase->stakeout, crashed->record.log, home))
		return not_found_again(e, "where its variable is cannot be told", err);
	return 0;
}

static int stake_home(struct chase *chase, const struct evidence *e, const struct home *home,
		      struct err *err)
{
	if (home->kind == HOME_GLOBAL)
		return stake_global(chase, e, home, err);
	if (home->kind == HOME_BLOCK &&
	    stakeout_add_block(&chase->stakeout, home->key, home->offset, (uint32_t)home->len))
		return 0;
	return not_found_again(e,
			       "the block that it is about has no key that leads to it in "
			       "another run",
			       err);
}

/* The last change of the bytes before the failure. */
void read_lead(struct chase *chase)
{
	const struct hit *last = NULL;
	struct evidence e;

	chase->round_failed++;
	VEC_FOREACH (&reading_hits(chase->reading)->hits, caught)
		if (!(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0)
			last = caught;
	if (last) {
		e = evidence_new(EVIDENCE_WRITE, chase->number, true);
		hit_describe(last, chase->symbols, e.write);
		home_deinit(&e.write->home);
		home_copy(&e.write->home, &chase->stakeout.list.items[0].home);
		e.write->flags |= WRITE_LAST;
		VEC_PUSH(&chase->guarded.list, e);
		chase->round_watched++;
	}
}

static void adopt(struct chase *chase, uint64_t caught)
{
	VEC_FOREACH (&chase->guarded.list, e)
		VEC_PUSH(&chase->ret->evidence.list, *e);
	chase->guarded.list.count = 0;
	chase->ret->hops = 1;
	chase->ret->outcome =
		caught > 0 ? mem_printf("caught in %" PRIu64 " trial%s", caught,
					caught == 1 ? "" : "s")
			   : mem_strdup("nobody was caught writing the bytes of that evidence");
}

int lead_follow(struct chase *chase, const struct evidence *e, struct err *err)
{
	const struct home *home = home_of(e);
	int r;

	if (e->kind == EVIDENCE_CANARY && e->canary->block) {
		if (!stakeout_add_block(&chase->stakeout, e->canary->block->key, e->canary->offset,
					(uint32_t)e->canary->len))
			return not_found_again(e,
					       "its block has no key that leads to it in another "
					       "run",
					       err);
		chase->stakeout.list.items[0].after_free = e->canary->side == CANARY_FREED;
		chase->stakeout.list.items[0].size = e->canary->block->size;
		r = watch_damage(chase, err);
		if (r == 0)
			adopt(chase, chase->guarded_caught);
		return r;
	}
	if (!home || home->kind == HOME_UNKNOWN)
		return nothing_to_watch(e, err);
	r = stake_home(chase, e, home, err);
	if (r == 0)
		r = chase_plan(chase, err);
	if (r == 0) {
		chase_say(chase, "watching what evidence %" PRIu64 " is about", e->id);
		r = stage_run(chase, STAGE_LEAD, err);
	}
	if (r == 0)
		adopt(chase, chase->round_watched);
	return r;
}
