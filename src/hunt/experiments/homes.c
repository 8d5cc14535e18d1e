/*
 * Which homes are watched in the next trials, and how they are found there: by what is the same in
 * each run, as what a function is given, in any block of the context, in all of them. And what came
 * of it: which of them tells.
 */
#include "hunt/bench.h"

#include <string.h>

/* Trials without a failure, and so many times as many as one took until then, until the watch is
 * said to hide it. */
#define QUIET_TRIALS 20u
#define QUIET_TIMES 8u

#define LOWEST_ADDRESS 0x400000ull /* that programs are linked to */

#define PASSING_TRIALS 3u /* that show what a place holds when nothing fails… */
#define PASSING_TIMES 8u  /* …unless there are none among so many for each that is wanted */

/* Where a home is the same in every run, whichever block it is: nothing has to be found again. */
bool home_is_named(const struct backtrack_step *step, enum stake_by *ret)
{
	*ret = step->home.kind == HOME_STACK	? STAKE_FRAME
	       : step->home.kind == HOME_THREAD ? STAKE_THREAD
						: STAKE_GLOBAL;
	return step->home.kind == HOME_GLOBAL || step->home.kind == HOME_STACK ||
	       step->home.kind == HOME_THREAD;
}

/* A variable that only leads to the object whose field is bad is not asked for: a hook on its
 * function costs more than it tells. */
bool home_left_out(const struct chase *chase, unsigned int level)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	if (chase->numbers[level])
		return true;
	if (backtrack->steps.items[level].home.kind != HOME_STACK)
		return false;
	for (unsigned int i = 0; i < level; i++)
		if (backtrack->steps.items[i].home.kind != HOME_STACK &&
		    !backtrack->steps.items[i].by_value)
			return true;
	return chase->no_frames;
}

/* How the homes are watched in a round: by key; then as what the outermost function on the stack
 * that has them is given; then the next one. */
static bool stake_out(struct chase *chase, unsigned int round)
{
	const struct backtrack *backtrack = &chase->first->backtrack;
	bool any = false;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];
		enum stake_by by;
		bool named = home_is_named(step, &by), added = false;

		if (home_left_out(chase, i))
			continue;
		if (named)
			added = stakeout_add_step(&chase->stakeout, &chase->first->record, step, i,
						  by, 0);
		else if (round == 0)
			added = stakeout_add_step(&chase->stakeout, &chase->first->record, step, i,
						  STAKE_KEY, 0);
		else if (!any)
			added = stakeout_add_step(&chase->stakeout, &chase->first->record, step, i,
						  STAKE_ARGUMENT, round - 1);
		any |= added && !named;
	}
	return chase->stakeout.list.count > 0 && (round == 0 || any);
}

/* Is there anything that stake_out() would watch in that round? */
static bool can_stake_out(const struct chase *chase, unsigned int round)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].home.kind == HOME_BLOCK && !chase->numbers[i] &&
		    backtrack->steps.items[i].handles.count >= round)
			return true;
	return false;
}

static bool can_stake_context(const struct chase *chase)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].home.kind == HOME_BLOCK && !chase->numbers[i] &&
		    backtrack->steps.items[i].in.key.stack_hash != 0)
			return true;
	return false;
}

/* Last: any block of the context that the first block among the homes has. */
static bool stake_context(struct chase *chase)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (!chase->numbers[i] &&
		    stakeout_add_step(&chase->stakeout, &chase->first->record,
				      &backtrack->steps.items[i], i, STAKE_CONTEXT, 0))
			return true;
	return false;
}

unsigned int twins_left(const struct chase *chase, const struct backtrack *backtrack,
			const struct backtrack_step *step)
{
	const struct backtrack *first = &chase->first->backtrack;
	unsigned int left = step->twins;

	VEC_FOREACH (&backtrack->steps, other)
		for (unsigned int i = 0; i < first->steps.count && i < LEVELS_MAX; i++)
			left -= left > 0 && other != step && chase->numbers[i] &&
				home_same(&first->steps.items[i].home, &other->home);
	return left;
}

bool awaits_passing(const struct chase *chase)
{
	const struct backtrack *backtrack = &chase->first->backtrack;

	if (chase->round_trials - chase->round_failed >= PASSING_TRIALS ||
	    chase->round_trials >= PASSING_TIMES * chase->request->wanted)
		return false;
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].twins > 0 && !chase->numbers[i] &&
		    chase->levels[i].sights.count > 0)
			return true;
	return false;
}

