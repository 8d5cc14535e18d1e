/*
 * The part of the side table that the hot path calls without giving up its registers: compiled with
 * the hooks, without vector registers.
 */
#include "agent/blocks.h"

ARCH_KEPT(block_open);

/* As much as a signal handler may interrupt: a number that is taken in vain is lost, no more. */
uint64_t block_open(enum block_space kind, uint64_t start, struct thread *self)
{
	uint32_t *window = block_window(&blocks_state.spaces[kind], start), number;

	if (!window || self->pool_next >= self->pool_end)
		return 0;
	number = arch_take_one(&self->pool_next);
	if (number >= self->pool_end)
		return 0;
	if (kind == BLOCKS_HEAP && blocks_state.bases)
		blocks_state.bases[number] = start;
	*window = number;
	return number;
}
