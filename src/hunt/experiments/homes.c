/*
 * Which homes are watched in the next trials, and how they are found there: by what is the same in
 * each run, as what a function is given, in any block of the context, in all of them. And what came
 * of it: which of them tells.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "judge/store_facts.h"

/* Trials without a failure, and so many times as many as one took until then, until the watch is
 * said to hide it. */
#define FAILURES_UNWATCHED 2u  /* failing trials whose victim was not watched, until another way */
#define FAILURES_PER_VICTIM 5u /* …and while some were: keys that hold by chance */
#define QUIET_TRIALS 20u
#define CROWD 16u /* blocks of a context that live at once: a few of them watched tell little */
#define QUIET_TIMES 8u

#define LOWEST_ADDRESS 0x400000ull /* that programs are linked to */

#define PASSING_TRIALS 3u /* that show what a place holds when nothing fails… */
#define MANY 256u	  /* objects of one context */
#define PASSING_TIMES 8u  /* …unless there are none among so many for each that is wanted */

/* Where a home is the same in every run, whichever block it is: nothing has to be found again. */
bool home_is_named(const struct backtrack_step *step, enum locate_by *ret)
{
	*ret = step->home.kind == HOME_STACK	? LOCATE_FRAME
	       : step->home.kind == HOME_THREAD ? LOCATE_THREAD
						: LOCATE_GLOBAL;
	return step->home.kind == HOME_GLOBAL || step->home.kind == HOME_STACK ||
	       step->home.kind == HOME_THREAD;
}

/* A variable that only leads to the object whose field is bad is not asked for: a hook on its
 * function costs more than it tells. */
bool home_left_out(const struct bench *bench, unsigned int level)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	if (bench->homes.numbers[level])
		return true;
	if (backtrack->steps.items[level].home.kind != HOME_STACK)
		return false;
	for (unsigned int i = 0; i < level; i++)
		if (backtrack->steps.items[i].home.kind != HOME_STACK &&
		    !backtrack->steps.items[i].by_value)
			return true;
	return bench->homes.no_frames;
}

/* How the homes are watched in a round: by key; then as what the outermost function on the stack
 * that has them is given; then the next one. */
static bool watch_round(struct bench *bench, unsigned int round)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;
	bool any = false;

	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];
		enum locate_by by;
		bool named = home_is_named(step, &by), added = false;

		if (home_left_out(bench, i))
			continue;
		if (named)
			added = watchset_add_step(&bench->watchset, &bench->start.first->record,
						  step, i, by, 0);
		else if (round == 0)
			added = watchset_add_step(&bench->watchset, &bench->start.first->record,
						  step, i, LOCATE_KEY, 0);
		else if (!any)
			added = watchset_add_step(&bench->watchset, &bench->start.first->record,
						  step, i, LOCATE_ARGUMENT, round - 1);
		any |= added && !named;
	}
	return bench->watchset.list.count > 0 && (round == 0 || any);
}

/* Is there anything that watch_round() would watch in that round? */
static bool can_watch_round(const struct bench *bench, unsigned int round)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].home.kind == HOME_BLOCK && !bench->homes.numbers[i] &&
		    backtrack->steps.items[i].handles.count >= round)
			return true;
	return false;
}

static bool can_watch_context(const struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].home.kind == HOME_BLOCK && !bench->homes.numbers[i] &&
		    backtrack->steps.items[i].in.key.stack_hash != 0)
			return true;
	return false;
}

/* What stands in a freed block is nobody's: the pointer that led there is the next home. */
static bool is_in_freed(const struct backtrack *backtrack, unsigned int level)
{
	return backtrack->steps.items[level].in.id != 0 &&
	       backtrack->steps.items[level].in.state == LOG_BLOCK_FREED;
}

static bool is_crowded(const struct bench *bench, const struct backtrack_step *step)
{
	struct event_log *log = bench->start.first->record.log;
	struct log_context row;

	return log_context_row(&log->reader, step->in.context, &row) &&
	       row.allocs > CROWD + row.frees_own + row.frees_other;
}

/* One of thousands of objects that live for a moment each: which of them it is goes by chance, and
 * the newest ones are all that there are. What the crash read before it came to that object may lie
 * in others, which the pointer in it led to. -1: there is none. */
