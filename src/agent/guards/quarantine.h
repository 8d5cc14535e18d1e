/*
 * Quarantine: freed blocks that libc does not have back yet.
 *
 * First in, first out, a ring per lane, so that no thread waits for another. Each lane may keep its
 * share of the plan's size: all of it while there is one thread that frees. What a thread leaves
 * when it ends is kept for the next one in its lane.
 *
 * A freed block is overwritten with poison and looked at again when it leaves. What that costs has
 * a limit per second; a block beyond it is overwritten at both ends only. The ring names blocks by
 * address and id; whoever clears the front in the side table, by one atomic operation, is the one
 * who gives it back. So a block that is freed twice leaves at once, and its entry in the ring is
 * found stale.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "agent/guards/canary.h"
#include "agent/guards/damage.h"

struct block;

#define QUARANTINE_LEAVES_MAX 64u
#define QUARANTINED_SIZE_SHIFT 48u

/* Memory that libc is to have back, once the guard is left. */
struct quarantine_leaves {
	uint32_t count;
	void *bases[QUARANTINE_LEAVES_MAX];
};

/* Takes in a block that has just been ended; it and others may leave at once. */
void quarantine_add(struct guard *guard, struct block *block, uint64_t start,
		    struct quarantine_leaves *ret);

/* All of a free, for blocks as almost all are: made by `api`, whole, the caller's place known.
 * False: nothing was done. Scalars, because a struct goes through memory. */
bool quarantine_free(void *ptr, enum log_api api, uint64_t return_address, uint64_t frame);

/* Memory is short for good (canary_tight()): nothing more goes in, and what is in there leaves. */
void quarantine_close(void);
/* As many as fit into ret, the oldest of this lane; for when memory is short. */
void quarantine_shrink(struct guard *guard, struct quarantine_leaves *ret);

/* The block leaves, whosever ring it is in. Its memory, or NULL when it has left before. _sigsafe
 */
void *quarantine_release_sigsafe(struct block *block, uint64_t start);

/* Outside of the guard. */
void quarantine_give_back(const struct quarantine_leaves *leaves);

/* A block in quarantine. */
struct quarantined {
	/* Bit 0: it has been overwritten. Bit 1: at both ends only. Bits 48..63: its size in 16
	 * bytes, as far as that goes: what will be compared is fetched long before, and without its
	 * entry. */
	uint64_t start;
	uint32_t entry;	 /* in the side table's pool */
	uint32_t id_low; /* of its id: the entry may be another block's by now */
};

/* The block, unless it has left the quarantine. _sigsafe */
struct block *quarantined_block_sigsafe(const struct quarantined *entry);

static inline uint64_t quarantined_start(const struct quarantined *entry)
{
	return entry->start & ((1ull << QUARANTINED_SIZE_SHIFT) - 4);
}

#define QUARANTINED_OVERWRITTEN 1u
#define QUARANTINED_ENDS 2u

/* What damage_look_sigsafe() is to know about it. */
static inline unsigned quarantined_flags(const struct quarantined *entry)
{
	return (entry->start & QUARANTINED_OVERWRITTEN ? DAMAGE_POISONED : 0) |
	       (entry->start & QUARANTINED_ENDS ? DAMAGE_ENDS : 0);
}

/* Calls `visit` for every block of every lane, until it says false. Other threads go on meanwhile:
 * `visit` makes sure that the block is still there. _sigsafe */
void quarantine_walk_sigsafe(bool (*visit)(void *ctx, const struct quarantined *entry), void *ctx);
