/*
 * Where fenced blocks lie. A slot is some data pages and a closed one behind them; slots with as
 * many pages are of one kind. A kind's freed slots are used again oldest first, and only when there
 * is no more room for new ones: whoever uses a freed block late is still caught.
 *
 * Slots are opened some at a time, which the kernel does for less. The lock is taken inside the
 * guard only, so a signal handler of the target's never waits for the thread it interrupted.
 */
#include <stddef.h>
#include <sys/sysinfo.h>

#include "agent/arch/x86_64.h"
#include "agent/core/invariant.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/spin.h"
#include "agent/core/text.h"
#include "agent/fence/fence_inside.h"

#define READY_MOST 32u
#define SLOTS_MOST (1u << 22)
#define KIND_SHARE 4u	 /* one kind may have one part in so many, and more while … */
#define MAPPINGS_LEFT 2u /* of all mappings, one part in so many is the target's */
#define MEMORY_SHARE \
	16u	     /* of the machine's free memory, for live blocks: trials run side by side */
#define NARROWER 16u /* with one part in so many left, contexts take turns */
#define REFUSED_OFTEN 4096u

struct slot_kind {
	uint32_t oldest, newest; /* + 1; 0: none */
	uint32_t freed;
	uint64_t pages; /* that it has */
	uint32_t ready_count, batch;
	uint32_t ready[READY_MOST];
};

static struct {
	uint32_t lock;
	uint64_t next; /* page that no slot has yet */
	uint64_t pages;
	uint32_t *by_page; /* slot + 1 */
	struct fence_slot *slots;
	uint32_t count;
	uint64_t live, live_pages, peak, most, most_pages;
	uint64_t narrow_at; /* with less room than this fewer contexts have fences */
	uint64_t refused;
	bool stopped; /* a fork came while another thread had the lock */
	struct slot_kind kinds[FENCE_PAGES_MOST + 1];
} state;

#if AGENT_CHECKS
/* Under the lock. slot: NULL, or the one that is about to be taken or given. */
static const char *slots_invariant_sigsafe(const struct slot_kind *kind,
					   const struct fence_slot *slot)
{
	uint64_t number = slot ? (uint64_t)(slot - state.slots) + 1 : 0;

	if (!kind->freed != !kind->newest || !kind->freed != !kind->oldest)
		return "fence slots: the list of freed ones is not as long as it says";
	if (kind->ready_count > READY_MOST || kind->newest > state.count ||
	    kind->oldest > state.count)
		return "fence slots: more of a kind than there are";
	if (state.live > state.count || state.next > state.pages)
		return "fence slots: more in use than there are";
	if (slot && (number > state.count || !slot->pages || slot->pages > FENCE_PAGES_MOST ||
		     state.by_page[slot->page] != number ||
		     state.by_page[slot->page + slot->pages] != number))
		return "fence slots: a slot whose pages do not lead to it";
	return NULL;
}
#endif

/* A number from a file under /proc; 0: not known. */
static uint64_t number_in_file(const char *path)
{
	char bytes[32];
	const char *at = bytes;
	size_t got = maps_text_sigsafe(path, bytes, sizeof(bytes));

	return text_number(&at, bytes + got, 10);
}

static uint64_t memory_pages(void)
{
	struct sysinfo info = { 0 };
	uint64_t mib = fence.plan.memory_mib;

	if (mib)
		return (mib << 20) / FENCE_PAGE;
	if (raw_syscall1(SYS_sysinfo, &info))
		return 1024;
	return (info.freeram + info.bufferram) * (uint64_t)info.mem_unit / MEMORY_SHARE /
	       FENCE_PAGE;
}

bool slots_init(void)
{
	uint64_t mappings = number_in_file("/proc/sys/vm/max_map_count");

	state.pages = fence.bytes / FENCE_PAGE;
	state.by_page = memory_map_sigsafe(state.pages * sizeof(state.by_page[0]));
	state.slots = memory_map_sigsafe(SLOTS_MOST * sizeof(state.slots[0]));
	state.next = 1; /* the first page stays closed */
	state.most = SLOTS_MOST;
	state.most_pages = memory_pages();
	if (shutter_mappings())
		state.most = (mappings ? mappings : 65530) / shutter_mappings() *
			     (MAPPINGS_LEFT - 1) / MAPPINGS_LEFT;
	if (state.most_pages > state.pages / 2)
		state.most_pages = state.pages / 2;
	state.narrow_at = slots_most() / NARROWER;
	return state.by_page && state.slots &&
	       (fence.mode != LOG_FENCE_MARKERS || shutter_close(fence.base, FENCE_PAGE));
}

/* Whoever had the lock is not in the child, and may have left anything. */
void slots_after_fork(void)
{
	state.stopped |= state.lock != 0;
}

uint64_t slots_most(void)
{
	return state.most < state.most_pages ? state.most : state.most_pages;
}

uint64_t slots_peak(void)
{
	return state.peak;
}

struct fence_slot *slot_at_sigsafe(uint64_t address)
{
	uint32_t number;

	if (address - fence.base >= fence.bytes)
		return NULL;
	number = __atomic_load_n(&state.by_page[(address - fence.base) / FENCE_PAGE],
				 __ATOMIC_ACQUIRE);
	return number ? &state.slots[number - 1] : NULL;
}

struct fence_slot *slot_behind_sigsafe(const struct fence_slot *slot)
{
	return slot_at_sigsafe(fence_high(slot) + FENCE_PAGE);
}

uint32_t slots_count_sigsafe(void)
{
	return __atomic_load_n(&state.count, __ATOMIC_ACQUIRE);
}

struct fence_slot *slot_number_sigsafe(uint32_t number)
{
	return &state.slots[number];
}