static int one_of_many(const struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		if (step->home.kind != HOME_BLOCK || step->in.api < LOG_API_PYTHON_OBJECT)
			return -1;
		if (!is_in_freed(backtrack, i) && step->in.key.ordinal >= MANY &&
		    step->in.api == LOG_API_PYTHON_OBJECT && !is_crowded(bench, step))
			return (int)i;
	}
	return -1;
}

bool homes_one_of_many(const struct bench *bench)
{
	return one_of_many(bench) >= 0;
}

/* Last: any block of the context that the first block among the homes has. */
static bool watch_context(struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;
	int many = one_of_many(bench);

	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
	if (many > 0 && !bench->homes.numbers[many])
		(void)watchset_add_step(&bench->watchset, &bench->start.first->record,
					&backtrack->steps.items[many], (unsigned int)many,
					LOCATE_CONTEXT, 0);
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if ((many > 0 && (unsigned int)many == i) ||
		    (!bench->homes.numbers[i] && !is_in_freed(backtrack, i) &&
		     watchset_add_step(&bench->watchset, &bench->start.first->record,
				       &backtrack->steps.items[i], i, LOCATE_CONTEXT, 0)))
			break;
	return bench->watchset.list.count > 0;
}

unsigned int twins_left(const struct bench *bench, const struct backtrack *backtrack,
			const struct backtrack_step *step)
{
	const struct backtrack *first = &bench->start.first->backtrack;
	unsigned int left = step->twins;

	VEC_FOREACH (&backtrack->steps, other)
		for (unsigned int i = 0; i < first->steps.count && i < LEVELS_MAX; i++)
			left -= left > 0 && other != step && bench->homes.numbers[i] &&
				home_same(&first->steps.items[i].home, &other->home);
	return left;
}

/* Does it take more trials that pass to tell which of several places was read? */
static bool awaits_passing(const struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	if (bench->round.trials - bench->round.failed >= PASSING_TRIALS ||
	    bench->round.trials >= PASSING_TIMES * bench->request->limits.wanted)
		return false;
	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++)
		if (backtrack->steps.items[i].twins > 0 && !bench->homes.numbers[i] &&
		    bench->homes.levels[i].observations.count > 0)
			return true;
	return false;
}

bool was_watched(const struct bench *bench, uint64_t trial, unsigned int levels)
{
	for (unsigned int i = 0; i < levels; i++)
		VEC_FOREACH (&bench->homes.levels[i].observations, observation)
			if (observation->trial == trial && observation->watched &&
			    ((observation->write.write && !observation->healthy) ||
			     observation->dangling.stale || observation->since_birth))
				return true;
	return false;
}

/* Sights were taken back. */
static void count_watched(struct bench *bench)
{
	bench->round.watched = 0;
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&bench->homes.levels[i].observations, observation)
			bench->round.watched += was_watched(bench, observation->trial, i + 1) &&
						!was_watched(bench, observation->trial, i);
}

/* Is what is put there no address in trials that pass as well? Then whoever takes what he reads for
 * one does not read there. Once may be the same slip, which nobody noticed. */
