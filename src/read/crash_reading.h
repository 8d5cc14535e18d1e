#pragma once

#include "model/evidence.h"
#include "read/backtrack.h"

/*
 * What one failing trial's logs tell by themselves: its crash, the way back from it, blocks that
 * were used after their free, frees that were wrong.
 */
enum backtrack_through {
	THROUGH_OBJECTS,      /* homes and wrong frees are told by objects of hooked allocators */
	THROUGH_WHOLE_BLOCKS, /* only by blocks of malloc: the allocators were inferred */
	BACKTRACK_THROUGHS,
};

struct crash_reading {
	uint64_t trial;
	struct event_logs *logs;
	enum backtrack_through through;
	struct crash_record record;
	bool has_record; /* a process died of an instruction or of abort(), and it was recorded */
	struct backtrack backtrack;
	bool has_backtrack;
	char *no_backtrack; /* why there is none: a sentence */
};

/* Of the first of `places`. It borrows `logs`. */
void crash_reading_read(struct event_logs *logs, const struct crash_places *places, uint64_t trial,
			enum backtrack_through through, struct symbols *symbols,
			struct crash_reading *ret);
void crash_reading_deinit(struct crash_reading *crashed);

/* Adds the evidence: the crash itself (`crash`, or NULL), a freed block that was used, bad frees, a
 * file that was cut. */
void crash_reading_tell(const struct crash_reading *crashed, struct symbols *symbols,
			const struct crash *crash, struct evidence_list *ret);
/* Only what the crash itself says, and not the blocks that it leads to. */
void crash_reading_tell_crash(const struct crash_reading *crashed, const struct crash *crash,
			      struct evidence_list *ret);

/* The step of the backtrack whose pointer leads into a block that is freed for sure; -1: none. */
int crash_reading_freed_step(const struct crash_reading *crashed);
