/*
 * An object while it is watched: its value as it was last seen, its row in the log, and changes
 * that nobody was caught at. What begins and ends it is watch.c's and pages_objects.c's (watch.h).
 */
#pragma once

#include <stddef.h>

#include "agent/watch/watch_state.h"

/* False: the memory has gone. */
bool watched_read(const struct watch_armed *armed, uint64_t words[WATCH_WORDS]);

/* What is there now is what is expected. */
void watched_take_value(struct watch_armed *armed);

void watched_row_begin(struct watch_armed *armed, uint64_t number, uint32_t context);
void watched_row_seal(struct log_watched *row);

/* For pages_objects.c: begins, looks at and ends an object, while nobody can write to it. */
void watch_begin(struct watch_armed *armed, uint32_t context);
void watch_look(struct watch_armed *armed);
void watch_end(struct watch_armed *armed, enum log_watched_end why);
/* It goes on when its block is freed. */
bool watch_outlives(const struct watch_armed *armed);

/* Has anything watched changed without a trap? At lines, at a crash and at the end. _sigsafe */
void watch_check_sigsafe(void);
void watch_line_sigsafe(int fd, const void *text, size_t bytes);
void watch_exiting_sigsafe(void);
/* Nothing is watched from now on, nor does that take any more system calls. _sigsafe */
void watch_leave_sigsafe(void);
/* It traces `pid`, or asks to be traced itself (0): the registers are its tracer's. */
void watch_traced_sigsafe(int pid);

/* The same where it is done by watched pages (pages.h). False: there are none. Bound in features.c.
 */
extern HIDDEN bool (*const watched_pages_leave)(void);
