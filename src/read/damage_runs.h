#pragma once

#include <stddef.h>

#include "model/heap.h"

/*
 * Damage that runs over several blocks.
 *
 * A write that does not stop at the end of its block goes on over the guards of the next one, and
 * perhaps of more. Each of them is found damaged, but only one of them is the block that was
 * overrun. Which, the ends of the run tell: an overflow begins at the very end of its block, an
 * underflow ends at the very start of it.
 */

/* Damages of one process. Marks those that are only what went on from another. */
void runs_mark(struct heap_finding *findings, size_t count);

/* Findings of all trials. Where a run fits both ends in one trial, others tell whose it was: the
 * gap between blocks is not the same in all of them, and neither are neighbours. Whoever it fits in
 * all of them is the one. */
void runs_settle(struct heap_finding *findings, size_t count);