static bool holds_numbers(const struct bench *bench, const struct home *home)
{
	uint64_t before = 0;

	VEC_FOREACH (&bench->ret->evidence.list, e)
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
static void drop_numbers(struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;
	bool dropped = false;

	for (unsigned int i = 0; i < backtrack->steps.count && i < LEVELS_MAX; i++) {
		const struct backtrack_step *step = &backtrack->steps.items[i];

		if (step->twins == 0 || bench->homes.numbers[i] ||
		    !holds_numbers(bench, &step->home))
			continue;
		bench->homes.numbers[i] = dropped = true;
		level_deinit(&bench->homes.levels[i]);
		bench->homes.levels[i] = (struct level){ 0 };
	}
	if (dropped)
		count_watched(bench);
}

/* Watched since it was there, never written, and not zero: what was there before it was. Of the
 * stack zero says so, too: nobody clears frames. */
static bool is_unwritten(const struct observation *observation)
{
	return observation->since_birth && !observation->write.write &&
	       (observation->victim.value != 0 || observation->home.kind == HOME_STACK);
}

/* Did what was caught in that trial store the very value that it died of, in the very block? A
 * pointer that outlived its block is proof, too, and a value that nobody wrote. One into the middle
 * of the block may be damaged, unless somebody was seen storing it. */
static bool is_proof(const struct observation *observation)
{
	const struct write_seen *w = observation->write.write;
	unsigned int act = WRITE_LAST | WRITE_FOUND;

	if (!observation->watched)
		return false;
	if (observation->dangling.stale)
		return observation->dangling.exact || observation->write.write;
	if (is_unwritten(observation))
		return true;
	return w && (w->flags & act) == act && !observation->healthy &&
	       (observation->same_block || observation->since_birth || observation->exact ||
		observation->home.kind != HOME_BLOCK);
}

/* Every failing trial of this round that was watched is proof, at the home that tells. */
static bool all_proofs(const struct bench *bench)
{
	int level = telling_level(bench);
	uint64_t proofs = 0;

	if (level < 0)
		return false;
	VEC_FOREACH (&bench->homes.levels[level].observations, observation)
		proofs += is_proof(observation);
	return proofs > 0 && proofs >= bench->round.watched && proofs >= bench->round.failed;
}

uint64_t bench_wanted(const struct bench *bench)
{
	uint64_t wanted = bench->request->limits.wanted;

	return bench->request->limits.proofs && wanted > PROOFS ? PROOFS : wanted;
}

/* This way does not lead to the victim. One trial tells that died of another block of the kind; of
 * others two. */
static uint64_t misses_left(const struct bench *bench)
{
	uint64_t failed = bench->round.failed;

	if (bench->round.watched > 0 || bench->round.missed > 0 || failed >= FAILURES_UNWATCHED)
		return 0;
	return failed == 0 ? 1 : FAILURES_UNWATCHED - failed;
}

/* This way leads to the victim by chance, and another one is left. */
static bool leads_by_chance(const struct bench *bench)
{
	uint64_t failed = bench->round.failed;

	return bench->homes.other_way && failed >= FAILURES_PER_VICTIM &&
	       failed >= FAILURES_PER_VICTIM * bench->round.watched;
}

static bool enough(struct bench *bench)
{
	uint64_t wanted = bench->request->limits.wanted;

	if (bench->request->limits.proofs && wanted > PROOFS && bench->round.watched >= PROOFS &&
	    all_proofs(bench))
		wanted = PROOFS;
	return (bench->round.watched >= wanted && !awaits_passing(bench)) || bench_hidden(bench) ||
	       (bench->round.watched == 0 && misses_left(bench) == 0) || leads_by_chance(bench);
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	uint64_t watched = bench->round.watched, wanted = bench->request->limits.wanted;

	if (awaits_passing(bench))
		return 0;
	if (watched == 0 &&
	    (bench->round.failed > 0 || bench->homes.key_tried > bench->homes.key_led))
		return misses_left(bench);
	if (watched < bench_wanted(bench))
		wanted = bench_wanted(bench);
	return watched < wanted ? wanted - watched : 0;
}

static void read_any(struct bench *bench, bool passed)
{
	if (passed)
		read_passing(bench);
}

const struct round_ops homes_round = { .id = 2,
				       .observer = OBSERVE_WATCH,
				       .planned = true,
				       .may_pages = true,
				       .replays = true,
				       .read_any = read_any,
				       .read_failing = read_failing,
				       .enough = enough,
				       .missing = missing };

static int run_round(struct bench *bench, struct err *err)
{
	int r = bench_plan(bench, err);

	if (r == 0)
		r = round_run(bench, &homes_round, err);
	drop_numbers(bench);
	return r;
}

/* Watched from its birth on in every failing trial, never written, and still not zero; which says
 * nothing of what is on the stack. */
static bool unwritten(const struct level *level)
{
	VEC_FOREACH (&level->observations, observation)
		if (!is_unwritten(observation))
			return false;
	return level->observations.count > 0;
}

/* Did whoever was caught there change a part of a pointer, each time? */
bool level_bends(const struct level *level)
{
	size_t bends = 0, writes = 0;

	VEC_FOREACH (&level->observations, observation) {
		writes += observation->write.write != NULL;
		bends += observation->write.write && store_bends_pointer(observation->write.write);
	}
	return bends > 0 && bends == writes;
}

/* The level whose home tells: where a pointer outlived its block, or where a part of one was
 * changed, whatever it led to; else the first at which somebody
 * was caught leaving the value; else where a pointer to a live block was put, which is hardly to
 * blame. -1: none. */
int telling_level(const struct bench *bench)
{
	int caught = -1, healthy = -1;

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		size_t stale = 0, writes = 0, sound = 0;

		VEC_FOREACH (&bench->homes.levels[i].observations, observation) {
			stale += observation->dangling.stale;
			writes += observation->write.write != NULL && !observation->healthy;
			/* A function's own variable says nothing about anything else. */
			sound += observation->write.write != NULL && observation->healthy &&
				 observation->home.kind != HOME_STACK;
		}
		if (healthy < 0 && sound > 0)
			healthy = (int)i;
		if (stale > 0 || level_bends(&bench->homes.levels[i]))
			return (int)i;
		/* Never written, and not zero: what was there before the block was. */
		if (caught < 0 && (writes > 0 || unwritten(&bench->homes.levels[i])))
			caught = (int)i;
	}
	return caught >= 0 ? caught : healthy;
}

