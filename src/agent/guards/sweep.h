/*
 * Sweep: who still points into a block that has been freed.
 *
 * A conservative look through all writable memory and the registers for words that lie in the
 * block. Other threads run on meanwhile. What is found on a stack may be a leftover of a call that
 * has returned; a pointer in another block or in a global is one that somebody can still use.
 */
#pragma once

#include <stdint.h>

#include "agent/core/guard.h"
#include "agent/ids/context.h"

struct block;
struct log_crash;

/* A block has just been freed; looks if the plan wants it. */
void sweep_free(struct guard *guard, const struct block *block, uint64_t start,
		struct caller caller);

/* Before a line. _sigsafe */
void sweep_line_sigsafe(uint64_t checkpoint);

/* In the signal handler: freed blocks that the fault address or a register points into, or whose
 * poison a register holds; and those that begin at `starts`. */
void sweep_crash_sigsafe(const struct log_crash *crash, const uint64_t *starts, unsigned count);
