#pragma once

#include "base/auto.h"
#include "base/err.h"
#include "model/crash.h"

/*
 * From the event logs of a trial to what happened, in words and with names.
 *
 * An autopsy keeps debug information open between trials: the first costs a moment, the next
 * almost nothing.
 */
struct autopsy;

struct autopsy *autopsy_new(void);
void autopsy_free(struct autopsy *autopsy);
AUTO_DEFINE(struct autopsy, autopsy_free)

enum crash_depth {
	CRASH_SITE,  /* class and stack: enough for a signature */
	CRASH_WHOLE, /* and the life of every block it touched */
};

/* All crashes that the trial's processes recorded, the one that counts first: `signal` is what the
 * command itself died of (0: it did not). No crash recorded is an empty report. */
int autopsy_trial(struct autopsy *autopsy, int trials, const char *trial, int signal,
		  enum crash_depth depth, struct crash_report *ret, struct err *err);

/* Every time a process of the trial made a file shorter. */
struct cut_seen {
	const char *path; /* made printable */
	uint64_t device, inode;
	uint64_t realtime_ns;
	struct file_cut *cut; /* without trial and before_s */
};

typedef int (*cut_fn)(void *ctx, const struct cut_seen *seen, struct err *err);
int autopsy_cuts(struct autopsy *autopsy, int trials, const char *trial, cut_fn fn, void *ctx,
		 struct err *err);
