/*
 * The contexts that a thread's lane has, by the hash of their stack.
 *
 * A group of keys is two cache lines; the hash's low bits choose it, the rest is in the key. Where
 * a group is full, there are twice as many from then on, and at last the groups behind it. So the
 * table is as large as its contexts need, and lies in few pages: in a short process a page costs
 * more than all that is written to it.
 *
 * Only the lane's own thread comes here, inside the guard.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/thread.h"

/* The context of this stack; 0: it is new. */
uint32_t stack_hashes_find(struct thread *self, uint64_t hash);

/* Of a context whose row in the log has its hash. False: the table is full. */
bool stack_hashes_add(struct thread *self, uint64_t hash, uint32_t context);
