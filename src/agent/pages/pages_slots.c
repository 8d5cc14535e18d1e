/*
 * Slots of watched pages: where a block is placed, so that its pages are its own or those of its
 * like.
 */
#include "agent/pages/pages_inside.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/invariant.h"
#include "agent/core/memory.h"
#include "agent/core/spin.h"

#define GROW_BYTES (1ull << 20)
#define SLOT_STEP 32u /* blocks.h: two blocks never share a window */
#define SLOT_TAIL 8u  /* nobody's, as libc's own words between blocks are */
#define SPAN_BYTES (64u << 10)
#define SLOT_SMALL (16u << 10)
#define KINDS (SLOT_SMALL / SLOT_STEP + 1)
#define KEPT_FREE 64u /* freed slots of a kind that are not given out again yet */
#define REUSE_LOOKED 256u
#define GIVE_BACK_BYTES (128u << 10) /* from there on libc gives blocks back, too */
#define SLOTS_MOST (1u << 24)
#define LOCKS 64u
/* Of 65,530 mappings that a process may have, each of them takes up to two. */
#define FENCES_MOST 12000u
#define FENCES_KEPT (FENCES_MOST / 2) /* shut before the oldest is opened for another block */

/* Neighbouring slots of one size. */
struct span {
	uint64_t start, end;
	uint32_t slot_bytes;
	uint32_t first; /* slot */
	uint32_t used, count;
	uint32_t left; /* let go of: pages_let_go_sigsafe() */
};

/* Slots of one size: the span that is being cut, and the freed ones, oldest first. */
struct kind {
	uint32_t span; /* + 1; 0: none */
	uint32_t oldest, newest, freed;
};

static struct {
	uint32_t lock; /* atomic; of everything here */
	uint64_t next; /* address that no span has yet */
	struct span *spans;
	uint32_t span_count, slot_count;
	uint32_t *page_span; /* + 1, by page */
	struct kind kinds[KINDS];
	struct kind alone;     /* slots that have a span to themselves */
	uint32_t locks[LOCKS]; /* atomic; of slots, by number */
} state;

bool pages_slots_init(void)
{
	pages.slots = memory_map_sigsafe(SLOTS_MOST * sizeof(pages.slots[0]));
	state.spans = memory_map_sigsafe(pages.bytes / SPAN_BYTES * sizeof(state.spans[0]));
	state.page_span = memory_map_sigsafe(pages.bytes / PAGE * sizeof(state.page_span[0]));
	state.next = pages.top;
	return pages.slots && state.spans && state.page_span;
}

uint64_t pages_slots_used_sigsafe(void)
{
	return state.next - pages.base;
}

/* In a hook: a signal handler of the target may write to watched memory, and would wait for us. */
uint64_t pages_signals_block(void)
{
	uint64_t all = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGTRAP - 1) |
			 1ull << (SIGSYS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1));
	uint64_t before = 0;

	if (!agent.sandboxed)
		(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
	return before;
}