bool was_watched(const struct chase *chase, uint64_t trial, unsigned int levels)
{
	for (unsigned int i = 0; i < levels; i++)
		VEC_FOREACH (&chase->levels[i].sights, sight)
			if (sight->trial == trial && sight->watched &&
			    ((sight->write.write && !sight->healthy) || sight->stale ||
			     sight->since_birth))
				return true;
	return false;
}

/* Sights were taken back. */
static void count_watched(struct chase *chase)
{
	chase->round_watched = 0;
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&chase->levels[i].sights, sight)
			chase->round_watched += was_watched(chase, sight->trial, i + 1) &&
						!was_watched(chase, sight->trial, i);
}

/* Is what is put there no address in trials that pass as well? Then whoever takes what he reads for
 * one does not read there. Once may be the same slip, which nobody noticed. */
static bool holds_numbers(const struct chase *chase, const struct home *home)
{
	uint64_t before = 0;

	VEC_FOREACH (&chase->ret->evidence.list, e)
		if (e->kind == EVIDENCE_WRITE && !e->failing && e->write->value_len == 8 &&
		    e->write->new != 0 &&
		    (e->write->new < LOWEST_ADDRESS || e->write->new >> 47 != 0) &&
		    home_same(&e->write->home, home)) {
			if (before != 0 && before != e->trial)
				return true;
			before = e->trial;
		}
	return false;
}

/* Of several places that hold the bad value only one was read. Those that cannot have been it are
 * no victims, whoever wrote there. */
static void drop_numbers(struct chase *chase)
{
	const struct backtrack *backtrack = &chase->first->backtrack;
	bool dropped = false;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		if (step->twins == 0 || chase->numbers[i] || !holds_numbers(chase, &step->home))
			continue;
		chase->numbers[i] = dropped = true;
		level_deinit(&chase->levels[i]);
		chase->levels[i] = (struct level){ 0 };
	}
	if (dropped)
		count_watched(chase);
}

static int run_round(struct chase *chase, struct err *err)
{
	int r = chase_plan(chase, err);

	if (r == 0)
		r = stage_run(chase, STAGE_WATCH, err);
	drop_numbers(chase);
	return r;
}

/* Watched from its birth on in every failing trial, never written, and still not zero; which says
 * nothing of what is on the stack. */
static bool unwritten(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight)
		if (!sight->since_birth || sight->write.write ||
		    (sight->victim.value == 0 && sight->home.kind != HOME_STACK))
			return false;
	return level->sights.count > 0;
}

/* The level whose home tells: where a pointer outlived its block; else the first at which somebody
 * was caught leaving the value; else where a pointer to a live block was put, which is hardly to
 * blame. -1: none. */
int telling_level(const struct chase *chase)
{
	int caught = -1, healthy = -1;

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		size_t stale = 0, writes = 0, sound = 0;

		VEC_FOREACH (&chase->levels[i].sights, sight) {
			stale += sight->stale;
			writes += sight->write.write != NULL && !sight->healthy;
			/* A function's own variable says nothing about anything else. */
			sound += sight->write.write != NULL && sight->healthy &&
				 sight->home.kind != HOME_STACK;
		}
		if (healthy < 0 && sound > 0)
			healthy = (int)i;
		if (stale > 0)
			return (int)i;
		/* Never written, and not zero: what was there before the block was. */
		if (caught < 0 && (writes > 0 || unwritten(&chase->levels[i])))
			caught = (int)i;
	}
	return caught >= 0 ? caught : healthy;
}

/* All that was caught there is how a pointer to a live block came to its place. */
bool is_healthy(const struct level *level)
{
	size_t writes = 0;

	VEC_FOREACH (&level->sights, sight) {
		writes += sight->write.write != NULL;
		if (sight->write.write && !sight->healthy)
			return false;
	}
	return writes > 0;
}

/* Did what was caught there only copy the value? Then the home it came from, in most trials. */
const struct sight *copied_from(const struct level *level)
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

static bool any_stale(const struct level *level)
{
	VEC_FOREACH (&level->sights, sight)
		if (sight->stale)
			return true;
	return false;
}

