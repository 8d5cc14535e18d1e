#pragma once

#include "base/auto.h"
#include "model/trial.h"
#include "read/block_damage.h"
#include "read/crash_reading.h"
#include "read/crash_report.h"
#include "read/hits.h"
#include "read/moments.h"
#include "read/truncations.h"

/*
 * What one trial says.
 *
 * A reading is opened once, when its trial has ended, and handed to whoever wants to know something
 * about that trial. Nothing is read before somebody asks: the logs are mapped at the first
 * question, and each part is worked out when it is first asked for, and kept. Nobody else opens an
 * event log (tools/check-includes keeps read/logs_open.h inside this folder).
 *
 * What it hands out belongs to it and lives as long as it does. The trial's directory may be gone
 * by then: what is mapped stays.
 */
struct reading;

struct reading_of {
	int trials;		 /* the directory of all trials */
	uint64_t trial;		 /* its number, which is the name of its directory there */
	int signal;		 /* what it died of; 0: of none, or it is not known */
	struct symbols *symbols; /* borrowed; lives longer than the reading */
	/* How it ended, for what its output tells; NULL: not known. Borrowed until
	 * reading_forget_end(). */
	const struct trial_end *end;
	bool lines_chosen; /* the user said which lines of its output count */
};

/* It cannot fail; what cannot be read is told by reading_logs(), and empty for the others. */
struct reading *reading_open(const struct reading_of *of);
/* One more who closes it. */
struct reading *reading_share(struct reading *reading);
void reading_close(struct reading *reading); /* NULL is fine */
AUTO_DEFINE(struct reading, reading_close)

/* `end` is about to be gone, and so is what was made of it. */
void reading_forget_end(struct reading *reading);

uint64_t reading_trial(const struct reading *reading);
const char *reading_name(const struct reading *reading); /* of its directory */
struct symbols *reading_symbols(const struct reading *reading);
/* Is it a reading of the same trial, that died of the same (0: of whatever)? */
bool reading_is(const struct reading *reading, const struct reading_of *of);

/* The event logs of its processes. Fails when the trial has no directory. */
int reading_logs(struct reading *reading, struct event_logs **ret, struct err *err);

/* All crashes that its processes recorded, the one that counts first. CRASH_SITE has that one only,
 * if it has any. */
const struct crash_report *reading_crashes(struct reading *reading, enum crash_depth depth);
/* The one that counts; NULL: none was recorded. */
const struct crash *reading_crash(struct reading *reading, enum crash_depth depth);

/* The record of the crash that counts, and the way back from it. */
const struct crash_reading *reading_backtrack(struct reading *reading,
					      enum backtrack_through through);

/* Adds what that crash says by itself, whatever stands in blocks: a file that was cut, a NULL
 * pointer, a zero divisor, a full stack, an abort. Of a trial that an observer has disturbed, which
 * its note says; so all but a file that was cut is not `failing`. */
void reading_tell_proof(struct reading *reading, struct evidence_list *ret);

/* What was caught at watched memory. */
const struct trial_hits *reading_hits(struct reading *reading);

/* What a sanitizer or Valgrind said in its output; NULL: nothing. */
const struct reported *reading_reported(struct reading *reading);

/* The line of its output that says that somebody else has what it wants (read/clash.h); the caller
 * frees it. NULL: none does. */
char *reading_clash(struct reading *reading);

/* What it showed to the outside, as a checksum: how it ended and what it printed last. Never 0. */
uint64_t reading_outcome(const struct reading *reading);

/* Files that its processes made shorter. */
const struct truncations *reading_truncations(struct reading *reading);

/* The moments of its output. Without `end` there are none. */
const struct moments *reading_moments(struct reading *reading);

/* Damaged guards and freed blocks, wrong frees. */
const struct damage *reading_damage(struct reading *reading);

/* Deletes those logs of it that have nothing to show to anybody. The reading itself keeps them. */
void reading_prune(struct reading *reading);
