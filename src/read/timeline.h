#pragma once

#include "model/heap.h"
#include "read/moments.h"

/*
 * Timeline: which lines and tests of a trial a process had behind it when it wrote a record.
 */
struct timeline {
	const struct moments *moments;
	const char *running; /* test that had started and not ended; NULL */
	struct checkpoints points;
	size_t *at;   /* for each moment its checkpoint, or MOMENT_UNSEEN */
	bool by_time; /* no line is its own: moments are when the lines arrived */
};

/* Points into `moments` and `end`. */
void timeline_init(struct timeline *timeline, struct event_log *log, const struct moments *moments,
		   const struct trial_end *end);
void timeline_deinit(struct timeline *timeline);

/* When a block with this id, of this lane, was damaged, as its record tells. */
void timeline_place(const struct timeline *timeline, const struct log_item *item,
		    const struct log_heap_damage *damage, const struct log_block *block,
		    struct heap_when *ret);

/* When the record itself was written. */
void timeline_place_record(const struct timeline *timeline, const struct log_item *item,
			   struct heap_when *ret);
