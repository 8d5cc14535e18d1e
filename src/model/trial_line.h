#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/vec.h"

/* One stored trial in short. */
struct trial_line {
	uint64_t number, series, position;
	unsigned int arm, slot;
	char *command;	  /* repro, compare, … */
	char *signatures; /* ids separated by a space; "": it passed */
	char *summaries;  /* what they say, separated by "; " */
	int exit_status;  /* -1 when a signal ended it */
	int signal;	  /* 0: none */
	bool timed_out;
	bool kept; /* its directory is still there */
	int64_t started_ms;
	uint64_t wall_ns, stdout_bytes, stderr_bytes;
	char *chaos; /* knobs in force, "pad,pin"; NULL: it was not disturbed */
	char *crumb; /* of a failing one: its last breadcrumb; else NULL */
	char *node;  /* the machine that it ran on; NULL: redhand's own */
	char *items; /* of minimize and bisect: what it ran, "0-5,7"; else NULL */
};

struct trial_lines {
	VEC(struct trial_line) list;
};

void trial_lines_deinit(struct trial_lines *lines);
