#pragma once

#include "model/evidence.h"
#include "read/backtrack.h"
#include "read/crash_report.h"

/*
 * What one failing trial's logs tell by themselves: its crash, the way back from it, blocks that
 * were used after their free, frees that were wrong.
 */
struct clues {
	uint64_t trial;
	struct event_logs logs;
	struct crash_places places;
	struct scene scene;
	bool has_scene; /* a process died of an instruction or of abort(), and it was recorded */
	struct trail trail;
	bool has_trail;
	char *no_trail; /* why there is none: a sentence */
	/* Set before clues_open(): allocators were inferred, and neither homes nor wrong frees are
	 * told by them. */
	bool whole_blocks;
};

/* `name` is the trial's directory, `signal` what the command died of. */
int clues_open(struct clues *clues, int trials, const char *name, uint64_t trial, int signal,
	       struct symbols *symbols, struct err *err);
void clues_deinit(struct clues *clues);

/* Adds the evidence: the crash itself (out of `report`, whose first crash is taken over), a freed
 * block that was used, bad frees, a file that was cut. */
void clues_tell(struct clues *clues, struct symbols *symbols, struct crash_report *report,
		struct evidence_list *ret);

/* The step of the trail whose pointer leads into a block that is freed for sure; -1: none. */
int clues_freed_step(const struct clues *clues);
