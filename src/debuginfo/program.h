#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/program_file.h"

/*
 * Reads what can be known about the program in the file `path`. A script is
 * followed to its interpreter. Fails only when the file cannot be read at all;
 * a damaged file is an answer (`trouble`, and facts that stay false or empty).
 *
 * The file is hostile: every offset in it is checked, nothing is believed. The
 * DWARF reader is libdw's, however, so callers that must survive any bytes
 * run this in a process of its own, with a time limit.
 */
int program_read(const char *path, struct program_facts *ret, struct err *err);

/* Does this program or library call one of these functions of others (their names, NULL at the
 * end)? False when the file cannot be read. */
bool program_imports(const char *path, const char *const *names);
