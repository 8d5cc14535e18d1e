#pragma once

#include "base/err.h"

/*
 * By which way memory is watched, and why.
 */
enum watch_mode {
	WATCH_AUTO,
	WATCH_HW,     /* perf events */
	WATCH_PAGES,  /* pages that only the agent can write to: no debug registers */
	WATCH_PTRACE, /* a tracer */
};

extern const char *const watch_mode_names[]; /* NULL at the end */

/* What `wanted` comes to on this machine, found out by trying: WATCH_HW, WATCH_PAGES or
 * WATCH_PTRACE. `ret_reason` is the caller's to free; NULL when there is nothing to say. Fails,
 * with what can be done about it, when it does not work here. */
int watch_mode_choose(enum watch_mode wanted, enum watch_mode *ret, char **ret_reason,
		      struct err *err);
