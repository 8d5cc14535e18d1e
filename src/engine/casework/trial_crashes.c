#include "engine/casework/trial_crashes.h"

#include <stdio.h>

#include "base/auto.h"
#include "read/crash_report.h"

static int find_cuts(struct case_store *cs, struct crash_report *report, struct err *err)
{
	int r = 0;

	VEC_FOREACH (&report->crashes, crash)
		if (r == 0 && crash->fault == FAULT_MAPPING_SHRANK)
			r = case_find_cut(cs, crash->file_device, crash->file_inode,
					  crash->realtime_ns, &crash->cut, err);
	return r;
}

int trial_crashes(struct case_store *cs, struct trial_number trial, int signal,
		  struct crash_report *ret, struct err *err)
{
	AUTO(autopsy_freep) struct autopsy *autopsy = autopsy_new();
	char name[24];
	int r;

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)trial.value);
	r = autopsy_trial(autopsy, case_trials_dir(cs), name, signal, CRASH_WHOLE, ret, err);
	return r == 0 ? find_cuts(cs, ret, err) : r;
}
