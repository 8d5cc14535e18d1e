#include "agent/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "agent/arch/x86_64.h"
#include "agent/blocks.h"
#include "agent/calls.h"
#include "agent/memory.h"
#include "agent/real.h"
#include "agent/signals.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

#define PAGE 4096u
#define BYTES_MOST (16ull << 30)
#define BYTES_LEAST (64ull << 20)
/* Beside the agent's tables: what the target maps lies as it would without us. */
#define PLACE_AT (8l << 40)
#define GROW_BYTES (1ull << 20)
#define SLOT_STEP 32u /* blocks.h: two blocks never share a window */
#define SLOT_TAIL 8u  /* nobody's, as libc's own words between blocks are */
#define TAIL_BYTE 0x96 /* what stands behind a block: neither 0, ASCII nor 0xff */
#define TAIL_FILLED 16u
#define SPAN_BYTES (64u << 10)
#define SLOT_SMALL (16u << 10)
#define KINDS (SLOT_SMALL / SLOT_STEP + 1)
#define KEPT_FREE 64u /* freed slots of a kind that are not given out again yet */
#define REUSE_LOOKED 256u
#define GIVE_BACK_BYTES (128u << 10) /* from there on libc gives blocks back, too */
#define SLOTS_MOST (1u << 24)
#define OBJECTS_MOST (1u << 22)
#define LOCKS 64u
#define LOCK_SPINS 2000000u

struct pages pages;

/* Neighbouring slots of one size. */
struct span {
	uint64_t start, end;
	uint32_t slot_bytes;
	uint32_t first; /* slot */
	uint32_t used, count;
};

/* Slots of one size: the span that is being cut, and the freed ones, oldest first. */
struct kind {
	uint32_t span; /* + 1; 0: none */
	uint32_t oldest, newest, freed;
};

static struct {
	uint32_t lock;	/* atomic; of everything here */
	bool looked;	/* for what makes the kernel write of its own accord */
	uint32_t owner; /* the process that has this memory to itself */
	uint64_t next;	/* address that no span has yet */
	struct span *spans;
	uint32_t span_count, slot_count;
	uint32_t *page_span; /* + 1, by page */
	struct kind kinds[KINDS];
	struct kind alone;     /* slots that have a span to themselves */
	uint32_t objects_free; /* + 1 */
	uint32_t locks[LOCKS]; /* atomic; of slots, by number */
} state;

/* ---- locks ----------------------------------------------------------------------------------- */

/* Whoever has one is inside a few instructions, or not on a CPU. After a long time something is
 * wrong with it, and a value that may be told wrongly is better than a target that hangs. */