void pages_signals_restore(uint64_t before)
{
	if (!agent.sandboxed)
		(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
}

struct pages_locks pages_lock_sigsafe(uint64_t low, uint64_t high)
{
	struct pages_locks locks = { 0 };
	uint64_t at;
	uint32_t i;

	for (at = low; at < high && locks.taken != ~0ull; at = pages_slot_end_sigsafe(at)) {
		struct pages_slot *slot = pages_slot_sigsafe(at);

		if (slot)
			locks.taken |= 1ull << (slot - pages.slots) % LOCKS;
	}
	for (i = 0; i < LOCKS; i++) /* always in this order */
		if (locks.taken & 1ull << i)
			(void)spin_take_sigsafe(&state.locks[i], PAGES_LOCK_SPINS);
	return locks;
}

void pages_lock_all_sigsafe(void)
{
	uint32_t i;

	for (i = 0; i < LOCKS; i++)
		(void)spin_take_sigsafe(&state.locks[i], PAGES_LOCK_SPINS);
}

void pages_unlock_sigsafe(struct pages_locks locks)
{
	uint32_t i;

	for (i = 0; i < LOCKS; i++)
		if (locks.taken & 1ull << i)
			spin_give_sigsafe(&state.locks[i]);
}

void pages_slots_unlock_all_sigsafe(void)
{
	memset(state.locks, 0, sizeof(state.locks));
	state.lock = 0;
}

static struct kind *kind_of(const struct span *span)
{
	return span->count == 1 ? &state.alone : &state.kinds[span->slot_bytes / SLOT_STEP];
}

static struct span *span_at(uint64_t address)
{
	uint32_t number;

	if (address - pages.base >= pages.bytes)
		return NULL;
	number = __atomic_load_n(&state.page_span[(address - pages.base) / PAGE], __ATOMIC_ACQUIRE);
	return number ? &state.spans[number - 1] : NULL;
}

struct pages_slot *pages_slot_sigsafe(uint64_t address)
{
	struct span *span = span_at(address);
	uint64_t number;

	if (!span || address < span->start || address >= span->end)
		return NULL;
	number = (address - span->start) / span->slot_bytes;
	return number < span->count ? &pages.slots[span->first + number] : NULL;
}

uint64_t pages_slot_end_sigsafe(uint64_t address)
{
	struct span *span = span_at(address);
	uint64_t number;

	if (!span || address < span->start)
		return (address | (PAGE - 1)) + 1;
	number = (address - span->start) / span->slot_bytes;
	if (number >= span->count)
		return (address | (PAGE - 1)) + 1;
	return span->start + (number + 1) * span->slot_bytes;
}

/* Makes [pages.top, end) readable. */
static bool grow(uint64_t end)
{
	uint64_t top = (end + GROW_BYTES - 1) & ~(GROW_BYTES - 1);

	if (end <= pages.top)
		return true;
	if (top > pages.base + pages.bytes - PAGE) /* the last page stays shut */
		return false;
	/* Fenced slots are opened one by one. */
	if (!watch_fences() && raw_syscall3(SYS_mprotect, pages.top, top - pages.top, PROT_READ))
		return false;
	pages.top = top;
	return true;
}

/* A span of its own for `count` slots; 0: no room. */
static uint32_t span_new(uint64_t slot_bytes, uint32_t count, uint64_t align)
{
	uint64_t start = (state.next + align - 1) & ~(align - 1), end, page;
	struct span *span = &state.spans[state.span_count];

	if (__builtin_mul_overflow(slot_bytes, (uint64_t)count, &end) ||
	    end > pages.bytes - (start - pages.base) || slot_bytes > UINT32_MAX ||
	    (watch_fences() && state.slot_count >= FENCES_MOST) ||
	    state.span_count == pages.bytes / SPAN_BYTES || state.slot_count + count > SLOTS_MOST)
		return 0;
	end += start;
	if (!grow(end))
		return 0;
	*span = (struct span){ .start = start,
			       .end = end,
			       .slot_bytes = (uint32_t)slot_bytes,
			       .first = state.slot_count,
			       .count = count };
	state.slot_count += count;
	state.next = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	state.span_count++;
	for (page = start & ~(uint64_t)(PAGE - 1); page < state.next; page += PAGE)
		__atomic_store_n(&state.page_span[(page - pages.base) / PAGE], state.span_count,
				 __ATOMIC_RELEASE);
	return state.span_count;
}

static struct pages_slot *slot_cut(struct span *span)
{
	struct pages_slot *slot = &pages.slots[span->first + span->used];

	slot->start = span->start + (uint64_t)span->used * span->slot_bytes;
	slot->span = (uint32_t)(span - state.spans);
	span->used++;
	return slot;
}

/* One that was freed long enough ago. */
static struct pages_slot *slot_again(struct kind *kind, uint64_t bytes, uint64_t align)
{
	uint32_t *link = &kind->oldest, before = 0, looked;
	uint32_t kept = watch_fences() ? FENCES_KEPT : KEPT_FREE;

	for (looked = 0; *link && looked < REUSE_LOOKED && kind->freed > kept; looked++) {
		struct pages_slot *slot = &pages.slots[*link - 1];

		if (state.spans[slot->span].slot_bytes == bytes && slot->start % align == 0 &&
		    !slot->armed) {
			if (kind->newest == *link)
				kind->newest = before;
			*link = slot->next;
			kind->freed--;
			slot->next = slot->freed = 0;
			return slot;
		}
		before = *link;
		link = &slot->next;
	}
	return NULL;
}

/* Under the lock. */
static struct pages_slot *slot_find(uint64_t align, uint64_t size)
{
	uint64_t bytes = (size + SLOT_TAIL + SLOT_STEP - 1) & ~(uint64_t)(SLOT_STEP - 1);
	bool alone = align > SLOT_STEP;
	struct pages_slot *slot;
	struct kind *kind;
	uint32_t span;

	if (bytes < size || bytes > UINT32_MAX)
		return NULL;
	align = align > PAGE ? align : PAGE;
	if (bytes > SLOT_SMALL || alone) {
		slot = slot_again(&state.alone, bytes, align);
		if (slot)
			return slot;
		span = span_new(bytes, 1, align);
		return span ? slot_cut(&state.spans[span - 1]) : NULL;
	}
	kind = &state.kinds[bytes / SLOT_STEP];
	slot = slot_again(kind, bytes, 1);
	if (slot)
		return slot;
	if (!kind->span || state.spans[kind->span - 1].used == state.spans[kind->span - 1].count)
		kind->span = span_new(bytes, (uint32_t)(SPAN_BYTES / bytes), PAGE);
	return kind->span ? slot_cut(&state.spans[kind->span - 1]) : NULL;
}

/* The memory of large ones goes back to the kernel, unless somebody still looks at it. */
static void slot_give(struct pages_slot *slot)
{
	struct span *span = &state.spans[slot->span];
	struct kind *kind = kind_of(span);

	slot->bytes = 0;
	slot->freed = 1;
	if (span->slot_bytes >= GIVE_BACK_BYTES && !slot->armed && !watch_fences() &&
	    !agent.sandboxed)
		(void)raw_syscall3(SYS_madvise, slot->start + pages.distance,
				   span->slot_bytes & ~(PAGE - 1), MADV_REMOVE);
	slot->next = 0;
	if (kind->freed)
		pages.slots[kind->newest - 1].next = (uint32_t)(slot - pages.slots) + 1;
	else
		kind->oldest = (uint32_t)(slot - pages.slots) + 1;
	kind->newest = (uint32_t)(slot - pages.slots) + 1;
	kind->freed++;
}

#if AGENT_CHECKS
/* Under the lock. */
static const char *pages_slots_invariant_sigsafe(const struct pages_slot *slot)
{
	const struct span *span = &state.spans[slot->span];
	const struct kind *kind;

	if (slot->span >= state.span_count || span->used > span->count)
		return "pages: a slot of a span that is not there";
	kind = kind_of(span);
	if (slot->start - span->start >= (uint64_t)span->count * span->slot_bytes ||
	    (slot->start - span->start) % span->slot_bytes)
		return "pages: a slot that does not lie in its span";
	if (slot->bytes > span->slot_bytes)
		return "pages: a block that is larger than its slot";
	if (!kind->freed != !kind->oldest)
		return "pages: the list of freed slots is not as long as it says";
	if (slot->armed > pages.objects_used)
		return "pages: a slot with an object that is not there";
	return NULL;
}
#endif

static uint64_t span_bytes(const struct span *span)
{
	return (span->end - span->start + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

bool pages_left_sigsafe(uint64_t address)
{
	const struct span *span = span_at(address);

	return span && __atomic_load_n(&span->left, __ATOMIC_RELAXED);
}

bool pages_span_leave_sigsafe(uint64_t address, uint64_t *ret_low, uint64_t *ret_high)
{
	struct span *span = span_at(address);
	uint64_t mask;
	bool was;

	if (!span)
		return false;
	mask = pages_signals_block();
	(void)spin_take_sigsafe(&state.lock, PAGES_LOCK_SPINS);
	was = __atomic_exchange_n(&span->left, 1, __ATOMIC_RELAXED);
	pages.uneven = true;
	if (kind_of(span)->span == span - state.spans + 1u)
		kind_of(span)->span = 0;
	spin_give_sigsafe(&state.lock);
	pages_signals_restore(mask);
	*ret_low = span->start;
	*ret_high = span->start + span_bytes(span);
	return !was;
}

/* Whoever had a block to itself and was let go of is not there any more. Under the lock. */
static void span_back(struct span *span)
{
	if (!span->left || span->count > 1)
		return;
	__atomic_store_n(&span->left, 0, __ATOMIC_RELAXED);
	(void)pages_rights_sigsafe(span->start, span->start + span_bytes(span), false);
}

struct pages_slot *pages_slot_take(uint64_t align, uint64_t size)
{
	struct pages_slot *slot = NULL;
	uint64_t mask = pages_signals_block();

	(void)spin_take_sigsafe(&state.lock, PAGES_LOCK_SPINS);
	pages_yield_once_written();
	if (!__atomic_load_n(&pages.yielded, __ATOMIC_ACQUIRE))
		slot = slot_find(align, size);
	if (slot) {
		span_back(&state.spans[slot->span]);
		slot->bytes = size ? size : 1;
		INVARIANT(pages_slots_invariant_sigsafe(slot));
	}
	spin_give_sigsafe(&state.lock);
	pages_signals_restore(mask);
	return slot;
}

void pages_slot_give(struct pages_slot *slot)
{
	uint64_t mask = pages_signals_block();

	(void)spin_take_sigsafe(&state.lock, PAGES_LOCK_SPINS);
	INVARIANT(pages_slots_invariant_sigsafe(slot));
	slot_give(slot);
	INVARIANT(pages_slots_invariant_sigsafe(slot));
	spin_give_sigsafe(&state.lock);
	pages_signals_restore(mask);
}

static bool slot_rights(const struct pages_slot *slot, int rights)
{
	const struct span *span = &state.spans[slot->span];

	return !raw_syscall3(SYS_mprotect, span->start, span_bytes(span), rights);
}

struct pages_slot *pages_slot_take_fenced(uint64_t align, uint64_t size)
{
	struct pages_slot *slot = pages_slot_take(align > PAGE ? align : PAGE, size);

	if (slot && !slot_rights(slot, PROT_READ | PROT_WRITE)) {
		pages_slot_give(slot);
		return NULL;
	}
	return slot;
}

/* What was in them is not needed any more, and there may be many. */
void pages_slot_shut(struct pages_slot *slot)
{
	const struct span *span = &state.spans[slot->span];

	if (agent.sandboxed) /* stays as it is */
		return;
	/* First: another thread that reads it meanwhile would find zeros. */
	(void)slot_rights(slot, PROT_NONE);
	(void)raw_syscall3(SYS_madvise, span->start, span_bytes(span), MADV_DONTNEED);
	pages_slot_give(slot);
}

uint64_t pages_slot_bytes(const struct pages_slot *slot)
{
	return state.spans[slot->span].slot_bytes;
}

uint64_t pages_room(const struct pages_slot *slot)
{
	return slot->bytes ? pages_slot_bytes(slot) - SLOT_TAIL : 0;
}

/* What was asked for: so nobody has a right to what is behind it. */
uint64_t pages_usable(const void *ptr)
{
	struct pages_slot *slot = pages_slot_sigsafe((uint64_t)ptr);

	return slot ? slot->bytes : 0;
}