/* All that was caught there is how a pointer to a live block came to its place. */
bool is_healthy(const struct level *level)
{
	size_t writes = 0;

	VEC_FOREACH (&level->observations, observation) {
		writes += observation->write.write != NULL;
		if (observation->write.write && !observation->healthy)
			return false;
	}
	return writes > 0;
}

/* Did what was caught there only copy the value? Then the home it came from, in most trials. */
const struct observation *copied_from(const struct level *level)
{
	const struct observation *found = NULL;
	size_t copies = 0, writes = 0;

	VEC_FOREACH (&level->observations, observation) {
		writes += observation->write.write != NULL;
		if (!observation->write.write || observation->dangling.stale ||
		    !(observation->write.write->flags & WRITE_COPIED))
			continue;
		copies++;
		found = observation;
	}
	return copies * 2 > writes ? found : NULL;
}

static bool any_stale(const struct level *level)
{
	return VEC_ANY(&level->observations, observation, observation->dangling.stale);
}

/* What was seen before counts until this round has seen it again: there, or nearer to the crash. */
int run_again(struct bench *bench, struct err *err)
{
	struct level before[LEVELS_MAX];
	int had = telling_level(bench), has, r;
	size_t seen = 0;

	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		seen += bench->homes.levels[i].observations.count;
	memcpy(before, bench->homes.levels, sizeof(before));
	memset(bench->homes.levels, 0, sizeof(before));
	r = run_round(bench, err);
	for (unsigned int i = 0; i < LEVELS_MAX && i < bench->start.first->backtrack.steps.count;
	     i++)
		if (bench->homes.numbers[i]) {
			level_deinit(&before[i]);
			before[i] = (struct level){ 0 };
			had = had == (int)i ? -1 : had;
		}
	has = telling_level(bench);
	if (seen == 0 ||
	    (has >= 0 && (had < 0 || has <= had || any_stale(&bench->homes.levels[has])))) {
		for (unsigned int i = 0; i < LEVELS_MAX; i++)
			level_deinit(&before[i]);
		return r;
	}
	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		level_deinit(&bench->homes.levels[i]);
	memcpy(bench->homes.levels, before, sizeof(before));
	return r;
}

/* A hook on a function writes to the stack below it, and takes time. Where it has not failed in so
 * many trials that it should have, the variables are left alone. */
static int run_without_frames(struct bench *bench, struct err *err)
{
	if (!bench_hidden(bench) || bench->homes.pages)
		return 0;
	bench->round.quiet_max = 0;
	bench->homes.no_frames = true;
	if (!watch_round(bench, 0))
		return 0;
	BENCH_SAY(bench, "homes:no-hook");
	return run_again(bench, err);
}

/* Hooks write to the stack, and blocks on watched pages lie apart from those that they had as
 * neighbours: both may hide it. Then there are other ways to spend the trials on. */
static uint64_t quiet_max(const struct bench *bench)
{
	const struct evidence_list *seen = &bench->ret->evidence;
	uint64_t expected =
		QUIET_TRIALS + QUIET_TIMES * seen->trials / (seen->failed ? seen->failed : 1);
	uint64_t half = bench_trials_left(bench) / 2;
	bool hides = bench->homes.pages;

	VEC_FOREACH (&bench->watchset.list, spec)
		hides |= spec->by == LOCATE_FRAME;
	return !hides ? 0 : expected < half ? expected : half;
}

