#pragma once

#include <stdio.h>

/*
 * A source file, for quoting. Its name comes out of debug information, so it may be anything:
 * "/etc/shadow", a pipe that nobody writes to, a device. NULL unless it is an ordinary file of a
 * sensible size that others can read as well, or one of the program's own tree: that of `module`
 * (the file that the debug information is of; NULL: unknown) or of the working directory.
 */
FILE *source_open(const char *file, const char *module);
