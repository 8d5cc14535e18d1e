#pragma once

#include <sys/types.h>

#include "base/err.h"

/*
 * The tracer of a trial: sets debug registers by ptrace(2), where perf is forbidden.
 *
 * A process of its own, a child of the slot, for the time of one trial. The agent calls it (a fifo
 * in the trial's directory; wire/tracer_talk.h) when its process is traced by nobody; from then on
 * it has that process and everything that comes of it. It shows nothing of itself: signals, stops,
 * ends and exit statuses reach the target and its parents as ever. When it is killed the kernel
 * lets go of all of them.
 */

/* dir: of the trial. What it started must be waited for, and be told to end. */
int tracer_start(int dir, pid_t *ret, struct err *err);

/* Nobody new will come: it ends when nothing is left to be traced. */
void tracer_finish(pid_t tracer);
