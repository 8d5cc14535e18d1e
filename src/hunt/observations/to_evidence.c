/* What was seen, as evidence. */
#include "hunt/bench.h"

#include "judge/facts.h"

static void tell_account(struct bench *bench, const struct observation *observation)
{
	struct evidence e = evidence_new(EVIDENCE_WATCH, observation->trial, true);
	bool traced = bench->request->settings->flags & TRIAL_TRACED;

	home_copy(&e.watch->home, &observation->home);
	e.watch->mode = mem_strdup(observation->row.mode == LOG_WATCH_PAGES ? "pages"
				   : traced				    ? "ptrace"
									    : "hw");
	e.watch->victim_watched = observation->watched;
	e.watch->since_birth = observation->since_birth;
	e.watch->kernel_writes = observation->row.kernel_writes != 0;
	e.watch->value_known = true;
	e.watch->value = observation->victim.value;
	e.watch->birth_value = observation->birth_value;
	e.watch->hits = observation->write.write ? 1 : 0;
	VEC_PUSH(&bench->ret->evidence.list, e);
}

static void tell_holder(struct bench *bench, struct observation *observation)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, observation->trial, true);

	home_copy(&e.holder->home, &observation->home);
	e.holder->holder = TAKE(observation->in);
	e.holder->target = TAKE(observation->dangling.target);
	e.holder->used = true;
	e.holder->exact = observation->dangling.exact;
	e.holder->frame = observation->dangling.frame;
	if (observation->write.write)
		stack_copy(&e.holder->written_by, &observation->write.write->writer);
	VEC_PUSH(&bench->ret->evidence.list, e);
}

/* The crash alone named the block that had the place last. The pointer is older than that: what was
 * told of such blocks, in other trials, too, is not so. */
static bool is_use_of(const struct evidence *e, const void *key)
{
	return e->kind == EVIDENCE_FREED_USE && e->freed_use->block &&
	       key_same_stack(e->freed_use->block->key, key);
}

/* The block whose place another one has now was used, too: the crash alone could not tell. */
static void tell_recycled_use(struct bench *bench, const struct observation *observation)
{
	struct evidence e;

	VEC_FOREACH (&bench->ret->evidence.list, known)
		if (known->kind == EVIDENCE_FREED_USE && known->trial == observation->trial)
			return;
	if (!observation->dangling.target || observation->dangling.frame)
		return;
	e = evidence_new(EVIDENCE_FREED_USE, observation->trial, true);
	e.freed_use->block = block_life_dup(observation->dangling.target);
	e.freed_use->offset = (int64_t)(observation->former.value - observation->former.start);
	VEC_FOREACH (&bench->ret->evidence.list, known)
		if (known->kind == EVIDENCE_CRASH && known->trial == observation->trial) {
			stack_copy(&e.freed_use->user, &known->crash->stack);
			break;
		}
	VEC_PUSH(&bench->ret->evidence.list, e);
}

static void tell_hop(struct bench *bench, unsigned int number, const struct level *level,
		     enum hop_end end)
{
	struct evidence e = evidence_new(EVIDENCE_HOP, 0, true);
	const struct observation *best = NULL;

	e.hop->number = number;
	VEC_FOREACH (&level->observations, observation) {
		e.hop->watched += observation->watched;
		e.hop->caught += observation->write.write != NULL || observation->dangling.stale;
		if (!best || observation->write.write)
			best = observation;
	}
	if (best)
		home_copy(&e.hop->home, &best->home);
	e.hop->trials = bench->ret->evidence.trials;
	e.hop->key_right = bench->homes.key_right;
	e.hop->key_tried = bench->homes.key_tried;
	e.hop->end = end;
	VEC_PUSH(&bench->ret->evidence.list, e);
	bench->ret->hops = number;
}

/* The last write only repeated the value, and whoever brought it is judged: by all that is known.
 */
static void tell_repeated(struct bench *bench, const struct observation *observation)
{
	const struct write_seen *last = observation->write.write;

	if (write_changed(last))
		return;
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		if (e->kind != EVIDENCE_WRITE || e->trial != observation->trial ||
		    !write_changed(e->write) || e->write->new != last->new ||
		    !home_same(&e->write->home, &last->home))
			continue;
		/* The place and what stands there are the same, whoever put it; what the code
		 * says, only of the same instruction. */
		e->write->found = last->found;
		if (last->writer.count > 0 && e->write->writer.count > 0 &&
		    e->write->writer.frames[0].address == last->writer.frames[0].address) {
			e->write->code = last->code;
			e->write->new_was_block |= last->new_was_block;
		}
	}
}

void tell_level(struct bench *bench, struct level *level, unsigned int number, enum hop_end end)
{
	tell_hop(bench, number, level, end);
	VEC_FOREACH (&level->observations, observation)
		if (observation->mistaken)
			evidence_drop(&bench->ret->evidence, is_use_of, observation->mistaken);
	VEC_FOREACH (&level->observations, observation) {
		tell_account(bench, observation);
		if (observation->dangling.stale) {
			tell_recycled_use(bench, observation);
			tell_holder(bench, observation);
		}
		if (observation->write.write) {
			tell_repeated(bench, observation);
			VEC_PUSH(&bench->ret->evidence.list, observation->write);
			observation->write.write = NULL;
		}
		if (observation->race.race) {
			VEC_PUSH(&bench->ret->evidence.list, observation->race);
			observation->race.race = NULL;
		}
	}
}

void level_deinit(struct level *level)
{
	VEC_FOREACH (&level->observations, observation) {
		home_deinit(&observation->home);
		block_life_free(observation->in);
		block_life_free(observation->dangling.target);
		mem_free(observation->mistaken);
		if (observation->write.write)
			evidence_deinit(&observation->write);
		if (observation->race.race)
			evidence_deinit(&observation->race);
	}
	VEC_DEINIT(&level->observations);
}
