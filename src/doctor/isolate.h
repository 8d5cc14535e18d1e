#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Runs a function in a process of its own.
 *
 * For work that may crash, hang or change the state of the process: probes that
 * fault on purpose, readers of files somebody else damaged. The process has its
 * own process group, default signal handlers, leaves no core, and is killed
 * with everything it started when the time is over or redhand itself dies.
 */
enum isolate_end {
	ISOLATE_RETURNED,
	ISOLATE_DIED,	 /* from a signal, or it left with an exit status */
	ISOLATE_TIMEOUT, /* killed */
};

struct isolate_outcome {
	enum isolate_end end;
	int signal; /* ISOLATE_DIED: the signal, 0 when it exited */
};

/* Calls fn(data) on a copy of `data`, `size` plain bytes without owned pointers. Whatever fn wrote
 * there is copied back, also after a crash: look at `ret->end` before trusting it. Fails only when
 * no process could be made. */
int isolate_run(void (*fn)(void *data), void *data, size_t size, uint64_t timeout_ns,
		struct isolate_outcome *ret, struct err *err);
