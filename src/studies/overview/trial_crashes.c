#include "studies/overview/trial_crashes.h"

#include "base/auto.h"
#include "run/stored.h"

static int find_cuts(struct case_store *cs, struct crash_report *report, struct err *err)
{
	int r = 0;

	VEC_FOREACH (&report->crashes, crash)
		if (r == 0 && crash->fault == FAULT_MAPPING_SHRANK)
			r = case_find_cut(cs, crash->file_device, crash->file_inode,
					  crash->realtime_ns, &crash->cut, err);
	return r;
}

/* What the program said itself. */
static void note_reported(const struct reported *reported, struct crash_report *ret)
{
	struct evidence e = { .kind = EVIDENCE_REPORTED, .any = (void *)reported };

	if (reported)
		evidence_say(&e, said_new(&ret->notes));
}

int trial_crashes(struct case_store *cs, struct trial_number trial, int signal,
		  struct crash_report *ret, struct err *err)
{
	AUTO(readings_deinit) struct readings readings = { 0 };
	AUTO(reading_closep)
	struct reading *reading = readings_open(&readings, cs, trial.value, signal);
	const struct crash_report *report;
	struct event_logs *logs;
	int r = reading_logs(reading, &logs, err);

	if (r < 0)
		return r;
	report = reading_crashes(reading, CRASH_WHOLE);
	VEC_FOREACH (&report->crashes, crash) {
		struct crash copy;

		crash_copy(&copy, crash);
		VEC_PUSH(&ret->crashes, copy);
	}
	said_list_copy(&ret->notes, &report->notes);
	note_reported(reading_reported(reading), ret);
	return find_cuts(cs, ret, err);
}