static void lock_wait(uint32_t *lock)
{
	uint32_t spins, none;

	for (spins = 0; spins < LOCK_SPINS; spins++) {
		none = 0;
		if (__atomic_compare_exchange_n(lock, &none, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return;
		if (spins % 64 == 63)
			(void)raw_syscall0(SYS_sched_yield);
		else
			arch_relax();
	}
}

static void lock_give(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* In a hook: a signal handler of the target may write to watched memory, and would wait for us. */
uint64_t pages_signals_block(void)
{
	uint64_t all = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGTRAP - 1) |
			 1ull << (SIGSYS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1));
	uint64_t before = 0;

	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
	return before;
}

void pages_signals_restore(uint64_t before)
{
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
			lock_wait(&state.locks[i]);
	return locks;
}

void pages_unlock_sigsafe(struct pages_locks locks)
{
	uint32_t i;

	for (i = 0; i < LOCKS; i++)
		if (locks.taken & 1ull << i)
			lock_give(&state.locks[i]);
}

/* ---- slots ----------------------------------------------------------------------------------- */

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
	if (raw_syscall3(SYS_mprotect, pages.top, top - pages.top, PROT_READ))
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

	for (looked = 0; *link && looked < REUSE_LOOKED && kind->freed > KEPT_FREE; looked++) {
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
static struct pages_slot *slot_take(uint64_t align, uint64_t size)
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
	struct kind *kind =
		span->count == 1 ? &state.alone : &state.kinds[span->slot_bytes / SLOT_STEP];

	slot->bytes = 0;
	slot->freed = 1;
	if (span->slot_bytes >= GIVE_BACK_BYTES && !slot->armed)
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

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint64_t alias(uint64_t address)
{
	return address + pages.distance;
}

static struct pages_slot *block_take(uint64_t align, uint64_t size)
{
	struct pages_slot *slot = NULL;
	uint64_t mask = pages_signals_block();

	lock_wait(&state.lock);
	/* From the first block on we are told of it: calls_on(). */
	if (!state.looked && pages_kernel_writes())
		pages_yield_sigsafe();
	state.looked = true;
	if (!__atomic_load_n(&pages.yielded, __ATOMIC_ACQUIRE))
		slot = slot_take(align, size);
	if (slot)
		slot->bytes = size ? size : 1;
	lock_give(&state.lock);
	pages_signals_restore(mask);
	if (slot)
		calls_on();
	return slot;
}

static void block_give(struct pages_slot *slot)
{
	uint64_t mask = pages_signals_block();

	lock_wait(&state.lock);
	slot_give(slot);
	lock_give(&state.lock);
	pages_signals_restore(mask);
}

static bool context_wants(struct guard *guard, uint64_t size, struct caller caller)
{
	uint64_t context;

	/* Places that are known have no watch: context.c. */
	if (context_hit(guard->self, caller, &context))
		return false;
	context = context_find(guard, caller);
	return watch_wants((uint32_t)context) && watch_places((uint32_t)context, size);
}

/* What a block is to hold from the start: what is watched begins with it. */
struct content {
	const void *from; /* NULL: zeros */
	uint64_t bytes;
};

/* Whoever writes behind the block changes something there, if that is what is watched. */
static void tail_fill(const struct pages_slot *slot, uint64_t size)
{
	uint64_t room = state.spans[slot->span].slot_bytes - size;

	memset((void *)(alias(slot->start) + size), TAIL_BYTE,
	       room < TAIL_FILLED ? room : TAIL_FILLED);
}

static void *block_begin_here(struct guard *guard, struct pages_slot *slot, uint64_t size,
			      struct content content, enum log_api api, struct caller caller)
{
	if (slot) {
		if (content.from)
			memcpy((void *)alias(slot->start), content.from, content.bytes);
		else
			memset((void *)alias(slot->start), 0, content.bytes);
		tail_fill(slot, size);
		(void)block_begin_guarded(guard, BLOCKS_HEAP, slot->start, size, api, caller);
	}
	return slot ? (void *)slot->start : NULL;
}

static void *block_place(uint64_t align, uint64_t size, struct content content, enum log_api api,
			 struct caller caller)
{
	struct pages_slot *slot = NULL;
	struct guard guard;
	void *ptr;

	if (!guard_enter(&guard))
		return NULL;
	if (context_wants(&guard, size, caller))
		slot = block_take(align, size);
	ptr = block_begin_here(&guard, slot, size, content, api, caller);
	guard_leave(&guard);
	return ptr;
}

void *pages_allocate_python(uint64_t size, bool zeroed, struct caller caller)
{
	struct guard guard;
	void *ptr;

	if (!thread_self || !thread_self->place_python || !guard_enter(&guard))
		return NULL;
	guard.self->place_python = false;
	ptr = block_begin_here(&guard, block_take(0, size), size,
			       (struct content){ .bytes = zeroed ? size : 0 }, LOG_API_MALLOC,
			       caller);
	guard_leave(&guard);
	return ptr;
}

void *pages_allocate(uint64_t align, uint64_t size, bool zeroed, enum log_api api,
		     struct caller caller)
{
	return block_place(align, size, (struct content){ .bytes = zeroed ? size : 0 }, api,
			   caller);
}

/* What is no block: told as a bad free, and left alone. libc would end the process; that is what
 * its own check says. */
static struct pages_slot *block_known(void *ptr)
{
	struct pages_slot *slot = pages_slot_sigsafe((uint64_t)ptr);

	return slot && slot->start == (uint64_t)ptr && slot->bytes ? slot : NULL;
}

void pages_free(void *ptr, struct caller caller)
{
	struct pages_slot *slot = block_known(ptr);
	struct guard guard;

	if (guard_enter(&guard)) {
		block_end_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, caller);
		guard_leave(&guard);
	}
	if (slot)
		block_give(slot);
	else
		real.free(ptr); /* says what it says about a pointer that is not its own */
}

/* What was asked for: so nobody has a right to what is behind it. */
uint64_t pages_usable(const void *ptr)
{
	struct pages_slot *slot = pages_slot_sigsafe((uint64_t)ptr);

	return slot ? slot->bytes : 0;
}

static uint64_t slot_room(const void *ptr)
{
	struct pages_slot *slot = pages_slot_sigsafe((uint64_t)ptr);

	return slot && slot->bytes ? state.spans[slot->span].slot_bytes - SLOT_TAIL : 0;
}

/* Stays where it is if it fits. */
static bool resize_in_place(void *ptr, uint64_t size, struct pages_slot *slot, struct caller caller)
{
	struct block *block = NULL;
	struct guard guard;

	if (!size || size > slot_room(ptr))
		return false;
	if (guard_enter(&guard)) {
		block = block_suspend(&guard, (uint64_t)ptr, caller);
		if (block)
			block_resume(&guard, block, (uint64_t)ptr, size);
		guard_leave(&guard);
	}
	slot->bytes = size;
	return true;
}

static void *elsewhere(uint64_t size, struct caller caller)
{
	struct guard guard;
	void *ptr = real.malloc(size);

	if (ptr && guard_enter(&guard)) {
		(void)block_begin_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, size, LOG_API_MALLOC,
					  caller);
		guard_leave(&guard);
	}
	return ptr;
}

