/*
 * What the parts of the fences (fence.h) have of each other.
 *
 *   fence_blocks.c  blocks: allocated, resized and freed
 *   slots.c         where they lie
 *   shutter.c       closes and opens pages
 *   keep.c          what closed pages hold
 *   fence_access.c  who touched a closed page, and the one instruction that may
 *   fence_calls.c   system calls
 */
#pragma once

#include "agent/fence/fence.h"

#define FENCE_PAGE 4096u
#define FENCE_PAGES_MOST 256u /* of a block: larger ones have none */
#define FENCE_SPINS 200000u

enum fence_slot_state {
	FENCE_FREE = 0, /* nobody's yet */
	FENCE_LIVE = 1,
	FENCE_FREED = 2, /* its pages are closed */
};

struct fence_slot {
	uint64_t start; /* of the block */
	uint64_t kept;	/* where its bytes are: keep.c */
	uint32_t size;
	uint32_t page;	/* the first of its data pages, from fence.base */
	uint32_t next;	/* + 1, of the freed ones of its kind */
	uint16_t pages; /* of data; a closed one follows */
	uint8_t state;	/* enum fence_slot_state; atomic */
	uint8_t align;	/* 2^align */
	uint32_t faults;
	uint32_t reserved;
};

static inline uint64_t fence_low(const struct fence_slot *slot)
{
	return fence.base + (uint64_t)slot->page * FENCE_PAGE;
}

/* Behind its data: where the closed page begins. */
static inline uint64_t fence_high(const struct fence_slot *slot)
{
	return fence_low(slot) + (uint64_t)slot->pages * FENCE_PAGE;
}

/* The side table has no odd starts. */
static inline uint64_t fence_key(const struct fence_slot *slot)
{
	return slot->start & ~1ull;
}

/* Half as many contexts as before have fences. _sigsafe */
void fence_narrow(void);

/* What the bytes beside its block are made of (canary_guard_at()). */
uint64_t fence_guard(const struct fence_slot *slot);

/* When fence.base and bytes are known. */
bool slots_init(void);
void slots_after_fork(void);
/* Blocks that may have fences at once. */
uint64_t slots_most(void);
/* The most that had, so far. */
uint64_t slots_peak(void);

/* Open, and zero; NULL: no room, or not now. Inside the guard. */
struct fence_slot *slot_take(uint32_t pages);
/* Closes it. Inside the guard. */
void slot_give(struct fence_slot *slot);

/* The slot whose data or closed page this is; NULL: none. _sigsafe */
struct fence_slot *slot_at_sigsafe(uint64_t address);
/* The slot behind; NULL: none. _sigsafe */
struct fence_slot *slot_behind_sigsafe(const struct fence_slot *slot);
/* Slots are numbered from 0 up to this; NULL: not in use. _sigsafe */
uint32_t slots_count_sigsafe(void);
struct fence_slot *slot_number_sigsafe(uint32_t number);

struct shutter_range {
	uint64_t at, bytes;
};

#define SHUTTER_BATCH 64u

/* Address space for all of it, closed or open as the mode wants it. 0, or an errno. */
int shutter_map(uint64_t bytes);
/* Fresh ranges with a closed page behind each become usable. */
bool shutter_cut(const struct shutter_range *data, uint32_t count);
bool shutter_open(const struct shutter_range *ranges, uint32_t count);
bool shutter_close(uint64_t at, uint64_t bytes);
/* Opens all of it, for good. */
void shutter_leave(void);
/* Mappings that one block takes. */
uint32_t shutter_mappings(void);

bool keep_init(void);
/* A freed block's bytes, while they can still be read. Inside the guard; slots.c's lock is not
 * held. */
void keep_block(struct fence_slot *slot);
/* All that is kept about the slot's pages is forgotten. Under slots.c's lock. */
void keep_forget(struct fence_slot *slot);
/* A page was opened: puts what it held there. Under the lock of closed pages. _sigsafe */
void keep_restore_sigsafe(const struct fence_slot *slot, uint64_t page);
/* A page that was written to is about to be closed. False: no room; it must stay open. _sigsafe */
bool keep_page_sigsafe(uint64_t page);

bool access_init(void);
void access_after_fork(void);

/* An access that is to be told. */
struct fence_seen {
	struct fence_slot *slot;
	enum log_fence_side side;
	uint32_t flags; /* enum log_fence_flags */
	uint32_t call;
	uint64_t address, length;
	const siginfo_t *info; /* of the fault; NULL: a system call's */
};

/* Which block it is about. False: no block ever was there. _sigsafe */
bool access_about_sigsafe(uint64_t address, struct fence_seen *ret);
void access_tell_sigsafe(const struct fence_seen *seen, const ucontext_t *context);
/* A pointer that is bad, whatever becomes of it: where it came from can be read back as from a
 * crash, though nothing dies of it here. The first ones only. _sigsafe */
void access_record_sigsafe(int signo, const siginfo_t *info, const ucontext_t *context);
void access_counts_sigsafe(struct log_fence_end *ret);

/* Is this page closed, as far as is known? _sigsafe */
bool access_closed_sigsafe(const struct fence_slot *slot, uint64_t address);

/* Opens a page for this thread, until it is given back; a page may be open for several. _sigsafe */
bool page_borrow_sigsafe(struct fence_slot *slot, uint64_t page);
void page_return_sigsafe(uint64_t page, bool written);

/* Opens a page, and it stays open. _sigsafe */
void page_leave_sigsafe(struct fence_slot *slot, uint64_t page, bool written);
