#pragma once

#include "debuginfo/symbols.h"
#include "model/watch.h"

/*
 * The process that the agent stopped at a hit, for somebody with a debugger.
 */

/* Looks at the trial in directory `name`, which is still running. True: one of its processes has
 * been stopped; `ret` says which, and where. */
bool watch_stop_find(int trials, const char *name, struct symbols *symbols, struct watch_stop *ret);