/* Registers watch the newest blocks of a context only: of many the victim is hardly among them. */
static bool context_is_crowded(const struct bench *bench)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	VEC_FOREACH (&backtrack->steps, step)
		if (step->home.kind == HOME_BLOCK && step->in.key.stack_hash != 0)
			return is_crowded(bench, step);
	return false;
}

/* How homes in blocks are found: by what is the same in each run, then any block of the context,
 * the newest ones, then all of them. */
enum way { WAY_SAME, WAY_CONTEXT, WAY_PAGES };

static const char *way_id(enum way way, unsigned int round)
{
	if (way == WAY_PAGES)
		return "homes:pages";
	if (way == WAY_CONTEXT)
		return "homes:context";
	return round == 0 ? "homes:key" : "homes:argument";
}

/* How a round watches, after how the one before did. False: nothing is left to watch. */
static bool way_choose(struct bench *bench, unsigned int round, bool many, enum way *way)
{
	bool crowded = context_is_crowded(bench);
	int told;

	if (*way == WAY_CONTEXT)
		*way = WAY_PAGES;
	else if (many || !watch_round(bench, round))
		*way = !many && crowded ? WAY_PAGES : WAY_CONTEXT;
	if (*way == WAY_SAME)
		return true;
	if (bench->homes.stride != 0 && !crowded)
		return false;
	/* A sound pointer explains nothing: the victim is still to be found. */
	told = telling_level(bench);
	if (told >= 0 && !is_healthy(&bench->homes.levels[told]) && bench->round.watched == 0)
		return false;
	return watch_context(bench);
}

/* Or it died of a wrong free meanwhile: that tells more than any home. */
static bool homes_are_done(struct bench *bench)
{
	if (!bench_worth_watching(bench) || bench->round.watched >= bench->request->limits.wanted)
		return true;
	return bench->round.watched > 0 && !leads_by_chance(bench) &&
	       (!bench->homes.other_way || enough(bench));
}

static int watch_homes(struct bench *bench, struct err *err)
{
	bool many = homes_one_of_many(bench);
	enum way way = WAY_SAME;
	int r = 0;

	for (unsigned int round = 0; r == 0 && way != WAY_PAGES && bench_may_go_on(bench);
	     round++) {
		if (!way_choose(bench, round, many, &way))
			break;
		BENCH_SAY(bench, way_id(way, round), said_number(bench->watchset.list.count));
		bench->homes.other_way = way == WAY_SAME ? can_watch_round(bench, round + 1) ||
								   can_watch_context(bench)
							 : way == WAY_CONTEXT;
		bench->homes.pages = way == WAY_PAGES;
		bench->round.quiet_max = quiet_max(bench);
		r = run_again(bench, err);
		if (r == 0)
			r = run_without_frames(bench, err);
		bench->round.quiet_max = 0;
		if (homes_are_done(bench))
			break;
	}
	bench->homes.other_way = false;
	return r;
}

/* It is another element of an array each time, in a block that is found again: the elements are
 * watched, in turns where there are more than watches, and anew when they turn out to lie closer.
 */
static int watch_rows(struct bench *bench, struct err *err)
{
	const struct crash_reading *first = bench->start.first;
	uint64_t before = 0;
	unsigned int turn = 0;
	int r = 0;

	while (r == 0 && bench->homes.stride != 0 && telling_level(bench) < 0 &&
	       bench_may_go_on(bench) && bench_worth_watching(bench)) {
		turn = bench->homes.stride == before ? turn + 1 : 0;
		before = bench->homes.stride;
		watchset_deinit(&bench->watchset);
		bench->watchset = (struct watchset){ 0 };
		if (!watchset_add_rows(&bench->watchset, &first->record,
				       first->backtrack.steps.items, before, turn))
			break;
		if (turn == 0)
			BENCH_SAY(bench, "homes:rows", said_number(bench->watchset.list.count));
		bench->homes.pages = true;
		bench->round.quiet_max = quiet_max(bench);
		r = run_again(bench, err);
		bench->round.quiet_max = 0;
	}
	return r;
}

/* Watches the source of a copy together with what was watched before. */
static int follow_copies(struct bench *bench, int level, struct err *err)
{
	const struct observation *copy = copied_from(&bench->homes.levels[level]);

	if (bench->request->limits.hops < 2 || !bench_may_go_on(bench) || !copy ||
	    !watchset_add_source(&bench->watchset, copy->write.write, &copy->source, LEVELS_MAX))
		return 0;
	BENCH_SAY(bench, "homes:copied");
	return run_again(bench, err);
}

