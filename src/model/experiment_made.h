#pragma once

#include <stdint.h>

/*
 * An experiment that was made: how many trials it ran, and in how many of them it could have shown
 * something. Stored whatever it showed: without it, 'nothing was seen' cannot be told from 'nobody
 * looked'.
 */
enum experiment_kind {
	EXPERIMENT_RUN,		 /* the command as it is: exit status, signal, output */
	EXPERIMENT_CRASH_RECORD, /* what the agent recorded of a crash, and of the blocks there */
	EXPERIMENT_WATCH,	 /* watchpoints on the homes of the bad value */
	EXPERIMENT_GUARDS,	 /* guards around blocks, poison in freed ones */
	EXPERIMENT_FILL_FREED,	 /* random contents of freed blocks */
	EXPERIMENT_FILL_FRESH,	 /* random contents of new blocks */
	EXPERIMENT_RACE,	 /* reads and writes of a few words by all threads */
	EXPERIMENT_GROWTH,	 /* live blocks counted from test to test */
	EXPERIMENT_MACHINE,	 /* a memory test, one core at a time */
	EXPERIMENT_FENCES,	 /* blocks that end at closed pages */
	EXPERIMENT_KINDS,
};

struct experiment_made {
	enum experiment_kind kind;
	uint64_t trials; /* that it ran */
	/* Of these, those that could have shown it: they failed as it is hunted. Of growth: those
	 * that had enough tests. */
	uint64_t telling;
	uint64_t shown;		/* of `telling`, in which something was seen */
	uint64_t shown_passing; /* other trials in which something was seen */
	/* The share of what it looks for that it could see: guards around a sample of all blocks
	 * have less than 1. 0: it cannot tell at all. */
	double coverage;
};

/* The identifier in JSON: "guards". */
const char *experiment_name(enum experiment_kind kind);