/* What was seen before counts until this round has seen it again: there, or nearer to the crash. */
int run_again(struct chase *chase, struct err *err)
{
	struct level before[LEVELS_MAX];
	int had = telling_level(chase), has, r;
	size_t seen = 0;

	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		seen += chase->levels[i].sights.count;
	memcpy(before, chase->levels, sizeof(before));
	memset(chase->levels, 0, sizeof(before));
	r = run_round(chase, err);
	for (unsigned int i = 0; i < LEVELS_MAX && i < chase->first->backtrack.steps.count; i++)
		if (chase->numbers[i]) {
			level_deinit(&before[i]);
			before[i] = (struct level){ 0 };
			had = had == (int)i ? -1 : had;
		}
	has = telling_level(chase);
	if (seen == 0 || (has >= 0 && (had < 0 || has <= had || any_stale(&chase->levels[has])))) {
		for (unsigned int i = 0; i < LEVELS_MAX; i++)
			level_deinit(&before[i]);
		return r;
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		level_deinit(&chase->levels[i]);
	memcpy(chase->levels, before, sizeof(before));
	return r;
}

/* A hook on a function writes to the stack below it, and takes time. Where it has not failed in so
 * many trials that it should have, the variables are left alone. */
static int run_without_frames(struct chase *chase, struct err *err)
{
	if (!chase_hidden(chase) || chase->pages)
		return 0;
	chase->quiet_max = 0;
	chase->no_frames = true;
	if (!stake_out(chase, 0))
		return 0;
	chase_say(chase, "it does not fail with a hook on the function whose variable it is: "
			 "watching the other homes only");
	return run_again(chase, err);
}

/* Hooks write to the stack, and blocks on watched pages lie apart from those that they had as
 * neighbours: both may hide it. Then there are other ways to spend the trials on. */
static uint64_t quiet_max(const struct chase *chase)
{
	const struct evidence_list *seen = &chase->ret->evidence;
	uint64_t expected =
		QUIET_TRIALS + QUIET_TIMES * seen->trials / (seen->failed ? seen->failed : 1);
	uint64_t half = chase_trials_left(chase) / 2;
	bool hides = chase->pages;

	VEC_FOREACH (&chase->stakeout.list, stake)
		hides |= stake->by == STAKE_FRAME;
	return !hides ? 0 : expected < half ? expected : half;
}

/* How homes in blocks are found: by what is the same in each run, then any block of the context,
 * the newest ones, then all of them. */
enum way { WAY_SAME, WAY_CONTEXT, WAY_PAGES };

static const char *way_words(enum way way, unsigned int round)
{
	if (way == WAY_PAGES)
		return "watching %zu home%s in all blocks of the same context, on watched pages";
	if (way == WAY_CONTEXT)
		return "watching %zu home%s in any block of the same context";
	return round == 0 ? "watching %zu home%s by the key of the block"
			  : "the keys did not lead to the victim: watching %zu home%s as what a "
			    "function on the crash's stack is given";
}

int watch_homes(struct chase *chase, struct err *err)
{
	enum way way = WAY_SAME;
	int r = 0, told;

	for (unsigned int round = 0; r == 0 && way != WAY_PAGES && chase_may_go_on(chase);
	     round++) {
		if (way == WAY_CONTEXT)
			way = WAY_PAGES;
		else if (!stake_out(chase, round))
			way = WAY_CONTEXT;
		told = telling_level(chase);
		/* A sound pointer explains nothing: the victim is still to be found. */
		if (way != WAY_SAME && ((told >= 0 && !is_healthy(&chase->levels[told]) &&
					 chase->round_watched == 0) ||
					!stake_context(chase)))
			break;
		chase_say(chase, way_words(way, round), chase->stakeout.list.count,
			  chase->stakeout.list.count == 1 ? "" : "s");
		chase->other_way = way == WAY_SAME ? can_stake_out(chase, round + 1) ||
							     can_stake_context(chase)
						   : way == WAY_CONTEXT;
		chase->pages = way == WAY_PAGES;
		chase->quiet_max = quiet_max(chase);
		r = run_again(chase, err);
		if (r == 0)
			r = run_without_frames(chase, err);
		chase->quiet_max = 0;
		if (chase->round_watched >= chase->request->wanted ||
		    (chase->round_watched > 0 && !chase->other_way))
			break;
	}
	chase->other_way = false;
	return r;
}

/* Watches the source of a copy together with what was watched before. */
int follow_copies(struct chase *chase, int level, struct err *err)
{
	const struct sight *copy = copied_from(&chase->levels[level]);

	if (chase->request->hops < 2 || !chase_may_go_on(chase) || !copy ||
	    !stakeout_add_source(&chase->stakeout, copy->write.write, &copy->source, LEVELS_MAX))
		return 0;
	chase_say(chase, "the value was only copied: watching where it came from, too");
	return run_again(chase, err);
}
