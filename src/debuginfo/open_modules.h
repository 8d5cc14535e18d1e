#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct module;

/*
 * Every module opened so far, shared by all snapshots. A file that changes on disk between two
 * snapshots (a rebuild in the middle of a bisection) is opened anew; the old one stays open, since
 * recorded build-ids may still ask for it.
 */
struct modules;

enum module_match {
	MODULE_NONE,	 /* no ELF file: anonymous memory, data, emitted code */
	MODULE_FOUND,	 /* the file that was mapped, as far as the record can tell */
	MODULE_REPLACED, /* it was a file, but not the one that is there now */
};

struct modules *modules_new(const char *debug_path);
/* A file, or a directory of files, that what is nowhere else may be a copy of, by its build-id. */
void modules_add(struct modules *modules, const char *path);
void modules_free(struct modules *modules);

/* The module behind a mapping. `ret` is set for MODULE_FOUND alone and stays valid until
 * modules_free(). */
enum module_match modules_find(struct modules *modules, const struct mapping *mapping,
			       struct module **ret);

/* A module from an ELF image in memory (the vDSO), opened once per content; NULL when it is none.
 */
struct module *modules_find_image(struct modules *modules, const uint8_t *bytes, size_t len);
