/*
 * Which contexts have fences in which trial: the agent decides by this, and the tool can tell
 * which were left out.
 *
 * Contexts are in 128 classes by their stack hash. At level 0 all have fences; at level n one class
 * in 2^n, others in each trial: which, follows from the trial's turn. The turns come in such an
 * order that at level n, whatever n, any 2^n trials one after the other cover all classes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FENCE_LEVELS 7u
#define FENCE_CLASSES (1u << FENCE_LEVELS)

static inline uint32_t fence_turn_class(uint64_t stack_hash)
{
	return (uint32_t)(stack_hash * 0x9e3779b97f4a7c15ull >> (64 - FENCE_LEVELS));
}

/* The turn's bits in reverse order: 0, 64, 32, 96, … */
static inline uint32_t fence_turn_first(uint32_t turn)
{
	uint32_t first = 0, i;

	for (i = 0; i < FENCE_LEVELS; i++)
		first |= (turn >> i & 1) << (FENCE_LEVELS - 1 - i);
	return first;
}

static inline bool fence_turn_takes(uint64_t stack_hash, uint32_t turn, uint32_t level)
{
	uint32_t differs = fence_turn_class(stack_hash) ^ fence_turn_first(turn);

	return differs < FENCE_CLASSES >> level; /* alike in as many bits as the level says */
}
