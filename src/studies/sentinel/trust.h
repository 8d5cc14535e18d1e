#pragma once

#include "studies/sentinel/sentinel.h"

/*
 * Which sentinels this user has made or agreed to. A sentinel runs a command; one that came with a
 * stranger's repository is shown before that (cmd/sentinel_check.c), and leads nowhere outside of
 * the project.
 *
 * What is agreed to is remembered as it was, byte by byte, below $XDG_STATE_HOME (or
 * ~/.local/state): one byte more, and it is a stranger's again.
 */
bool sentinel_is_trusted(const char *dir);

/* Remembers it as it is now. What cannot be remembered will be asked for again. */
void sentinel_trust(const char *dir);

/* Of a settled sentinel that is a stranger's: -EPERM, with a sentence, when the directory it runs
 * in or the input it takes is not in the project, the project is not around it, or one of its files
 * is a way out. `root` is the user's word, NULL: none. */
int sentinel_check_paths(const struct sentinel *sentinel, const char *dir, const char *root,
			 struct err *err);
