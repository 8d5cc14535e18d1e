#pragma once

#include <stdint.h>

#include "base/vec.h"
#include "model/rate_seen.h"

/*
 * What became of every trial of a case, in order, brief enough to be drawn: a dot each. Everything
 * in it is owned by it.
 */
enum {
	DOT_PASSED = -1,
	DOT_OTHER = -2,	 /* failed in a way that belongs to none of the families */
	DOT_ALWAYS = -3, /* failed in no other way than every run does */
};

struct trial_dot {
	uint64_t number;
	size_t series; /* index into the investigation's */
	unsigned int slot;
	size_t node; /* index into `nodes` */
	int family;  /* index into the families of the summary, or one of the above */
	int64_t started_ms;
	uint64_t wall_ns;
	char *summary; /* what it failed with; NULL when it passed */
	char *crumb;   /* of a failing one: the last breadcrumb; NULL */
};

/* How the rate looked after so many trials of the series that tells most. */
struct rate_point {
	struct rate rate;
};

struct trial_dots {
	VEC(struct trial_dot) list;	/* in the order of their numbers */
	VEC(struct rate_point) closing; /* at most RATE_POINTS, the last one is all of them */
	struct strv
		nodes; /* machines that trials ran on, in the order of their first; "": this one */
	struct strv crumbs; /* places of death and what follows them, in the program's order */
};

#define RATE_POINTS 120

void trial_dots_deinit(struct trial_dots *dots);
