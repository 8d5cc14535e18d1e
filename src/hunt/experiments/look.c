/*
 * Look: runs it with allocation ids until it fails, to see what is hit. Failing trials that the
 * case has already are read first.
 */
#include "hunt/inquiry.h"

#include <signal.h>

#include "base/cstr.h"

#define CRASHES_UNTOLD 6u
#define CRASHES_ALIKE 2u /* of a program that fails each time */

static void found_first(struct bench *bench, struct reading *reading,
			const struct crash_reading *crashed)
{
	bench->start.found = true;
	bench->start.signal = bench->round.signal;
	bench->start.first = crashed;
	reading_close(bench->start.reading);
	bench->start.reading = reading_share(reading);
}

static bool is_alike(struct bench *bench)
{
	const struct crash *now = bench_crash(bench);
	const struct crash *first =
		bench->start.reading ? reading_crash(bench->start.reading, CRASH_WHOLE) : NULL;

	if (!now || !first)
		return now && !bench->start.found;
	return now->fault == first->fault && cstr_same(now->instruction, first->instruction) &&
	       now->stack.count > 0 && first->stack.count > 0 &&
	       cstr_same(now->stack.frames[0].function, first->stack.frames[0].function);
}

/* One that can be read back tells more than one that cannot. */
static bool tells_more(const struct crash_reading *now, const struct crash_reading *first)
{
	return now->has_backtrack && !first->has_backtrack;
}

static void read_crash(struct bench *bench)
{
	const struct crash_reading *crashed =
		reading_backtrack(bench->round.reading, THROUGH_OBJECTS);

	if (!crashed->has_record)
		return;
	bench->start.count++;
	bench->start.alike += is_alike(bench);
	cuts_note(bench, crashed);
	crash_reading_tell(crashed, bench->symbols, bench_crash(bench), &bench->ret->evidence);
	if (!bench->start.found || tells_more(crashed, bench->start.first))
		found_first(bench, bench->round.reading, crashed);
}

/* An observer that is known to hide it is not tried for ever, and what does not crash is looked at
 * with guards. */
bool look_gives_up(const struct bench *bench)
{
	return bench->round.ops == &look_round && !bench->start.found &&
	       bench->start.look_max > 0 && bench->spent.trials >= bench->start.look_max;
}

void look_read(struct bench *bench)
{
	const struct chase_request *request = bench->request;
	const struct crash_reading *before = bench->start.first;
	struct signature *kin = &bench->start.kin;

	read_crash(bench);
	if (bench->start.first != before && bench->start.first->has_backtrack &&
	    kin->id[0] != '\0' && request->start.chosen)
		request->start.chosen(request->start.chosen_ctx, kin);
	signature_deinit(kin);
}

/* Every trial so far, as it is chased. */
static bool fails_always(const struct bench *bench)
{
	const struct rate *rate = &bench->request->start.rate;

	return rate->failed == rate->trials && bench->ret->others == 0 &&
	       bench->ret->evidence.failed == bench->ret->evidence.trials;
}

/* It dies each time, and in the same way: another crash will say the same. Of one that comes and
 * goes three alike are no more than luck: trials side by side die of one cause at once. */
static bool says_the_same(const struct bench *bench)
{
	return fails_always(bench) && bench->start.alike >= CRASHES_ALIKE;
}

/* A fault that cannot be read back says little by itself, but one bug dies in many ways: another
 * crash may tell. More of them are cheaper than to ask the whole heap, unless they are all alike.
 * An abort always says the same. */
static uint64_t crashes_wanted(const struct bench *bench)
{
	int signal = bench->start.signal;

	if (!bench->start.first->has_backtrack && (signal == SIGSEGV || signal == SIGBUS) &&
	    !says_the_same(bench) && bench_is_nobody(bench))
		return CRASHES_UNTOLD;
	return bench_wanted(bench);
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	uint64_t wanted = bench->start.found ? crashes_wanted(bench) : 1;

	return bench->start.count < wanted ? wanted - bench->start.count : 0;
}

static bool enough(struct bench *bench)
{
	cuts_settle(bench);
	if (cuts_wait(bench))
		return false;
	return bench->start.found &&
	       (bench_worth_watching(bench) || bench->start.count >= crashes_wanted(bench));
}

const struct round_ops look_round = { .id = 0,
				      .observer = OBSERVE_IDS,
				      .replays = true,
				      .read_failing = look_read,
				      .enough = enough,
				      .missing = missing };

/* Failing trials under ids that other experiments have run. Until it is enough. */
static bool read_stored(struct bench *bench)
{
	const struct chase_request *request = bench->request;

	bench->round.ops = &look_round;
	for (size_t i = 0; i < request->start.stored_count && !enough(bench); i++) {
		const struct stored_trial *stored = &request->start.stored[i];

		bench->round.signal = stored->signal;
		bench_take_reading(bench, bench_reading_of(bench, stored->trial, stored->signal));
		(void)case_signature(bench->runner.cs, stored->signature, &bench->start.kin, NULL);
		look_read(bench);
	}
	return enough(bench);
}

/* A trial that the user named, or that the evidence is of. */
static bool read_named(struct bench *bench)
{
	const struct chase_request *request = bench->request;
	uint64_t from = request->start.lead ? request->start.lead->trial : request->start.from;
	AUTO(reading_closep) struct reading *reading = NULL;
	const struct crash_reading *crashed;

	if (from == 0)
		return false;
	reading = bench_reading_of(bench, from, 0);
	crashed = reading_backtrack(reading, THROUGH_OBJECTS);
	if (!crashed->has_backtrack || crashed->backtrack.steps.items[0].in.id == 0)
		return false;
	crash_reading_tell(crashed, bench->symbols, reading_crash(reading, CRASH_WHOLE),
			   &bench->ret->evidence);
	found_first(bench, reading, crashed);
	return true;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct bench *bench = inq->bench;

	if (bench->request->start.freed ||
	    (bench->request->start.lead && !lead_is_crash(bench->request->start.lead)))
		return false;
	return !bench->start.found && bench->start.rounds <= bench->start.looks;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, inq->bench->request->start.stored_count > 0 ? 0 : 1, 1.2, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;

	if (bench->start.rounds++ == 0 && (read_named(bench) || read_stored(bench)))
		return 0;
	if (bench->start.looks > 0) {
		bench->start.look_max = 0;
		BENCH_SAY(bench, "chase:look-on");
	} else {
		BENCH_SAY(bench, "chase:look", said_flag(bench->request->start.without_ids));
	}
	return round_run(bench, &look_round, inq->err);
}

EXPERIMENT(look, .name = "look", .question = QUESTION_WHO, .kind = EXPERIMENT_CRASH_RECORD,
	   .chance = 0.3, .repeats = true, .applies = applies, .price = price, .run = run);
