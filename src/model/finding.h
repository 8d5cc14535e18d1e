#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/program_file.h"

/*
 * One line of `redhand doctor`: something that was tried, and how it went.
 *
 * Plain bytes, because a probe may crash: it runs in a process of its own and
 * leaves its finding in shared memory. `id` and `title` are static texts.
 */
enum finding_status {
	FINDING_OK,
	FINDING_LIMITED,
	FINDING_NO,
};

struct finding {
	const char *id;	   /* stable, part of the JSON contract */
	const char *title; /* what was tried */
	enum finding_status status;
	char found[1024]; /* what was seen, in words */
	char lost[512];	  /* what is lost; empty when the status is ok */
	char enable[512]; /* how to get it; empty when the status is ok or nobody can */
};

struct finding_list {
	struct finding *items;
	size_t count;
};

/* Everything one run of doctor found. */
struct diagnosis {
	struct finding_list machine;
	struct finding_list program; /* empty when no program was named */
	struct program_facts *facts; /* NULL when no program was named */
	char *watchers;		     /* the ways to catch a write that work here; "" for none */
	bool usable;		     /* something can watch, and the program can be run */
};
