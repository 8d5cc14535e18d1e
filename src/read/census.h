#pragma once

#include "read/moments.h"
#include "wire/log_format.h"

/*
 * Census: how many blocks of each context were alive in one process, moment by moment.
 *
 * Kept as changes, since most contexts rest most of the time.
 */
struct census_change {
	uint32_t moment;
	int64_t blocks, bytes; /* more or less than at the moment before */
};

struct census_context {
	uint32_t row;	     /* in the log */
	uint64_t stack_hash; /* the context's key */
	unsigned int frame_count;
	unsigned int
		inside; /* frames of the interpreter's own, inside of the first Python one; 0 */
	/* Innermost first, the same in every run; Python's where they stand in the stack. */
	uint64_t frames[LOG_CONTEXT_FRAMES + LOG_PYTHON_FRAMES];
	uint64_t blocks, bytes; /* at the last moment */
	VEC(struct census_change) changes;
};

struct census {
	size_t moments;
	const char **names; /* of each moment, as in struct moment */
	bool tests;	    /* these are tests */
	uint64_t lines;	    /* checkpoints at lines, up to the last moment's */
	VEC(struct census_context) contexts;
};

/* Reads the log of one process. A process that saw fewer than two moments has an empty census.
 * The census points into `moments`. */
void census_take(struct event_log *log, const struct moments *moments, struct census *ret);
void census_deinit(struct census *census);
