#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/*
 * One run of the command in one slot, as it was seen from outside.
 *
 * All text in here has been made printable: it comes from the target.
 */
struct trial_number {
	uint64_t value; /* unique in the case; trials/N is its directory */
};

/* A process of the tree that died from a crash signal while nobody was there to wait for it. */
struct process_death {
	pid_t pid;
	int signal; /* 0 when there was none */
};

/* A line of output that stands for a moment of the run. */
enum milestone_kind {
	MILESTONE_LINE,	      /* a breadcrumb */
	MILESTONE_TEST_START, /* a test framework says that a test begins */
	MILESTONE_TEST_END,
};

struct milestone {
	enum milestone_kind kind;
	int fd;		     /* 1 or 2 */
	uint64_t start, end; /* where the line begins and ends in that stream, in bytes */
	uint64_t arrived_ns; /* CLOCK_MONOTONIC, when its end was read */
	char *name;	     /* the test's, or the breadcrumb */
	char *text;	     /* how the line begins: at most MILESTONE_TEXT bytes of it */
};

#define MILESTONE_TEXT 64

/* Two breadcrumbs that followed each other. */
struct crumb_pair {
	char *from, *to;
};

struct trial_end {
	int exit_status; /* -1 when a signal ended the command */
	int signal;	 /* 0 when it exited */
	bool timed_out;
	struct process_death stray;
	struct process_death observed; /* first crash that an observer saw, in any process */
	bool hid_its_own;	       /* it is the command's own, which ended itself for it */
	bool by_observer;	       /* the observer's own machinery ended it: no failure */
	bool cuts;		       /* an observer saw a process make a file shorter */
	unsigned int leftovers;	       /* processes that outlived the command and had to be ended */

	int64_t started_ms; /* since the epoch */
	uint64_t wall_ns, user_ns, system_ns;
	uint64_t peak_kib;
	uint64_t stdout_bytes, stderr_bytes;

	char *matched;	    /* line that --fail-on matched; NULL when none did */
	char *running_test; /* started and not ended; NULL when that cannot be told */
	struct strv failed_tests;
	char *last_crumb;		  /* NULL when nothing was printed */
	VEC(struct crumb_pair) pairs;	  /* only when asked for */
	VEC(struct milestone) milestones; /* only when asked for, in the order of arrival */
	bool milestones_full;		  /* there were more */

	/* Of a run that was asked for certain tests (run/expected_tests.h). */
	uint64_t started;  /* how many of them started, in order */
	bool strayed;	   /* another test than the next one of the list started */
	bool came_through; /* the last of them was seen to end */
	bool stopped;	   /* redhand ended it: nothing more was to be learnt */
};

void milestone_deinit(struct milestone *milestone);
/* What it died of: the command itself, else a child, else whatever an observer saw die; 0: nothing.
 */
int trial_end_signal(const struct trial_end *end);
void trial_end_deinit(struct trial_end *end);

/* Did something stop the command before its own end? */
static inline bool trial_end_cut_short(const struct trial_end *end)
{
	return end->signal != 0 || end->timed_out;
}

#define CRUMB_START "(start of output)"
#define CRUMB_END "(end of output)"
