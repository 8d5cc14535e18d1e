#pragma once

#include "base/err.h"

/* Asks the configured debuginfod servers for a file that nobody has, to see whether one of them
 * answers at all. Leaves nothing in the user's cache. 0 when one did. Sets environment variables:
 * for a process of its own. */
int debuginfod_ask(unsigned int timeout_s, struct err *err);
