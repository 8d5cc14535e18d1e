/* Allocators of the program's own: what was caught is asked again with them followed. */
#include "hunt/bench.h"

/* Looks on for one trial, whether it fails or not. */
static int find_recycler(struct chase *chase, const struct backtrack_step *step, struct err *err)
{
	struct stack allocated = { 0 };
	int r = 0;

	if (!event_log_context(chase->first->record.log, step->in.context, chase->symbols,
			       &allocated) ||
	    !scout_begin(&allocated, step->in.key.stack_hash, &chase->scout))
		goto out;
	chase_say(chase, "looking at %zu functions for an allocator of the program's own",
		  chase->scout.list.count);
	r = chase_begin_plan(chase, err);
	if (r < 0)
		goto out;
	scout_plan(&chase->scout, chase->hooks, &chase->items);
	r = stage_run(chase, STAGE_SCOUT, err);
out:
	scout_deinit(&chase->scout);
	stack_deinit(&allocated);
	return r;
}

static int find_recyclers(struct chase *chase, struct err *err)
{
	const struct backtrack *backtrack = &chase->first->backtrack;
	int r = 0;

	for (size_t i = 0; r == 0 && i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];
		bool known = step->home.kind != HOME_BLOCK || step->in.key.stack_hash == 0 ||
			     step->in.api >= LOG_API_PYTHON_OBJECT;

		for (size_t k = 0; k < i; k++)
			known |= backtrack->steps.items[k].in.key.stack_hash ==
				 step->in.key.stack_hash;
		if (!known && !chase->recycler.found && chase_may_go_on(chase))
			r = find_recycler(chase, step, err);
	}
	return r;
}

static void stake_out_recycled(struct chase *chase)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		enum stake_by by;

		if (home_left_out(chase, i))
			continue;
		if (step->home.kind == HOME_BLOCK &&
		    step->in.key.stack_hash == chase->recycler.stack_hash)
			(void)stakeout_add_result(&chase->stakeout, step, i,
						  chase->recycler.hands_out);
		else
			(void)stakeout_add_step(&chase->stakeout, &chase->first->record, step, i,
						home_is_named(step, &by) ? by : STAKE_KEY, 0);
	}
}

/* What was caught without it stands, and with it the question. */
static void leave_open(struct chase *chase, const char *words)
{
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&chase->levels[i].sights, sight)
			if (!sight->followed && sight->write.write && !sight->write.note) {
				sight->write.write->free_basis = FREE_UNSEEN;
				sight->write.note = mem_strdup(words);
			}
}

/* What was caught is known of blocks as malloc has them. Had the object been given back by then, to
 * an allocator of the program's own? Or is it another object that got the block since? */
int follow_recycler(struct chase *chase, int level, struct err *err)
{
	AUTO(mem_freep) char *words = NULL;
	int r;

	VEC_FOREACH (&chase->levels[level].sights, sight)
		if (sight->stale)
			return 0;
	r = find_recyclers(chase, err);
	if (r < 0 || !chase->recycler.found || !chase_may_go_on(chase))
		return r;
	chase_say(chase, "%s", chase->recycler.words);
	if (chase->recycler.whole)
		stake_out_recycled(chase);
	words = mem_strdup(chase->recycler.words);
	r = run_again(chase, err);
	leave_open(chase, words);
	return r;
}
