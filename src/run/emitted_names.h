#pragma once

#include <stdint.h>

/*
 * Names of code that a trial's processes emitted (/tmp/perf-PID.map, jit-PID.dump in /tmp or where
 * they ran) lie outside of its directory, and nobody removes them. They are moved there, so that
 * they travel with the logs and go with the trial.
 *
 * dir/name: the trial's directory, whose logs say which processes those are. started_ms: what is
 * older is another's.
 */
void emitted_names_take(int dir, const char *name, const char *cwd, int64_t started_ms);
