#pragma once

#include "base/err.h"
#include "run/job.h"

/*
 * One arm of a comparison: what it does differently.
 */
struct arm {
	char *name;
	unsigned int jobs; /* 0: as many as the others */
	struct strv env;   /* NAME=VALUE sets, NAME alone removes */
	bool observed;	   /* `observer` was given */
	enum observer observer;
	bool disturbed;	    /* `chaos` was given */
	unsigned int chaos; /* enum chaos_knob */
	struct strv cmd;    /* another command instead of the program; empty: none */
	struct strv args;   /* put behind the program's own */
};

/*
 * Reads NAME[:SETTING,SETTING…]. A setting is jobs=N, cmd=WORDS, args=WORDS, unset=NAME,
 * observe=OBSERVER, chaos=KNOBS, env=NAME=VALUE, or simply NAME=VALUE for the environment. A comma
 * or colon parts two settings only where NAME= follows, so that values such as
 * 0,1 or /bin:/usr/bin need no quoting.
 */
int arm_parse(const char *text, struct arm *ret, struct err *err);
void arm_deinit(struct arm *arm);

/* The arms of a chase's series: what its trials were run for. */
enum chase_arm {
	CHASE_ARM_LOOKING, /* under ids */
	CHASE_ARM_WATCHED,
	CHASE_ARM_GUARDED, /* under heap, with watches */
};
