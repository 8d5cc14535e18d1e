#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Where a trial runs: the directory trials/N, and a temporary directory outside of the project.
 *
 * A project's own tools (pytest, go test) walk through all that lies in it: they must not come upon
 * what trials are writing, nor, later, upon what is left of them.
 *
 * Most trials pass and leave nothing. Their room is cleared and becomes the next one's of the same
 * slot, under another name: a new directory for each would cost more than a small program does
 * (docs/design/trials.md).
 */
struct room {
	int trials; /* the case's trials/ */
	unsigned int slot;
	int tmp;     /* where temporary directories are; -1: trials have none of their own */
	bool shared; /* root's program may go on as somebody else, and nobody would see it */
};

void room_init(struct room *room, int trials, unsigned int slot, int tmp);

/* Makes trials/`name` ready for a trial. */
int room_open(const struct room *room, const char *name, struct err *err);

/* The trial is over. A process that gave root up had its directory opened to its new user (agent):
 * it is closed again, and what that user left there becomes ours. */
void room_reclaim(const struct room *room, const char *name);

/* The trial's directory stays; what it left in its temporary one is put there as .tmp, or dropped.
 */
int room_leave(const struct room *room, const char *name, bool keep_tmp, struct err *err);

/* Nothing of the trial is to stay. A plan may, for the next one: observe_write_plan() has the last
 * word on it. */
int room_drop(const struct room *room, const char *name, struct err *err);

/* There will be no further trial in this slot. */
void room_end(const struct room *room);
