#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/mappings.h"
#include "model/snapshot.h"

/*
 * Snapshots for the tests, taken from a traced child instead of an event log.
 */
struct live {
	pid_t pid;
	int signal;   /* that it stopped for */
	char *output; /* all that it wrote to stdout before that */
	struct snapshot snapshot;
	/* What the snapshot points to. */
	struct piece *pieces;
	size_t pieces_room;
	struct mappings maps;
	struct mapping *mappings; /* the items of maps, for tests to change; a path goes through
				   * live_set_path() */
	unsigned char *stack;
};

/* Runs a program until it gets a signal that would end it (SIGILL is passed on), and
 * takes the snapshot. Fails the test when the program ends without one. */
void live_start(struct live *live, const char *const argv[]);

/* Says that a mapping is of another file. */
void live_set_path(struct mapping *mapping, const char *path);

/* Lets the program die, and frees everything. */
void live_stop(struct live *live);

/* Adds memory of the stopped child as a piece; false when it cannot be read. */
bool live_record(struct live *live, taddr address, size_t len);

/* A memory_reader on the stopped child; `arg` is the struct live. */
bool live_read(void *arg, taddr address, void *buf, size_t len);

/* Runs on, one instruction at a time and without delivering the signal, until the instruction
 * pointer is in the mapping of that name, and takes the snapshot anew. */
void live_step_into(struct live *live, const char *mapping);
