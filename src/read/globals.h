#pragma once

#include "debuginfo/symbols.h"
#include "read/logs.h"

/*
 * A global variable, or a place in a file's data. Name (NULL: unknown) and module are the caller's.
 */
struct global_place {
	char *name, *module;
	uint64_t offset; /* in the module's file */
	uint64_t within; /* from the variable's start; 0 without a name */
};

/* False when the address is in no module's data. */
bool global_find(struct event_log *log, struct symbols *symbols, uint64_t address,
		 struct global_place *ret);
