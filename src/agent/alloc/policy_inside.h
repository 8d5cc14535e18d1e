/*
 * Parts of the policy `ids` that the others use for blocks which have nothing else.
 */
#pragma once

#include "agent/alloc/policy.h"
#include "agent/ids/blocks.h"

/* By the hot path, of a block that libc has given; NULL: nothing. */
static inline __attribute__((always_inline)) void *
policy_begun(void *ptr, size_t size, enum log_api api, struct caller caller)
{
	if (unlikely(!ptr))
		return ptr;
	return block_begin(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift, ptr, size, api,
			   caller);
}

/* realloc by libc. */
void *policy_resized(void *ptr, size_t size, struct caller caller);
