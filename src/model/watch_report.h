#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/evidence.h"
#include "model/said.h"
#include "wire/log_watch.h"

/*
 * What `watch` saw: who wrote to the watched memory, over all trials.
 *
 * Everything in it is owned by it; all text from the target is printable.
 */

#define WATCH_VALUES 8

/* A value that a writer stored, and how often. */
struct watch_value {
	uint64_t value, count;
};

/* One caught write, with its trial. */
struct watch_moment {
	uint64_t trial;
	bool failing;
	struct write_seen *write; /* NULL: only counted */
};

/* All writes of one instruction. */
struct watch_writer {
	char *key; /* the same in every run: module and offset, or the emitted code's name */
	unsigned int watch; /* which --on, from 0 */
	uint64_t count, changed;
	unsigned int trials, failing; /* trials in which it wrote; those that failed */
	struct watch_moment first, last;
	struct watch_value values[WATCH_VALUES]; /* of the watched bytes, the first eight */
	unsigned int value_count;
	bool more_values;
	bool system_call;  /* the kernel wrote */
	bool certain;	   /* the instruction was found for sure */
	bool imprecise;	   /* some of its traps came late */
	uint64_t evidence; /* its piece in the case; 0: none */
};

/* Objects that lived at one address, one after the other. */
struct watch_instance {
	uint64_t number, id;
	char *key;
	uint64_t first_value, last_value, hits;
	enum log_watched_end end;
};

struct watch_conflation {
	uint64_t trial;
	bool failing;
	uint64_t address;
	uint64_t instances;		 /* in all */
	VEC(struct watch_instance) list; /* the last few, in order */
	/* Two of them that follow each other and hold different values, with no write in between:
	 * index of the first; what looks like a change is two objects. */
	int changed_at; /* -1: none */
};

struct watch_outside {
	uint64_t trial;
	bool failing;
	struct outside_change *change;
};

/* One --on. */
struct watch_target {
	char *text;	  /* as the user wrote it */
	struct said what; /* "8 bytes at +24 of what object_new returns" */
	char *global;	  /* the variable that was named; NULL: it is about objects */
	char *field;	  /* as the user named it; NULL */
	int64_t offset;	  /* of the watched bytes in it */
	uint64_t objects, armed, displaced;
	uint64_t hits, matched, unchanged, imprecise, late;
	uint64_t unplaced; /* trials in which it was never loaded */
	uint64_t moved;	   /* objects that realloc moved, or whose end it cut off: over with that */
	/* Blocks behind whose end the watched bytes lay, of those that are still told one by one,
	 * and the size of the largest. */
	uint64_t beyond, beyond_size;
};

/* The process that was stopped at a hit. */
struct watch_stop {
	int pid; /* 0: none was */
	uint64_t trial;
	struct write_seen *write;
};

struct watch_report {
	const char *case_dir;
	char *const *program;
	const char *mode;   /* "hw", "pages", "ptrace"; NULL: nothing could be watched */
	char *mode_reason;  /* why this one */
	bool kernel_writes; /* writes by system calls are seen, too */
	uint64_t trials, failed;
	uint64_t processes; /* that were watched */
	double seconds;
	bool interrupted;
	VEC(struct watch_target) targets;
	VEC(struct watch_writer) writers; /* those that wrote only in failing trials first */
	VEC(struct watch_conflation) conflations;
	VEC(struct watch_outside) outside;
	uint64_t conflation_count, outside_count; /* in all */
	struct watch_stop stop;
	struct said_list notes;
};

/* The write that stands for all of them: the last, but only first ones have their Python frames. */
const struct write_seen *watch_writer_shown(const struct watch_writer *writer);

void write_seen_free(struct write_seen *write);
void watch_report_deinit(struct watch_report *report);
