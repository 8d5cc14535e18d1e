/*
 * Damage: bytes beside or in a block that are not what the agent wrote there.
 *
 * Looking never writes to the heap. What was told once is not told again, so whoever damages the
 * same block twice is told of once; what is wrong with many blocks of one context is told of a few.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/log_format.h"

struct block;

enum damage_flags {
	DAMAGE_POISONED = 1 << 0, /* it is freed and was overwritten */
	DAMAGE_SHARED = 1 << 1,	  /* another thread may free it or resize it meanwhile */
	DAMAGE_ENDS = 1 << 2,	  /* it was overwritten at both ends only */
};

/* Looks at a block with guards and records what is wrong. `context`: of the call that made us look,
 * or 0. With DAMAGE_SHARED the memory may be gone by now: the caller is prepared for the fault.
 * True when all of it is whole. */
bool damage_look_sigsafe(const struct block *block, uint64_t start, enum log_check check,
			 uint32_t context, unsigned flags);

/* Where in the run this is, and when blocks were last whole: kept by those who look at all of them
 * (guard_check.h). */
struct damage_stamp {
	uint64_t checkpoint, ns;
};

extern __attribute__((visibility("hidden"))) struct damage_stamps {
	uint64_t checkpoint; /* seq of the last CHECKPOINT */
	/* As each began: the last rounds of live and of freed blocks that got through. */
	struct damage_stamp live_good, freed_good;
} damage_stamps;

/* Fills that in, of live or freed blocks. _sigsafe */
void damage_stamp_sigsafe(struct log_heap_damage *ret, bool freed);

/* How many were seen, told or not. */
uint64_t damage_count_sigsafe(void);
void damage_forget(void); /* after a fork */
