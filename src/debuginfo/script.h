#pragma once

#include <limits.h>
#include <stddef.h>

/* Looks for "#!" at the start of the file. 0: not a script. 1: a script; `ret` is the path of its
 * interpreter, empty when that cannot be found, and `trouble` then says why. For a line such as
 * "#!/usr/bin/env python3" it is what env would run. */
int script_interpreter(int fd, char ret[PATH_MAX], char *trouble, size_t trouble_size);