void *pages_realloc(void *ptr, uint64_t size, struct caller caller)
{
	struct pages_slot *slot = block_known(ptr);
	uint64_t kept;
	void *moved;

	if (!slot)
		return real.realloc(ptr, size);
	if (!size) { /* as libc has it */
		pages_free(ptr, caller);
		return NULL;
	}
	if (resize_in_place(ptr, size, slot, caller))
		return ptr;
	kept = pages_usable(ptr) < size ? pages_usable(ptr) : size;
	moved = block_place(0, size, (struct content){ ptr, kept }, LOG_API_MALLOC, caller);
	if (!moved) {
		moved = elsewhere(size, caller);
		if (!moved)
			return NULL;
		memcpy(moved, ptr, kept);
	}
	pages_disarm((uint64_t)ptr, slot->bytes, LOG_WATCHED_MOVED);
	pages_free(ptr, caller);
	return moved;
}

void *pages_take_in(void *ptr, uint64_t size, struct caller caller)
{
	uint64_t kept = real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
	struct guard guard;
	void *moved;

	if (!kept || !size)
		return NULL;
	moved = block_place(0, size, (struct content){ ptr, kept < size ? kept : size },
			    LOG_API_MALLOC, caller);
	if (!moved)
		return NULL;
	if (guard_enter(&guard)) {
		block_end_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, caller);
		guard_leave(&guard);
	}
	real.free(ptr);
	return moved;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Under the lock. */
static struct pages_armed *object_take(void)
{
	struct pages_armed *object;

	if (state.objects_free) {
		object = &pages.objects[state.objects_free - 1];
		state.objects_free = object->next;
		return object;
	}
	if (pages.objects_used == OBJECTS_MOST)
		return NULL;
	object = &pages.objects[pages.objects_used];
	__atomic_store_n(&pages.objects_used, pages.objects_used + 1, __ATOMIC_RELEASE);
	return object;
}

bool pages_arm(const struct watch_armed *armed, uint32_t context)
{
	struct pages_slot *slot = pages_slot_sigsafe(armed->address);
	struct pages_armed *object;
	struct pages_locks locks;
	uint64_t mask;

	/* What is watched ends with its slot: stores behind are told of the next one's objects. */
	if (!slot || !slot->bytes || __atomic_load_n(&pages.yielded, __ATOMIC_ACQUIRE) ||
	    armed->address + armed->bytes > slot->start + state.spans[slot->span].slot_bytes)
		return false;
	mask = pages_signals_block();
	lock_wait(&state.lock);
	object = object_take();
	lock_give(&state.lock);
	if (object) {
		locks = pages_lock_sigsafe(armed->address, armed->address + 1);
		object->armed = *armed;
		object->slot = (uint32_t)(slot - pages.slots);
		object->calls = 0;
		watch_begin(&object->armed, context);
		object->next = slot->armed;
		slot->armed = (uint32_t)(object - pages.objects) + 1;
		pages_unlock_sigsafe(locks);
	}
	pages_signals_restore(mask);
	return object != NULL;
}

