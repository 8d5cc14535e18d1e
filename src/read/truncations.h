#pragma once

#include "debuginfo/symbols.h"
#include "model/crash.h"
#include "read/logs.h"

/*
 * Every time a process of the trial made a file shorter.
 */
struct truncation {
	char *path; /* made printable */
	uint64_t device, inode;
	uint64_t realtime_ns;
	struct file_cut *cut; /* without trial and before_s */
};

struct truncations {
	VEC(struct truncation) list;
};

void truncations_read(struct event_logs *logs, struct symbols *symbols, struct truncations *ret);
void truncations_deinit(struct truncations *truncations);
