/*
 * Who reads what was freed, where nothing else shows it: no pointer that leads nowhere, no damaged
 * block, only a wrong value that the program itself stumbles over.
 *
 * First whose freed blocks matter. In each trial those of a context are all overwritten or all left
 * alone, by the toss of a coin (engine/heap/chance.h): the failure goes with the coin of the
 * context whose blocks are read. Then who reads them: the blocks of that context get pages to
 * themselves, which are shut when they are freed, and the first to touch one dies there.
 */
#include "hunt/bench.h"

#include <string.h>

#define SUSPECTS 4u
#define FENCED_TRIALS 6u /* for each that is wanted */

static bool fence(struct chase *chase, const struct heap_report *report)
{
	stakeout_deinit(&chase->stakeout);
	chase->stakeout = (struct stakeout){ 0 };
	VEC_FOREACH (&report->suspects, suspect)
		if (suspect->p < TOSS_P && chase->stakeout.list.count < SUSPECTS)
			(void)stakeout_add_fence(&chase->stakeout, suspect->context);
	return chase->stakeout.list.count > 0;
}

static bool is_fenced(const struct chase *chase, const struct block_life *block)
{
	for (size_t i = 0; block && block->key && i < chase->stakeout.list.count; i++) {
		const char *context = chase->stakeout.list.items[i].home.key;

		if (strncmp(block->key, context, strlen(context)) == 0)
			return true;
	}
	return false;
}

/* Only the use: what it died of was our own doing. */
void read_fenced(struct chase *chase)
{
	const struct crash_reading *crashed;
	struct evidence_list seen = { 0 };
	bool any = false;

	if (chase->signal == 0)
		return;
	crashed = reading_backtrack(chase->reading, THROUGH_OBJECTS);
	if (!crashed->has_record)
		return;
	crash_reading_tell(crashed, chase->symbols, chase_crash(chase), &seen);
	VEC_FOREACH (&seen.list, e) {
		if (e->kind == EVIDENCE_FREED_USE && is_fenced(chase, e->freed_use->block)) {
			VEC_PUSH(&chase->guarded.list, *e);
			any = true;
		} else {
			evidence_deinit(e);
		}
	}
	VEC_DEINIT(&seen.list);
	chase->guarded_caught += any;
}

bool readers_enough(const struct chase *chase)
{
	return chase->guarded_caught - chase->guarded_before >= chase->request->wanted ||
	       chase->round_trials >= chase->request->wanted * FENCED_TRIALS;
}

/* Why the use has to do with the failure. */
static void tell_odds(struct chase *chase, const struct heap_report *report, size_t from)
{
	for (size_t i = from; i < chase->guarded.list.count; i++) {
		struct evidence *e = &chase->guarded.list.items[i];

		VEC_FOREACH (&report->suspects, suspect)
			if (!e->note && strncmp(e->freed_use->block->key, suspect->context,
						strlen(suspect->context)) == 0)
				e->note = mem_printf(
					"it failed in %llu of %llu trials in which such blocks were "
					"overwritten when they were freed, and in %llu of %llu in "
					"which they were not (p = %.2g)",
					(unsigned long long)suspect->poisoned.failed,
					(unsigned long long)suspect->poisoned.trials,
					(unsigned long long)suspect->clear.failed,
					(unsigned long long)suspect->clear.trials, suspect->p);
	}
}

static int look(struct chase *chase, const struct heap_report *report, bool *ret_told,
		struct err *err)
{
	size_t from = chase->guarded.list.count;
	int r;

	chase_say(chase,
		  "it goes with what stands in freed blocks of %zu context%s: shutting "
		  "these, to see who touches them",
		  chase->stakeout.list.count, chase->stakeout.list.count == 1 ? "" : "s");
	r = chase_plan(chase, err);
	chase->guarded_before = chase->guarded_caught;
	if (r == 0)
		r = stage_run(chase, STAGE_FENCE, err);
	*ret_told = r == 0 && chase->guarded.list.count > from;
	tell_odds(chase, report, from);
	return r;
}

int readers_look(struct chase *chase, bool *ret_told, struct err *err)
{
	struct heap_report report = { 0 };
	int r;

	*ret_told = false;
	/* What the guards hide cannot go with their coin. */
	if ((chase->ret->guarded_failed == 0 && !chase->request->freed) ||
	    !toss_worth(chase, "freed blocks", "redhand heap --poison-chance 0.5"))
		return 0;
	chase_say(chase, "no damage: does it go with what stands in freed blocks?");
	r = toss_run(chase, NULL, &report, err);
	if (r == 0 && chase_may_go_on(chase) && fence(chase, &report))
		r = look(chase, &report, ret_told, err);
	heap_report_deinit(&report);
	return r;
}
