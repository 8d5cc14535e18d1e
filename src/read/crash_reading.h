#pragma once

#include "model/evidence.h"
#include "read/backtrack.h"
#include "read/crash_report.h"

/*
 * What one failing trial's logs tell by themselves: its crash, the way back from it, blocks that
 * were used after their free, frees that were wrong.
 */
struct crash_reading {
	uint64_t trial;
	struct event_logs logs;
	struct crash_places places;
	struct crash_record record;
	bool has_record; /* a process died of an instruction or of abort(), and it was recorded */
	struct backtrack backtrack;
	bool has_backtrack;
	char *no_backtrack; /* why there is none: a sentence */
	/* Set before crash_reading_open(): allocators were inferred, and neither homes nor wrong
	 * frees are told by them. */
	bool whole_blocks;
};

/* `name` is the trial's directory, `signal` what the command died of. */
int crash_reading_open(struct crash_reading *crashed, int trials, const char *name, uint64_t trial,
		       int signal, struct symbols *symbols, struct err *err);
void crash_reading_deinit(struct crash_reading *crashed);

/* Adds the evidence: the crash itself (out of `report`, whose first crash is taken over), a freed
 * block that was used, bad frees, a file that was cut. */
void crash_reading_tell(struct crash_reading *crashed, struct symbols *symbols,
			struct crash_report *report, struct evidence_list *ret);

/* The step of the backtrack whose pointer leads into a block that is freed for sure; -1: none. */
int crash_reading_freed_step(const struct crash_reading *crashed);