/* Takes an object out of its slot's list; `link` is what points to it. The slot's lock is held. */
static void object_end(uint32_t *link, struct pages_armed *object, enum log_watched_end why)
{
	*link = object->next;
	if (object->calls) /* it may be written to just now: no change that nobody made */
		(void)watch_read_sigsafe(object->armed.last, object->armed.address,
					 object->armed.bytes);
	if (why == LOG_WATCHED_MOVED)
		__atomic_fetch_add(&watch_state.area->rows[object->armed.watch].moved, 1,
				   __ATOMIC_RELAXED);
	watch_end(&object->armed, why);
	lock_wait(&state.lock);
	object->next = state.objects_free;
	state.objects_free = (uint32_t)(object - pages.objects) + 1;
	lock_give(&state.lock);
}

static void slot_disarm(struct pages_slot *slot, uint64_t start, uint64_t bytes,
			enum log_watched_end why)
{
	struct pages_locks locks;
	uint64_t mask;
	uint32_t *link;

	if (!slot || !slot->armed)
		return;
	mask = pages_signals_block();
	locks = pages_lock_sigsafe(slot->start, slot->start + 1);
	for (link = &slot->armed; *link;) {
		struct pages_armed *object = &pages.objects[*link - 1];

		if (object->armed.address - start >= (bytes ? bytes : 1) ||
		    (why != LOG_WATCHED_AGAIN && watch_outlives(&object->armed)))
			link = &object->next;
		else
			object_end(link, object, why);
	}
	pages_unlock_sigsafe(locks);
	pages_signals_restore(mask);
}

void pages_disarm(uint64_t start, uint64_t bytes, enum log_watched_end why)
{
	slot_disarm(pages_slot_sigsafe(start), start, bytes, why);
}

bool pages_resized(uint64_t start, uint64_t size)
{
	struct pages_slot *slot = pages_slot_sigsafe(start);

	if (!slot || !slot->armed)
		return false;
	slot_disarm(slot, start + size, state.spans[slot->span].slot_bytes, LOG_WATCHED_MOVED);
	return slot->armed != 0;
}

void pages_check_sigsafe(bool ending)
{
	uint32_t count = __atomic_load_n(&pages.objects_used, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < count; i++) {
		struct pages_armed *object = &pages.objects[i];
		struct pages_locks locks;

		if (!__atomic_load_n(&object->armed.number, __ATOMIC_ACQUIRE))
			continue;
		locks = pages_lock_sigsafe(object->armed.address, object->armed.address + 1);
		if (object->armed.number && !object->calls && ending)
			watch_end(&object->armed, LOG_WATCHED_EXIT);
		else if (object->armed.number && !object->calls)
			watch_look(&object->armed);
		pages_unlock_sigsafe(locks);
	}
}

/* ---- start and fork ----------------------------------------------------------------------------
 */

static long memory_file(uint64_t bytes)
{
	long fd = raw_syscall2(SYS_memfd_create, "redhand-watched", MFD_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = raw_syscall2(SYS_ftruncate, fd, bytes);
	if (r < 0) {
		(void)raw_syscall1(SYS_close, fd);
		return r;
	}
	return fd;
}

static bool map_at(uint64_t address, uint64_t bytes, int rights, long fd, int flags)
{
	return raw_syscall6(SYS_mmap, (long)address, (long)bytes, rights,
			    MAP_SHARED | MAP_NORESERVE | flags, fd, 0) == (long)address;
}

/* A limit on files' sizes would end the process with a signal; one on address space holds for both
 * views. */
static uint64_t bytes_wish(void)
{
	struct rlimit files = { RLIM_INFINITY, RLIM_INFINITY }, space = files;
	uint64_t wish = BYTES_MOST;

	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, &space);
	while (wish >= BYTES_LEAST && (wish > files.rlim_cur || wish > space.rlim_cur / 8))
		wish /= 2;
	return wish;
}

static bool tables_map(uint64_t bytes)
{
	pages.slots = memory_map_sigsafe(SLOTS_MOST * sizeof(pages.slots[0]));
	pages.objects = memory_map_sigsafe(OBJECTS_MOST * sizeof(pages.objects[0]));
	state.spans = memory_map_sigsafe(bytes / SPAN_BYTES * sizeof(state.spans[0]));
	state.page_span = memory_map_sigsafe(bytes / PAGE * sizeof(state.page_span[0]));
	return pages.slots && pages.objects && state.spans && state.page_span;
}

