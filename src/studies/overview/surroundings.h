#pragma once

#include <stdbool.h>

#include "model/world.h"

/*
 * What the world looks like right now: git, the program's file, kernel, machine, environment.
 */

/* `cwd` is where the program runs, `program` its name as execvp() takes it; either may be NULL. */
void surroundings_look(const char *cwd, const char *program, const char *redhand,
		       struct world *ret);

/* The commit of the checkout that `dir` is in, with -dirty when files differ from it; NULL when
 * that cannot be told. The caller's to free. */
char *surroundings_commit(const char *dir);

/* The branch that is checked out there, and how its files differ from its commit, at most ASK_MAX
 * bytes of it; NULL when there is none. The caller's to free. */
char *surroundings_diff(const char *dir);

/* Does git leave this file of the checkout out? */
bool surroundings_ignored(const char *dir, const char *path);
