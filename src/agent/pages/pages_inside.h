/* What the parts of the watched pages (pages.h) have of each other, and nobody else needs. */
#pragma once

#include "agent/pages/pages.h"
#include "agent/watch/watched.h"

/* Whoever has a lock is inside a few instructions, or not on a CPU. After a long time something is
 * wrong with it, and a value that may be told wrongly is better than a target that hangs. */
#define PAGES_LOCK_SPINS 2000000u

/* When the memory is there. False: no room for the tables. */
bool pages_slots_init(void);

/* One for a block of `size`; NULL: no room, or the pages were opened. */
struct pages_slot *pages_slot_take(uint64_t align, uint64_t size);
void pages_slot_give(struct pages_slot *slot);

/* One with pages to itself, open to the target; NULL: there are enough of them, or no room. */
struct pages_slot *pages_slot_take_fenced(uint64_t align, uint64_t size);
/* Its block was freed: shuts them. */
void pages_slot_shut(struct pages_slot *slot);

/* Its own size, which is larger than its block's. */
uint64_t pages_slot_bytes(const struct pages_slot *slot);

/* How far its block can grow in place. */
uint64_t pages_room(const struct pages_slot *slot);

/* The pages of an address and of all that lies on them with it are let go of: no block is placed
 * there any more that is to be watched. False: they were before, or there is no slot. _sigsafe */
bool pages_span_leave_sigsafe(uint64_t address, uint64_t *ret_low, uint64_t *ret_high);

/* From the base up to where no slot lies yet. _sigsafe */
uint64_t pages_slots_used_sigsafe(void);

/* Of all slots: released as a set of locks. _sigsafe */
void pages_lock_all_sigsafe(void);
/* In a forked child: whoever had a lock is not there. _sigsafe */
void pages_slots_unlock_all_sigsafe(void);

bool pages_objects_init(void);
/* As that of slots. _sigsafe */
void pages_objects_unlock_sigsafe(void);
/* All of them end: the pages are about to be opened. _sigsafe */
void pages_objects_yield_sigsafe(void);

/* Before the first block: yields if the target has set something up already that makes the kernel
 * write. From the first block on we are told of it (calls.h). Under the lock of slots. */
void pages_yield_once_written(void);
