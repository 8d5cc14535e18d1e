/*
 * An object while it is watched: its value as it was last seen, its row in the log, and changes
 * that nobody was caught at. What begins and ends it is watch.c's and pages_objects.c's (watch.h).
 */
#ifndef REDHAND_AGENT_WATCHED_H
#define REDHAND_AGENT_WATCHED_H

#include "agent/watch/watch.h"

/* False: the memory has gone. */
bool watched_read(const struct watch_armed *armed, uint64_t words[WATCH_WORDS]);

/* What is there now is what is expected. */
void watched_take_value(struct watch_armed *armed);

void watched_row_begin(struct watch_armed *armed, uint64_t number, uint32_t context);
void watched_row_seal(struct log_watched *row);

#endif
