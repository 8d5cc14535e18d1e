#pragma once

#include "base/err.h"

/*
 * Removes `name` below directory `dir` with everything in it.
 *
 * What lies there was made by the program under test and may be anything:
 * symbolic links are removed, never followed; directories without permissions
 * are made writable first; other file systems are not entered. A missing name
 * is a success.
 */
int tree_remove_at(int dir, const char *name, struct err *err);

/*
 * Moves directory `name` below `from` to `to_name` below `to`; to another file system as a copy.
 * Files, directories and symbolic links arrive, sockets, fifos and devices do not. Links are never
 * followed.
 */
int tree_move_at(int from, const char *name, int to, const char *to_name, struct err *err);

/* mkdir -p for the user's own path. */
int tree_make(const char *path, struct err *err);

/* The same, the last directory for its owner alone when it is not there yet, whatever the umask. */
int tree_make_private(const char *path, struct err *err);