void homes_forget(struct bench *bench)
{
	for (size_t i = 0; i < sizeof(bench->homes.levels) / sizeof(bench->homes.levels[0]); i++)
		level_deinit(&bench->homes.levels[i]);
	memset(bench->homes.levels, 0, sizeof(bench->homes.levels));
}

/* What such a pointer leads to is nobody's block: that it was freed says nothing. */
static bool is_freed_use(const struct evidence *e, const void *ctx)
{
	return e->kind == EVIDENCE_FREED_USE;
}

static void conclude_homes(struct bench *bench)
{
	int level = telling_level(bench);
	struct level *source = &bench->homes.levels[LEVELS_MAX];
	bool more = false;

	if (level < 0) {
		/* Nobody was caught anywhere: the first home's accounts say so. */
		if (bench->homes.levels[0].observations.count > 0)
			tell_level(bench, &bench->homes.levels[0], 1, HOP_NOTHING);
		SAY(&bench->ret->outcome,
		    bench->ret->watched_failed > 0 ? "outcome:nobody" : "outcome:hidden");
		return;
	}
	more = source->observations.count > 0;
	if (level_bends(&bench->homes.levels[level]))
		evidence_drop(&bench->ret->evidence, is_freed_use, NULL);
	tell_level(bench, &bench->homes.levels[level], 1,
		   more			    ? HOP_GOES_ON
		   : bench_may_go_on(bench) ? HOP_ORIGIN
					    : HOP_LIMIT);
	if (more)
		tell_level(bench, source, 2, HOP_ORIGIN);
	SAY(&bench->ret->outcome, "outcome:writer", said_number(bench->ret->hops));
}

static bool anybody_caught(const struct level *level)
{
	return VEC_ANY(&level->observations, observation, observation->write.write);
}

bool homes_caught_source(const struct bench *bench)
{
	return anybody_caught(&bench->homes.levels[LEVELS_MAX]);
}

/* Is there still something to ask about what the homes hold? */
static bool follows(const struct bench *bench)
{
	enum guards_reason reason = guards_reason(bench);
	int level = telling_level(bench);

	return reason == GUARDS_AMBIGUOUS || reason == GUARDS_OVERRUN ||
	       (level >= 0 && !bench->homes.followed &&
		(copied_from(&bench->homes.levels[level]) || probe_may_tell(bench)));
}

void homes_settle(struct bench *bench, bool over)
{
	if (!bench->homes.watched || bench->told || bench->homes.concluded ||
	    (!over && follows(bench)))
		return;
	conclude_homes(bench);
	bench->homes.concluded = true;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct bench *bench = inq->bench;

	return bench->start.found && !bench->told && !bench->homes.watched &&
	       bench_worth_watching(bench) && guards_reason(bench) == GUARDS_REASONS;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	const struct chase_limits *limits = &inq->bench->request->limits;

	price_of_failures(inq, (double)(limits->proofs ? PROOFS : limits->wanted), 1.5, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	int r;

	BENCH_SAY(bench, "homes:found", said_number(bench->start.first->trial),
		  said_number(bench->start.first->backtrack.steps.count));
	bench->homes.watched = true;
	r = watch_homes(bench, inq->err);
	return r < 0 ? r : watch_rows(bench, inq->err);
}

EXPERIMENT(homes, .name = "homes", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.7, .refines = true, .applies = applies, .price = price, .run = run);

/* The pointer at the source of a copy belongs to the home one level up: levels of sources follow.
 */
static bool copies_apply(struct inquiry *inq, struct said *why)
{
	const struct bench *bench = inq->bench;
	int level = telling_level(bench);

	return bench->homes.watched && !bench->told && !bench->homes.followed &&
	       !bench->homes.concluded && guards_reason(bench) != GUARDS_AMBIGUOUS && level >= 0 &&
	       copied_from(&bench->homes.levels[level]);
}

static int copies_run(struct inquiry *inq)
{
	inq->bench->homes.followed = true;
	return follow_copies(inq->bench, telling_level(inq->bench), inq->err);
}

EXPERIMENT(copies, .name = "copies", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.7, .refines = true, .applies = copies_apply, .price = price,
	   .run = copies_run);
