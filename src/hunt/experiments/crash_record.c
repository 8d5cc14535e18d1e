/*
 * The crash's own record: what kind of failure it is, and what that says about memory. It costs
 * nothing: it is read from a trial that there is.
 */
#include "hunt/inquiry.h"

#include "run/stored.h"
#include "studies/series/findings.h"

/* The trial that shows best what is hunted. */
static struct reading *example(const struct inquiry *inq)
{
	return readings_open(inq->how.plain.settings->readings, inq->cs,
			     inq->known.ids_trial != 0 ? inq->known.ids_trial
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
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct crash *crash = NULL;
	struct err ignored = { 0 };
	int r;

	(void)findings_crash(reading, inq->cs, &crash, &ignored);
	if (!crash)
		return decide(inq, "%s; nothing more was recorded",
			      inq->known.target->signature.summary);
	strbuf_addf(&sb, "trial %s died of %s", reading_name(reading), signal_name(crash->signal));
	strbuf_addf(&sb, " (%s)", fault_class_name(crash->fault));
	if (crash_site(crash)) {
		strbuf_adds(&sb, ", in ");
		frame_describe(crash_site(crash), &sb);
	}
	r = decide(inq, "%s", strbuf_str(&sb));
	crash_deinit(crash);
	mem_free(crash);
	return r;
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	return hunt_crashes(inq);
}

const struct experiment_ops experiment_crash_record = { .name = "crash-record",
							.question = QUESTION_HIT,
							.kind = EXPERIMENT_CRASH_RECORD,
							.chance = 0.3,
							.refines = true,
							.applies = applies,
							.run = run };
