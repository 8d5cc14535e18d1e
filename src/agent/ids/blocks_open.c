/*
 * The part of the side table that the hot path calls without giving up its registers: compiled with
 * the hooks, without vector registers.
 */
#include "agent/ids/blocks.h"

#include "agent/core/memory.h"

ARCH_KEPT(block_open);

/* The index around a window that is about to be written. */
static inline void window_populate(const struct blocks_space *space, const uint32_t *window)
{
	uint64_t step = (uint64_t)((const char *)window - (const char *)space->flat) >>
			BLOCKS_POPULATE_BITS;

	if (!space->populated || space->populated[step])
		return;
	space->populated[step] = 1;
	memory_populate_sigsafe((uint64_t)space->flat + (step << BLOCKS_POPULATE_BITS),
				1u << BLOCKS_POPULATE_BITS);
}

ARCH_KEPT(block_region_turn);

uint64_t block_region_turn(struct thread *self, uint64_t start, enum block_space space)
{
	uint64_t region = block_region_of(start);

	if (!start || start >> BLOCKS_ADDRESS_BITS || !blocks_state.spaces[space].regions[region])
		return 0;
	self->fast.region[space] = region;
	return 1;
}

/* As much as a signal handler may interrupt: a number that is taken in vain is lost, no more. */
uint64_t block_open(enum block_space kind, uint64_t start, struct thread *self)
{
	uint32_t *window = block_window(&blocks_state.spaces[kind], start), number;

	if (!window || self->blocks.pool_next[kind] >= self->blocks.pool_end[kind])
		return 0;
	number = arch_take_one(&self->blocks.pool_next[kind]);
	if (number >= self->blocks.pool_end[kind])
		return 0;
	if (kind == BLOCKS_HEAP && blocks_state.bases)
		blocks_state.bases[number] = start;
	window_populate(&blocks_state.spaces[kind], window);
	*window = number;
	return number;
}
