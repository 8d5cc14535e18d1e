/*
 * Checkpoints: places in the output where something is noted.
 *
 * For growth: how many blocks of each context are alive, as a series over time. For the heap
 * observer: that every block was looked at (guard_check.h).
 *
 * Only contexts whose count changed since the last checkpoint are written. A checkpoint is taken
 * when the gap of the plan has gone by and somebody allocates (looked at every 64 events), before
 * each line on stdout or stderr (hooks_stdio.c), and at exit. The tool finds the line by its offset
 * in the stream, or by the time stamp. All _sigsafe; one at a time, others go on without.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps the lists, when the plan asks for growth; false: no memory. */
bool checkpoint_init(void);

/* A new row in the context table. */
void checkpoint_note_context(uint32_t row, uint64_t stack_hash, const uint64_t *frames,
			     uint32_t count);

void checkpoint_switch_on(void);

void checkpoint_time_sigsafe(void);
void checkpoint_exit_sigsafe(void);

/* Bytes go to stdout (1) or stderr (2): a checkpoint if a line begins with them, or goes on after a
 * good many allocations (a test's name, then its result); text may be less than what is written.
 * Afterwards: how many bytes it was, and whether the next begin a line. */
void checkpoint_line_begin_sigsafe(int fd, const void *text, size_t bytes);
/* The same where the bytes leave the process at once: always a checkpoint. */
void checkpoint_write_sigsafe(int fd, const void *text, size_t bytes);
void checkpoint_line_end_sigsafe(int fd, size_t bytes, bool ended);

/* After a fork: the child's table starts empty. */
void checkpoint_forget(void);
