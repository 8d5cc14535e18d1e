#pragma once

#include "base/err.h"

/*
 * Finds the file that execvp(name) would run: a name with a slash as it stands, relative to `cwd`
 * (NULL: where we are), any other through PATH. The result is the caller's to free. An
 * error, with a sentence, when there is none or it may not be run.
 */
int which(const char *name, const char *cwd, char **ret, struct err *err);
