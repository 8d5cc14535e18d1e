#pragma once

#include "model/growth_site.h"
#include "model/trial.h"
#include "read/logs.h"

/*
 * Moments: the readings between which growth is told, each a milestone of the trial's output, and
 * where each stands among the checkpoints that a process recorded.
 */
struct moment {
	const struct milestone *milestone;
	const char *name; /* the test that has ended by then; "" for the first moment */
};

struct moments {
	VEC(struct moment) list; /* the first is before the first test */
	enum growth_basis basis;
};

/* Points into `milestones`. `chosen`: the user said which lines count. */
void moments_from_milestones(const struct milestone *milestones, size_t count, bool chosen,
			     struct moments *ret);
void moments_deinit(struct moments *moments);

/* A line that begins behind another one's end, in what was written with it. */
struct checkpoint_line {
	uint64_t offset; /* from the first byte that was written */
	char *text;	 /* NULL: there is none */
};

/* One checkpoint of a process. */
struct checkpoint {
	uint64_t seq; /* of its record: the order of all records of a log */
	uint64_t time_ns;
	uint64_t offset; /* in its stream */
	int fd;		 /* 1 or 2 before a line, else -1 */
	bool exit;
	char *text; /* how the line begins, as far as it was known; printable */
	struct checkpoint_line inside;
	uint32_t lane;
	uint64_t next_id, ids_given; /* as in struct log_checkpoint */
};

struct checkpoints {
	VEC(struct checkpoint) list; /* in order of time */
};

void checkpoints_read(struct event_log *log, struct checkpoints *ret);
void checkpoints_deinit(struct checkpoints *points);

#define MOMENT_UNSEEN SIZE_MAX

/*
 * For each moment the index of the checkpoint that shows the heap as it was then, or
 * MOMENT_UNSEEN: into `ret`, which has room for all. Returns how many were seen.
 *
 * A process that wrote the lines itself has a checkpoint at each, found by the line's place in the
 * stream, and by its text once others have written in between. For a process that did not, the
 * latest checkpoint before the line arrived is taken.
 */
size_t moments_locate(const struct moments *moments, const struct checkpoints *points,
		      uint64_t start_ns, size_t *ret);
