/* What was seen, as evidence. */
#include "hunt/bench.h"

#include <string.h>

#include "judge/facts.h"

static void tell_account(struct bench *bench, const struct sight *sight)
{
	struct evidence e = evidence_new(EVIDENCE_WATCH, sight->trial, true);
	bool traced = bench->request->settings->flags & TRIAL_TRACED;

	home_copy(&e.watch->home, &sight->home);
	e.watch->mode = mem_strdup(sight->row.mode == LOG_WATCH_PAGES ? "pages"
				   : traced			      ? "ptrace"
								      : "hw");
	e.watch->victim_watched = sight->watched;
	e.watch->since_birth = sight->since_birth;
	e.watch->kernel_writes = sight->row.kernel_writes != 0;
	e.watch->value_known = true;
	e.watch->value = sight->victim.value;
	e.watch->birth_value = sight->birth_value;
	e.watch->hits = sight->write.write ? 1 : 0;
	VEC_PUSH(&bench->ret->evidence.list, e);
}

static void tell_holder(struct bench *bench, struct sight *sight)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, sight->trial, true);

	home_copy(&e.holder->home, &sight->home);
	e.holder->holder = TAKE(sight->in);
	e.holder->target = TAKE(sight->target);
	e.holder->used = true;
	e.holder->exact = sight->target_exact;
	e.holder->frame = sight->frame;
	if (sight->write.write)
		stack_copy(&e.holder->written_by, &sight->write.write->writer);
	VEC_PUSH(&bench->ret->evidence.list, e);
}

/* The crash alone named the block that had the place last. The pointer is older than that: what was
 * told of such blocks, in other trials, too, is not so. */
static void forget_mistaken(struct bench *bench, const char *key)
{
	struct evidence_list *list = &bench->ret->evidence;
	size_t kept = 0;

	for (size_t i = 0; i < list->list.count; i++) {
		struct evidence *e = &list->list.items[i];

		if (e->kind == EVIDENCE_FREED_USE && e->freed_use->block &&
		    key_same_stack(e->freed_use->block->key, key))
			evidence_deinit(e);
		else
			list->list.items[kept++] = *e;
	}
	list->list.count = kept;
}

/* The block whose place another one has now was used, too: the crash alone could not tell. */
static void tell_recycled_use(struct bench *bench, const struct sight *sight)
{
	struct evidence e;

	VEC_FOREACH (&bench->ret->evidence.list, known)
		if (known->kind == EVIDENCE_FREED_USE && known->trial == sight->trial)
			return;
	if (!sight->target || sight->frame)
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
	VEC_FOREACH (&bench->ret->evidence.list, known)
		if (known->kind == EVIDENCE_CRASH && known->trial == sight->trial) {
			stack_copy(&e.freed_use->user, &known->crash->stack);
			break;
		}
	VEC_PUSH(&bench->ret->evidence.list, e);
}

static void tell_hop(struct bench *bench, unsigned int number, const struct level *level,
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
	e.hop->trials = bench->ret->evidence.trials;
	e.hop->key_right = bench->homes.key_right;
	e.hop->key_tried = bench->homes.key_tried;
	e.hop->end = end;
	VEC_PUSH(&bench->ret->evidence.list, e);
	bench->ret->hops = number;
}

/* The last write only repeated the value, and whoever brought it is judged: by all that is known.
 */
static void tell_repeated(struct bench *bench, const struct sight *sight)
{
	const struct write_seen *last = sight->write.write;

	if (write_changed(last))
		return;
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		if (e->kind != EVIDENCE_WRITE || e->trial != sight->trial ||
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
	VEC_FOREACH (&level->sights, sight)
		if (sight->mistaken)
			forget_mistaken(bench, sight->mistaken);
	VEC_FOREACH (&level->sights, sight) {
		tell_account(bench, sight);
		if (sight->stale) {
			tell_recycled_use(bench, sight);
			tell_holder(bench, sight);
		}
		if (sight->write.write) {
			tell_repeated(bench, sight);
			VEC_PUSH(&bench->ret->evidence.list, sight->write);
			sight->write.write = NULL;
		}
		if (sight->race.race) {
			VEC_PUSH(&bench->ret->evidence.list, sight->race);
			sight->race.race = NULL;
		}
	}
}

void level_deinit(struct level *level)
{
	VEC_FOREACH (&level->sights, sight) {
		home_deinit(&sight->home);
		block_life_free(sight->in);
		block_life_free(sight->target);
		mem_free(sight->mistaken);
		if (sight->write.write)
			evidence_deinit(&sight->write);
		if (sight->race.race)
			evidence_deinit(&sight->race);
	}
	VEC_DEINIT(&level->sights);
}