/* The first page stays shut, as does the last: no store reaches in from outside. */
static int views_map(uint64_t bytes)
{
	long fd = memory_file(bytes), at;

	if (fd < 0)
		return (int)-fd;
	at = raw_syscall6(SYS_mmap, PLACE_AT, (long)bytes * 2, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096) {
		(void)raw_syscall1(SYS_close, fd);
		return (int)-at;
	}
	if (!map_at((uint64_t)at, bytes, PROT_NONE, fd, MAP_FIXED) ||
	    !map_at((uint64_t)at + bytes, bytes, PROT_READ | PROT_WRITE, fd, MAP_FIXED)) {
		(void)raw_syscall2(SYS_munmap, at, bytes * 2);
		(void)raw_syscall1(SYS_close, fd);
		return ENOMEM;
	}
	(void)raw_syscall1(SYS_close, fd);
	(void)raw_syscall3(SYS_madvise, at + (long)bytes, bytes, MADV_DONTDUMP);
	state.owner = (uint32_t)raw_syscall0(SYS_getpid);
	pages.distance = bytes;
	state.next = pages.top = (uint64_t)at + PAGE;
	pages.base = (uint64_t)at;
	pages.bytes = bytes;
	return 0;
}

int pages_init(void)
{
	uint64_t bytes = bytes_wish();
	int r = ENOMEM;

	for (; bytes >= BYTES_LEAST && r; bytes /= 2)
		r = views_map(bytes);
	if (!r && !tables_map(pages.bytes))
		r = ENOMEM;
	if (!r)
		r = calls_init();
	if (r)
		pages.bytes = 0;
	else
		signals_pages_sigsafe();
	pages.trouble = r;
	return r;
}

int pages_copy_sigsafe(void)
{
	long fd, r = 0;
	uint64_t at, used = state.next - pages.base;

	if (!pages.bytes)
		return -ENOENT;
	fd = memory_file(pages.bytes);
	if (fd < 0)
		return (int)fd;
	/* Written, not mapped: what was never touched is not there in the copy either. */
	for (at = 0; at < used && r >= 0; at += r > 0 ? (uint64_t)r : PAGE) {
		uint64_t piece = used - at < GROW_BYTES ? used - at : GROW_BYTES;

		r = raw_syscall4(SYS_pwrite64, fd, pages.base + pages.distance + at, piece, at);
	}
	if (r < 0) {
		(void)raw_syscall1(SYS_close, fd);
		return (int)r;
	}
	return (int)fd;
}

bool pages_adopt_sigsafe(int fd)
{
	uint64_t shut = pages.base + pages.bytes - pages.top;
	bool good = map_at(pages.base + pages.distance, pages.bytes, PROT_READ | PROT_WRITE, fd,
			   MAP_FIXED) &&
		    map_at(pages.base, pages.bytes, PROT_READ, fd, MAP_FIXED);

	(void)raw_syscall1(SYS_close, fd);
	(void)raw_syscall3(SYS_mprotect, pages.base, PAGE, PROT_NONE);
	(void)raw_syscall3(SYS_mprotect, pages.top, shut, PROT_NONE);
	(void)raw_syscall3(SYS_madvise, pages.base + pages.distance, pages.bytes, MADV_DONTDUMP);
	memset(state.locks, 0, sizeof(state.locks));
	state.lock = 0;
	state.owner = (uint32_t)raw_syscall0(SYS_getpid);
	if (pages.yielded)
		pages_open_views_sigsafe();
	return good;
}

/* Where no block had been placed before the fork, nobody made a copy. */
void pages_after_fork(void)
{
	uint32_t i;
	long fd;

	if (!pages.bytes)
		return;
	for (i = 0; i < pages.objects_used; i++)
		pages.objects[i].calls = 0;
	if (state.owner != (uint32_t)raw_syscall0(SYS_getpid)) {
		fd = memory_file(pages.bytes);
		if (fd < 0 || !pages_adopt_sigsafe((int)fd))
			pages.bytes = 0;
	}
	calls_thread_sigsafe();
}
