/*
 * A tiny compiler for the scopes' enter and exit.
 *
 * Tier 1 code calls the C functions. Tier 2 does the flags and the slot itself; the compiler thread
 * makes it for types that are called often. Code is installed as a pair, so enter and exit always
 * change together; an object entered before and left after is told by its flags.
 *
 * Compiled code is named in /tmp/perf-PID.map.
 */
#ifndef TAGFLIP_JIT_H
#define TAGFLIP_JIT_H

#include "object.h"

enum variant {
	VARIANT_NARROW,
	VARIANT_WIDE,
	VARIANT_STALE,
	VARIANT_CONFLATED,
	VARIANT_CACHED,
	VARIANT_INNOCENT,
	VARIANT_COUNT,
};

struct code {
	int (*enter)(struct object *self);
	int (*exit)(struct object *self);
	int tier;
	const struct code *previous; /* may still be running: never freed */
};

extern const char *const variant_names[VARIANT_COUNT];

/* Maps the code memory and starts the compiler thread. -1 with errno on failure. */
int jit_start(enum variant variant);
void jit_stop(void);

/* Compiles a type for tier 1 at once. */
void jit_force_compile(struct type *type);

/* The code to run; counts the call. */
const struct code *jit_code(struct type *type);

#endif