/* As many pages as slots of its kind have: few kinds, so that freed ones are used again. */
static uint32_t kind_of(uint32_t pages)
{
	uint32_t step = 1;

	while (pages > 16 * step)
		step *= 2;
	pages = (pages + step - 1) / step * step;
	return pages < FENCE_PAGES_MOST ? pages : FENCE_PAGES_MOST;
}

static uint32_t batch_of(struct slot_kind *kind, uint32_t pages)
{
	if (fence.mode == LOG_FENCE_MAPPINGS)
		return 1;
	kind->batch = kind->batch ? kind->batch * 2 : 1;
	if (kind->batch > READY_MOST)
		kind->batch = READY_MOST;
	return kind->batch * pages <= READY_MOST ? kind->batch : 1;
}

/* New ones. */
static bool cut(struct slot_kind *kind, uint32_t pages, uint32_t count)
{
	struct shutter_range ranges[READY_MOST] = { 0 };
	uint64_t need = (uint64_t)count * (pages + 1), page;
	uint32_t i, k;

	if (state.next + need > state.pages || state.count + count > SLOTS_MOST ||
	    (kind->pages + need > state.pages / KIND_SHARE &&
	     state.next + need > state.pages - state.pages / KIND_SHARE))
		return false;
	for (i = 0; i < count; i++)
		ranges[i] = (struct shutter_range){
			fence.base + (state.next + (uint64_t)i * (pages + 1)) * FENCE_PAGE,
			(uint64_t)pages * FENCE_PAGE
		};
	if (!shutter_cut(ranges, count))
		return false;
	for (i = 0; i < count; i++) {
		struct fence_slot *slot = &state.slots[state.count];

		page = state.next + (uint64_t)i * (pages + 1);
		slot->page = (uint32_t)page;
		slot->pages = (uint16_t)pages;
		for (k = 0; k <= pages; k++)
			__atomic_store_n(&state.by_page[page + k], state.count + 1,
					 __ATOMIC_RELEASE);
		kind->ready[kind->ready_count++] = state.count;
		__atomic_store_n(&state.count, state.count + 1, __ATOMIC_RELEASE);
	}
	state.next += need;
	kind->pages += need;
	return true;
}

/* Those that were freed first. */
static bool reuse(struct slot_kind *kind, uint32_t count)
{
	struct shutter_range ranges[READY_MOST] = { 0 };
	uint32_t i;

	for (i = 0; i < count && kind->freed; i++) {
		struct fence_slot *slot = &state.slots[kind->oldest - 1];

		kind->ready[kind->ready_count++] = kind->oldest - 1;
		kind->oldest = slot->next;
		kind->freed--;
		slot->next = 0;
		__atomic_store_n(&slot->state, FENCE_FREE, __ATOMIC_RELEASE);
		keep_forget(slot);
		if (slot->faults) /* some of its pages may have stayed open */
			(void)shutter_close(fence_low(slot),
					    (uint64_t)(slot->pages + 1) * FENCE_PAGE);
		slot->faults = 0;
		ranges[i] = (struct shutter_range){ fence_low(slot),
						    (uint64_t)slot->pages * FENCE_PAGE };
	}
	if (!kind->freed)
		kind->newest = 0;
	if (i && shutter_open(ranges, i))
		return true;
	kind->ready_count -= i; /* closed, and never used again */
	return false;
}

static struct fence_slot *take(uint32_t pages)
{
	struct slot_kind *kind = &state.kinds[pages];
	uint32_t batch;

	if (!kind->ready_count) {
		batch = batch_of(kind, pages);
		if (!cut(kind, pages, batch) && !cut(kind, pages, 1) && !reuse(kind, batch))
			return NULL;
	}
	return kind->ready_count ? &state.slots[kind->ready[--kind->ready_count]] : NULL;
}

/* Not all fit: from now on contexts take turns. */
static void narrow_when_full(const struct fence_slot *slot)
{
	uint64_t room = state.most - state.live;

	if (room > state.most_pages - state.live_pages)
		room = state.most_pages - state.live_pages;
	if (!slot && state.refused++ % REFUSED_OFTEN == 0)
		fence_narrow();
	if (slot && room < state.narrow_at) {
		fence_narrow();
		state.narrow_at /= 2;
	}
}

struct fence_slot *slot_take(uint32_t pages)
{
	struct fence_slot *slot = NULL;

	pages = kind_of(pages);
	if (state.stopped || !spin_take_sigsafe(&state.lock, FENCE_SPINS))
		return NULL;
	if (state.live < state.most && state.live_pages + pages <= state.most_pages)
		slot = take(pages);
	if (slot) {
		state.live++;
		state.live_pages += pages;
		if (state.live > state.peak)
			state.peak = state.live;
	}
	narrow_when_full(slot);
	INVARIANT(slots_invariant_sigsafe(&state.kinds[pages], slot));
	spin_give_sigsafe(&state.lock);
	return slot;
}

void slot_give(struct fence_slot *slot)
{
	struct slot_kind *kind = &state.kinds[slot->pages];
	uint32_t number = (uint32_t)(slot - state.slots) + 1;

	if (!fence.left)
		(void)shutter_close(fence_low(slot), (uint64_t)slot->pages * FENCE_PAGE);
	if (state.stopped || !spin_take_sigsafe(&state.lock, FENCE_SPINS))
		return; /* never used again */
	INVARIANT(slots_invariant_sigsafe(kind, slot));
	slot->next = 0;
	if (kind->freed)
		state.slots[kind->newest - 1].next = number;
	else
		kind->oldest = number;
	kind->newest = number;
	kind->freed++;
	state.live--;
	state.live_pages -= slot->pages;
	INVARIANT(slots_invariant_sigsafe(kind, slot));
	spin_give_sigsafe(&state.lock);
}
