/*
 * What closed pages hold. Closing a page throws its memory away, which would be 4 KiB for every
 * freed block of 16 bytes. So a freed block's bytes are copied into a ring, the oldest go first; a
 * closed page that somebody wrote to is copied whole, as long as there is room.
 */
#include <string.h>

#include "agent/core/memory.h"
#include "agent/fence/fence_inside.h"
#include "agent/guards/canary.h"

#define RING_BYTES (32ull << 20)
#define RING_BLOCK_MOST (64u << 10)
#define PAGES 512u /* a power of two */
#define PROBES 8u

static struct {
	char *ring;
	uint64_t head; /* bytes ever kept; atomic */
	char *pages;
	uint64_t of[PAGES]; /* the page that is kept there; 0: none */
	uint32_t used;	    /* atomic: of them */
} state;

bool keep_init(void)
{
	state.ring = memory_map_sigsafe(RING_BYTES);
	state.pages = memory_map_sigsafe((size_t)PAGES * FENCE_PAGE);
	return state.ring && state.pages;
}

/* ---- freed blocks ---------------------------------------------------------------------------- */

/* slot->kept: the position behind its bytes, so that 0 is none. */
void keep_block(struct fence_slot *slot)
{
	uint64_t at, size = slot->size;

	slot->kept = 0;
	if (!size || size > RING_BLOCK_MOST)
		return;
	at = __atomic_fetch_add(&state.head, size, __ATOMIC_RELAXED);
	if (at % RING_BYTES + size > RING_BYTES) { /* not in two parts */
		at = __atomic_fetch_add(&state.head, RING_BYTES - at % RING_BYTES + size,
					__ATOMIC_RELAXED);
		at += RING_BYTES - at % RING_BYTES;
		if (at % RING_BYTES + size > RING_BYTES)
			return;
	}
	memcpy(state.ring + at % RING_BYTES, (const void *)slot->start, size);
	slot->kept = at + size;
}

static const char *block_bytes(const struct fence_slot *slot)
{
	uint64_t head = __atomic_load_n(&state.head, __ATOMIC_RELAXED), at;

	if (!slot->kept)
		return NULL;
	at = slot->kept - slot->size;
	return head - at <= RING_BYTES ? state.ring + at % RING_BYTES : NULL;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static uint32_t place_of(uint64_t page)
{
	return (uint32_t)(page * 0x9e3779b97f4a7c15ull >> 40) % PAGES;
}

static char *page_find(uint64_t page, bool make)
{
	uint32_t at = place_of(page), i, spare = PAGES;

	for (i = 0; i < PROBES; i++) {
		uint32_t n = (at + i) % PAGES;

		if (state.of[n] == page)
			return state.pages + (size_t)n * FENCE_PAGE;
		if (!state.of[n] && spare == PAGES)
			spare = n;
	}
	if (!make || spare == PAGES)
		return NULL;
	state.of[spare] = page;
	__atomic_fetch_add(&state.used, 1, __ATOMIC_RELAXED);
	return state.pages + (size_t)spare * FENCE_PAGE;
}

void keep_forget(struct fence_slot *slot)
{
	uint64_t low = fence_low(slot), high = fence_high(slot) + FENCE_PAGE;
	uint32_t i;

	slot->kept = 0;
	if (likely(!__atomic_load_n(&state.used, __ATOMIC_RELAXED)))
		return;
	for (i = 0; i < PAGES; i++)
		if (state.of[i] && state.of[i] - low < high - low) {
			state.of[i] = 0;
			__atomic_fetch_sub(&state.used, 1, __ATOMIC_RELAXED);
		}
}

void keep_restore_sigsafe(const struct fence_slot *slot, uint64_t page)
{
	const char *whole = page_find(page, false), *bytes;
	uint64_t low, high;

	if (whole) {
		memcpy((void *)page, whole, FENCE_PAGE);
		return;
	}
	if (page >= fence_high(slot)) { /* a loop that copies up to a zero goes on to its store */
		if (slot->state == FENCE_LIVE && fence.plan.item.flags & PLAN_FENCE_FILLED)
			*(uint64_t *)page = canary_guard_at(fence_guard(slot), page);
		return;
	}
	if (slot->state != FENCE_FREED)
		return;
	bytes = block_bytes(slot);
	low = slot->start > page ? slot->start : page;
	high = slot->start + slot->size;
	if (high > page + FENCE_PAGE)
		high = page + FENCE_PAGE;
	if (bytes && low < high)
		memcpy((void *)low, bytes + (low - slot->start), high - low);
}

bool keep_page_sigsafe(uint64_t page)
{
	char *to = page_find(page, true);

	if (to)
		memcpy(to, (const void *)page, FENCE_PAGE);
	return to;
}
