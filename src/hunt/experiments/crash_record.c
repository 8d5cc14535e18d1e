/*
 * The crash's own record: what kind of failure it is, and what that says about memory. It costs
 * nothing: it is read from a trial that there is.
 */
#include "hunt/inquiry.h"

#include "run/stored.h"
#include "studies/series/series_findings.h"

/* The trial that shows best what is hunted. */
static struct reading *example(const struct inquiry *inq)
{
	return readings_open(inq->how.plain.settings->shared.readings, inq->cs,
			     inq->known.ids.trial != 0 ? inq->known.ids.trial
						       : inq->known.target->trial,
			     inq->known.target->signature.signal);
}

void hit_tell_record(struct inquiry *inq)
{
	AUTO(reading_closep) struct reading *reading = NULL;
	const struct crash_reading *crashed;

	if (!hunt_crashes(inq))
		return;
	VEC_FOREACH (&inq->evidence.list, e)
		if (e->kind == EVIDENCE_CRASH)
			return;
	reading = example(inq);
	crashed = reading_backtrack(reading, THROUGH_OBJECTS);
	if (crashed->has_record)
		crash_reading_tell(crashed, reading_symbols(reading),
				   reading_crash(reading, CRASH_WHOLE), &inq->evidence);
}

static int run(struct inquiry *inq)
{
	AUTO(reading_closep) struct reading *reading = example(inq);
	struct crash *crash = NULL;
	struct err ignored = { 0 };
	int r;

	(void)findings_crash(reading, inq->cs, &crash, &ignored);
	if (!crash)
		return DECIDE(inq, "hit:unrecorded",
			      said_text(inq->known.target->signature.summary));
	r = DECIDE(inq, "hit:crash", said_text(reading_name(reading)),
		   said_text(signal_name(crash->signal)),
		   said_text(fault_told(fault_class_name(crash->fault))),
		   said_frame(crash_site(crash)));
	crash_deinit(crash);
	mem_free(crash);
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	return hunt_crashes(inq);
}

EXPERIMENT(crash_record, .name = "crash-record", .question = QUESTION_HIT,
	   .kind = EXPERIMENT_CRASH_RECORD, .chance = 0.3, .refines = true, .applies = applies,
	   .run = run);
