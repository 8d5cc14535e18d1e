#pragma once

#include "debuginfo/symbols.h"
#include "model/crash.h"
#include "model/heap.h"
#include "read/logs.h"
#include "read/moments.h"

/*
 * From the event logs of a trial to findings with names; those that are alike become one.
 */
struct heap_trial {
	uint64_t number;
	bool failed;
	const struct trial_end *end;
	const struct moments *moments; /* of its output */
	struct event_logs *logs;
	struct symbols *symbols;
};

/* Adds what the trial's logs tell to the report. */
void findings_read(const struct heap_trial *trial, struct heap_report *report);

/* A crash of one of its processes, if it went through a freed block. */
void findings_add_crash(const struct heap_trial *trial, const struct crash *crash,
			struct heap_report *report);

/* Those seen most often first. */
void findings_sort(struct heap_report *report);

/* The log that knows the block's contexts: after a fork, blocks that the child got with it belong
 * to the parent's. NULL when that is not there. */
struct event_log *event_logs_owner(struct event_logs *logs, struct event_log *log, uint64_t id);
