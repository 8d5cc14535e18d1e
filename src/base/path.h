#pragma once

#include <stdbool.h>

/*
 * Paths as text. "Plain" paths are absolute, without ., .., double slashes or a slash at
 * the end, as realpath() makes them. Results are the caller's to free.
 */

/* What follows `dir` in `path`: "a/b"; "." when they are the same; NULL when `path` is not below
 * `dir`. Both plain; the result points into `path` or is static. */
const char *path_below(const char *dir, const char *path);

/* The way from the directory `from` to `to`: "../../x", "." when they are the same. Both plain. */
char *path_relative(const char *from, const char *to);

/* `path` when it is absolute, else `dir`/`path`. */
char *path_join(const char *dir, const char *path);

/* The nearest directory at or above the plain path `dir` that has an entry `name`; NULL when there
 * is none. */
char *path_find_up(const char *dir, const char *name);

/* A copy of `text` in which every mention of the plain path `dir` has become `word`. A mention is
 * not part of a longer name: /a/b is none of /a/bc, /x/a/b or y/a/b. */
char *path_rename(const char *text, const char *dir, const char *word);
