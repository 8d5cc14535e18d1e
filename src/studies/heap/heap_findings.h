#pragma once

#include "model/crash.h"
#include "model/heap.h"
#include "read/reading.h"

/*
 * The findings of all trials: those that are alike become one.
 */
struct finding_trial {
	uint64_t number;
	bool failed;
	const struct trial_end *end;
};

/* Adds what the trial's guards showed. */
void findings_add(const struct finding_trial *trial, struct reading *reading,
		  struct heap_report *report);

/* A crash of one of its processes, if it went through a freed block. */
void findings_add_crash(const struct finding_trial *trial, const struct crash *crash,
			struct heap_report *report);

/* Did this trial, the last one that was added, show any? */
bool findings_in(const struct heap_report *report, uint64_t trial);

/* Those seen most often first. */
void findings_sort(struct heap_report *report);
