/*
 * The end of blocks that were passed over (sample.h): as where none has guards.
 */
#pragma once

#include "agent/fence/fence.h"
#include "agent/guards/sample.h"

/* Before a free, of a block that was passed over and made by `api`; false: nothing was done. */
static inline __attribute__((always_inline)) bool sample_end(void *ptr, enum log_api api,
							     struct caller caller)
{
	if (unlikely(fence_holds(ptr)))
		return false;
	return block_end_of(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift, ptr, (int)api,
			    caller);
}

/* The same, and the free. */
static inline __attribute__((always_inline)) bool sample_free(void *ptr, enum log_api api,
							      struct caller caller)
{
	if (unlikely(!sample_end(ptr, api, caller)))
		return false;
	real.free(ptr);
	return true;
}
