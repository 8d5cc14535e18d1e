#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "debuginfo/open_modules.h"
#include "model/snapshot.h"

struct module;

/*
 * A snapshot as an address space: which module is behind an address, and what its memory held, from
 * the recorded bytes or, for memory that the process could not write, from the mapped file.
 *
 * Borrows both the snapshot and the modules; short-lived.
 */
struct space {
	struct modules *modules;
	const struct snapshot *snapshot;
	struct space_slot *slots; /* per mapping, filled in when first asked for */
};

struct place {
	const struct mapping *mapping; /* NULL: unmapped */
	enum module_match match;
	struct module *module; /* for MODULE_FOUND */
	uint64_t vaddr;	       /* in the module's file; for MODULE_REPLACED the file offset */
	bool kernel;	       /* the vDSO */
};

void space_init(struct space *space, struct modules *modules, const struct snapshot *snapshot);
void space_deinit(struct space *space);

void space_find(struct space *space, taddr address, struct place *ret);

/* A memory_reader: `arg` is the space. */
bool space_read(void *arg, taddr address, void *buf, size_t len);

/* Reads up to len bytes that end at `address`; returns how many. */
size_t space_read_before(struct space *space, taddr address, uint8_t *buf, size_t len);

/* Reads up to len bytes from `address` on; returns how many. */
size_t space_read_after(struct space *space, taddr address, uint8_t *buf, size_t len);

/* The address of a symbol in the first mapped file that has it and is called "PREFIX…" or
 * "libPREFIX…": asking every library of a process would index them all. */
bool space_symbol(struct space *space, const char *prefix, const char *name, taddr *ret);
