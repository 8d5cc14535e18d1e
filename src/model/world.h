#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "model/said.h"

/*
 * What the world around a case looked like: enough to tell what has changed since, and nothing
 * that must stay secret. Of an environment variable only its name and a short hash are kept.
 * Each text is NULL when it could not be told.
 */
struct world {
	char *commit;  /* of the git checkout; ends in -dirty when files differ from it */
	char *branch;  /* that is checked out there */
	char *program; /* build-id, or size and hash of a file that has none */
	char *kernel;
	char *machine;	 /* the host's name and CPU */
	char *redhand;	 /* its version */
	char *variables; /* a line per environment variable, sorted: name, hash */
};

void world_deinit(struct world *world);

/* Remembers the variables of an environment (NAME=VALUE, ends with NULL), those that differ from
 * one terminal to the next left out. */
void world_set_variables(struct world *world, char *const *environment);

/* One statement for each thing that differs. What is unknown on either side is not compared. */
void world_changes(const struct world *then, const struct world *now, struct said_list *ret);
