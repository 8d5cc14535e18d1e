#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

/*
 * Names of code that a process emitted at run time, from /tmp/perf-PID.map and jitdump files.
 *
 * Both are written by the target: the parsers take any bytes, use what makes sense and pass over
 * the rest. Where two entries cover an address, the one written later counts, because emitted code
 * replaces older code.
 */
struct code_layout;
struct jit_names;

struct jit_name {
	const char *function; /* never NULL */
	const char *file;     /* NULL when unknown */
	uint32_t line;
	taddr start;
};

struct jit_names *jit_names_new(void);
void jit_names_free(struct jit_names *names);

/* Adds the lines "START SIZE name" of a perf map. Returns how many were used. */
size_t jit_names_add_perf_map(struct jit_names *names, const char *text, size_t len);

/* Adds the records of a jitdump file. Returns how many pieces of code it named. */
size_t jit_names_add_dump(struct jit_names *names, const uint8_t *bytes, size_t len);

/* Looks an address up. The strings live as long as `names`. */
bool jit_names_find(struct jit_names *names, taddr address, struct jit_name *ret);

/* Adds the starts of all named pieces of code between low and high. */
void jit_names_starts(const struct jit_names *names, taddr low, taddr high,
		      struct code_layout *ret);

/* Reads the files that belong to the snapshot's process: perf-PID.map in `directory`, and every
 * mapped jit-PID.dump. Files that are missing, not regular or too large are left out. */
struct jit_names *jit_names_load(const struct snapshot *snapshot, const char *directory);

/* A number that changes when those files do, or belong to another process. */
uint64_t jit_names_stamp(const struct snapshot *snapshot, const char *directory);
