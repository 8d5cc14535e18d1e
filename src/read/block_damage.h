#pragma once

#include "debuginfo/symbols.h"
#include "model/heap.h"
#include "read/logs.h"
#include "read/moments.h"

/*
 * What the guards of one trial's blocks showed: damaged bytes, writes into freed blocks, wrong
 * frees.
 */
struct damage {
	/* By process; how often and in which trials each was seen is left to whoever lays trials
	 * together. */
	VEC(struct heap_finding) findings;
	uint64_t blocks;	     /* that were looked at in last rounds */
	uint64_t guarded, unguarded; /* of the processes that ended */
	struct heap_fence fence;
	struct said_list notes;
};

struct damage_source {
	struct event_logs *logs;
	struct symbols *symbols;
	uint64_t trial;
	const struct moments *moments; /* of its output */
	const struct trial_end *end;
};

void damage_read(const struct damage_source *of, struct damage *ret);
void damage_deinit(struct damage *damage);
