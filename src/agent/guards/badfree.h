/*
 * Frees that should not be: of a block that was freed before, of a pointer into a block, of what
 * was never allocated, by the wrong function. Recorded, and passed on to libc as they are.
 *
 * A block may have been allocated where no hook could see it: nobody is accused on the word of the
 * side table alone. The record says what else speaks for it (enum log_bad_free_evidence).
 */
#pragma once

#include <stdint.h>

#include "agent/ids/blocks.h"

/* `hit` is the block, or NULL. */
void badfree_record(struct guard *guard, uint64_t pointer, const struct block_view *hit,
		    const struct log_bad_free *bad, struct caller caller);

/* Free of something that is not a live block's start, as far as the side table knows. */
void badfree_judge(struct guard *guard, uint32_t space, uint64_t pointer,
		   const struct caller *from);
