/*
 * Growth: how many blocks of each context are alive, as a series over time.
 *
 * Only contexts whose count changed since the last checkpoint are written. A checkpoint is taken
 * when the gap of the plan has gone by and somebody allocates (looked at every 64 events), at a
 * write(2) to stdout or stderr, and at exit; the tool matches the time stamps with its
 * breadcrumbs. All _sigsafe; one at a time, others go on without.
 */
#ifndef REDHAND_AGENT_CHECKPOINT_H
#define REDHAND_AGENT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps the lists; false: no memory. Only when the plan asks for growth. */
bool checkpoint_init(void);

/* A new row in the context table. */
void checkpoint_note_context(uint32_t row);

void checkpoint_time_sigsafe(void);
void checkpoint_exit_sigsafe(void);
void checkpoint_write_sigsafe(int fd, const void *text, size_t bytes);

/* After a fork: the child's table starts empty. */
void checkpoint_forget(void);

#endif
