#pragma once

#include "read/logs.h"

/*
 * Opening the event logs of a trial. Private to read/: everybody else asks a reading, which does it
 * once.
 */

/* A trial without logs gives an empty list. `trials` is the directory of all trials. */
int event_logs_open(int trials, const char *trial, struct event_logs *ret, struct err *err);
void event_logs_deinit(struct event_logs *logs);

/* Deletes those of them that have nothing to show to anybody. */
void event_logs_prune(struct event_logs *logs, int trials, const char *trial);
