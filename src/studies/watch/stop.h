#pragma once

#include "case/case.h"
#include "debuginfo/symbols.h"
#include "model/watch_report.h"

/*
 * The process that the agent stopped at a hit, for somebody with a debugger.
 */

/* Looks at a trial that is still running. True: one of its processes has been stopped; `ret` says
 * which, and where. */
bool watch_stop_find(struct case_store *cs, uint64_t trial, struct symbols *symbols,
		     struct watch_stop *ret);
