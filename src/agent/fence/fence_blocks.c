/*
 * Fenced blocks: which contexts have their turn, where a block lies in its pages, and the slack
 * between its end and the closed page, which is filled and looked at like a guard.
 */
#include "agent/fence/fence.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "agent/core/clock.h"
#include "agent/core/log.h"
#include "agent/core/real.h"
#include "agent/core/secret.h"
#include "agent/core/signals.h"
#include "agent/core/thread.h"
#include "agent/core/told.h"
#include "agent/fence/fence_inside.h"
#include "agent/guards/badfree.h"
#include "agent/guards/canary_heap.h"
#include "agent/guards/damage.h"
#include "agent/guards/sample.h"
#include "agent/ids/blocks.h"
#include "wire/fence_turn.h"

#define BYTES_MOST (4ull << 30) /* the side table's index takes an eighth of that */
#define BYTES_LEAST (16ull << 20)
#define SPACE_SHARE 8u	 /* of a limit on address space, or of the machine's memory */
#define SLACK_FILLED 64u /* bytes on either side of a block */
#define SIZE_MOST ((uint64_t)FENCE_PAGES_MOST * FENCE_PAGE)
/* The first blocks of a context do not take turns because room or time is short: so many, and half
 * as many with each level. */
#define RARE 256u
#define TIMED_EVERY 31u		  /* blocks whose time is measured, one of each so many */
#define FAULT_NS 2000u		  /* of a page that is touched for the first time, or given back */
#define TIME_FREE_NS 100000000ull /* of CPU, before anybody asks */
#define TELLS_MOST 64u		  /* damaged slacks */
#define FREED_OPENED 4096u	  /* freed blocks that get their bytes back when fences leave */

struct fence_state fence;

static struct {
	uint64_t started_ns, spent_ns; /* spent: atomic */
	uint64_t freed;		       /* a lost increment does not matter */
	uint32_t tells;		       /* atomic */
	uint32_t calls;		       /* errno */
} state;

void fence_plan(const struct plan_fence *plan)
{
	fence.plan = *plan;
	fence.level = plan->level < FENCE_LEVELS ? plan->level : FENCE_LEVELS;
	fence.planned = true;
}

void fence_narrow(void)
{
	if (__atomic_load_n(&fence.level, __ATOMIC_RELAXED) < FENCE_LEVELS)
		__atomic_fetch_add(&fence.level, 1, __ATOMIC_RELAXED);
}

static uint64_t bytes_wish(void)
{
	struct rlimit space = { RLIM_INFINITY, RLIM_INFINITY };
	struct sysinfo info = { 0 };
	uint64_t wish = BYTES_MOST, memory = BYTES_MOST * SPACE_SHARE;

	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, &space);
	if (!raw_syscall1(SYS_sysinfo, &info))
		memory = info.totalram * (uint64_t)info.mem_unit;
	while (wish >= BYTES_LEAST &&
	       (wish > space.rlim_cur / SPACE_SHARE || wish > memory / SPACE_SHARE))
		wish /= 2;
	return wish;
}

static void settings_record(int trouble)
{
	struct log_fence record = { .mode = trouble ? LOG_FENCE_OFF : fence.mode,
				    .trouble = trouble,
				    .calls = state.calls,
				    .flags = fence.plan.item.flags,
				    .turn = fence.plan.turn,
				    .level = fence.level,
				    .bytes = fence.bytes,
				    .at_once = trouble ? 0 : slots_most() };

	log_event_sigsafe(LOG_FENCE, &record, sizeof(record));
}

/* The kernel would refuse to use closed pages, with an error that the program never had. */
static void calls_follow(void)
{
	if (fence.plan.item.flags & PLAN_FENCE_UNTOLD) {
		state.calls = ENOTSUP;
		return;
	}
	state.calls = (uint32_t)told_init();
	if (!state.calls)
		told_thread_sigsafe();
}

void fence_init(void)
{
	uint64_t bytes;
	int r = ENOMEM;

	if (!fence.planned || !canary.on)
		return;
	for (bytes = bytes_wish(); bytes >= BYTES_LEAST && r; bytes /= 2)
		r = shutter_map(bytes);
	if (!r && !(slots_init() && keep_init() && access_init()))
		r = ENOMEM;
	if (r) {
		fence.bytes = 0;
	} else {
		agent.faults |= AGENT_FAULTS_FENCES;
		canary.annexed = true;
		sample.always = fence_has_turn;
		signals_pages_sigsafe(); /* a fault must reach us, whatever the target blocks */
		calls_follow();
		/* libc's own has what it needs before the target has used up its mappings. */
		real.free(real.malloc(1));
	}
	canary.asks |= fence.bytes != 0;
	state.started_ns = clock_ns_sigsafe(CLOCK_PROCESS_CPUTIME_ID);
	settings_record(r);
}

void fence_after_fork(void)
{
	if (!fence.bytes)
		return;
	slots_after_fork();
	access_after_fork();
	fence.fenced = fence.passed = 0;
	state.tells = 0;
	state.spent_ns = 0;
	state.started_ns = clock_ns_sigsafe(CLOCK_PROCESS_CPUTIME_ID);
	if (!state.calls)
		told_thread_sigsafe();
	settings_record(0);
}

bool fence_has_turn(uint32_t context)
{
	uint32_t level = __atomic_load_n(&fence.level, __ATOMIC_RELAXED);

	if (!level)
		return true;
	if (context < agent.plan.context_rows &&
	    fence_turn_takes(log_map.contexts[context].stack_hash, fence.plan.turn, level))
		return true;
	/* Only the plan's own level holds for rare ones, too. */
	return level > fence.plan.level &&
	       context_ordinals[context] < RARE >> (level - fence.plan.level) &&
	       fence_turn_takes(log_map.contexts[context].stack_hash, fence.plan.turn,
				fence.plan.level);
}

/* CPU time: on a busy machine most of the other is not the program's. */
static uint64_t timed_begin(uint64_t number)
{
	return number % TIMED_EVERY ? 0 : clock_ns_sigsafe(CLOCK_THREAD_CPUTIME_ID);
}

/* The plan says which part of the time fences may take. */
static void timed_end(uint64_t began, const struct fence_slot *slot)
{
	uint64_t spent, now;

	if (!began || !fence.plan.time_percent)
		return;
	spent = clock_ns_sigsafe(CLOCK_THREAD_CPUTIME_ID) - began;
	/* Only single pages are there from the start: the others fault, here and when they are
	 * used. */
	spent = (spent + (slot->pages > 1 ? slot->pages * FAULT_NS : 0)) * TIMED_EVERY;
	spent = __atomic_add_fetch(&state.spent_ns, spent, __ATOMIC_RELAXED);
	if (spent < TIME_FREE_NS)
		return;
	now = clock_ns_sigsafe(CLOCK_PROCESS_CPUTIME_ID);
	if (spent < (now - state.started_ns) / 100 * fence.plan.time_percent)
		return;
	/* What was spent at the level before is not held against the next one. */
	__atomic_store_n(&state.spent_ns, 0, __ATOMIC_RELAXED);
	state.started_ns = now;
	fence_narrow();
}

/* What lies beside it and holds a guard's words. */
struct slack {
	enum log_damage_kind kind;
	uint64_t low, high;
};

static void slacks_of(const struct fence_slot *slot, struct slack ret[2])
{
	uint64_t low = fence_low(slot), end = slot->start + slot->size, high = fence_high(slot);

	if (slot->start - low > SLACK_FILLED)
		low = slot->start - SLACK_FILLED;
	if (high - end > SLACK_FILLED)
		high = end + SLACK_FILLED;
	ret[0] = (struct slack){ LOG_DAMAGE_BEFORE, low, slot->start };
	ret[1] = (struct slack){ LOG_DAMAGE_BEHIND, end, high };
}

static uint8_t slack_byte(uint64_t guard, uint64_t at)
{
	return (uint8_t)(canary_guard_at(guard, at) >> (at % 8 * 8));
}

uint64_t fence_guard(const struct fence_slot *slot)
{
	return canary_word(canary.seed, slot->start, CANARY_GUARD);
}

static void slack_fill(const struct fence_slot *slot)
{
	uint64_t guard = fence_guard(slot), at;
	struct slack slacks[2];
	unsigned i;

	slacks_of(slot, slacks);
	for (i = 0; i < 2; i++) {
		for (at = slacks[i].low; at < slacks[i].high && at % 8; at++)
			*(uint8_t *)at = slack_byte(guard, at);
		for (; at + 8 <= slacks[i].high; at += 8)
			*(uint64_t *)at = canary_guard_at(guard, at);
		for (; at < slacks[i].high; at++)
			*(uint8_t *)at = slack_byte(guard, at);
	}
}

static void damage_tell(const struct fence_slot *slot, const struct slack *slack, uint64_t first,
			enum log_check check, uint32_t context)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, fence_key(slot));
	struct log_heap_damage record = { .kind = slack->kind, .check = check, .context = context };
	struct block_view view = { .start = slot->start,
				   .size = slot->size,
				   .relation = LOG_INSIDE };
	struct log_block hit = { .via = LOG_VIA_DAMAGE, .where = first, .value = first };
	uint64_t guard = fence_guard(slot), last = slack->high;
	struct log_writer writer;
	uint32_t i;

	if (__atomic_fetch_add(&state.tells, 1, __ATOMIC_RELAXED) >= TELLS_MOST)
		return;
	while (*(const uint8_t *)(last - 1) == slack_byte(guard, last - 1))
		last--;
	record.offset = (int64_t)(first - slot->start);
	record.length = last - first;
	record.bytes = slack->high - first < LOG_DAMAGE_BYTES ? (uint32_t)(slack->high - first)
							      : LOG_DAMAGE_BYTES;
	for (i = 0; i < record.bytes; i++) {
		record.expected[i] = slack_byte(guard, first + i);
		record.found[i] = *(const uint8_t *)(first + i);
	}
	secret_hide_sigsafe(record.found, record.bytes, first);
	damage_stamp_sigsafe(&record, false);
	if (block)
		view.block = *block;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_HEAP_DAMAGE, &record, sizeof(record));
	block_describe_sigsafe(&view, &hit);
	(void)log_append_sigsafe(&writer, LOG_BLOCK, &hit, sizeof(hit), NULL, 0);
}

static void slack_look(const struct fence_slot *slot, enum log_check check, uint32_t context)
{
	uint64_t guard = fence_guard(slot), at;
	struct slack slacks[2];
	unsigned i;

	slacks_of(slot, slacks);
	for (i = 0; i < 2; i++)
		for (at = slacks[i].low; at < slacks[i].high; at++)
			if (*(const uint8_t *)at != slack_byte(guard, at)) {
				damage_tell(slot, &slacks[i], at, check, context);
				break;
			}
}

void fence_expect_new(void)
{
	if (fence.bytes && thread_self)
		thread_self->calls.expects_new = true;
}

static uint64_t alignment(uint64_t align, uint64_t size)
{
	bool is_new = thread_self && thread_self->calls.expects_new;

	if (is_new)
		thread_self->calls.expects_new = false;
	if (align)
		return align;
	if (fence.plan.item.flags & PLAN_FENCE_EXACT)
		return 1;
	return is_new || size % 16 == 0 ? 16 : 8;
}

/* Puts the block into its slot. */
static void place(struct fence_slot *slot, uint64_t align, uint64_t size)
{
	/* A block of no bytes has an address of its own. */
	uint64_t room = size ? size : 1;

	slot->start = fence.plan.item.flags & PLAN_FENCE_FRONT
			      ? fence_low(slot)
			      : (fence_high(slot) - room) & ~(align - 1);
	slot->size = (uint32_t)size;
	slot->align = (uint8_t)__builtin_ctzll(align);
	slack_fill(slot);
	__atomic_store_n(&slot->state, FENCE_LIVE, __ATOMIC_RELEASE);
}

static uint32_t pages_for(uint64_t size, uint64_t align)
{
	uint64_t room = ((size ? size : 1) + align - 1) & ~(align - 1);

	return (uint32_t)((room + FENCE_PAGE - 1) / FENCE_PAGE);
}

void *fence_allocate(uint64_t align, uint64_t size, enum log_api api, struct caller caller)
{
	struct fence_slot *slot = NULL;
	struct guard guard;
	uint64_t began;

	align = alignment(align, size);
	/* A block takes a page at least: where the target's memory is limited, no more
	 * (memory_budget.h). */
	if (unlikely(canary.tight || fence.left) || size > SIZE_MOST - align ||
	    align > FENCE_PAGE || !guard_enter(&guard)) {
		__atomic_fetch_add(&fence.passed, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	began = timed_begin(fence.fenced);
	if (fence_has_turn(context_find(&guard, caller)))
		slot = slot_take(pages_for(size, align));
	if (slot) {
		place(slot, align, size);
		(void)block_begin_guarded(&guard, BLOCKS_HEAP, fence_key(slot), size, api, caller);
		timed_end(began, slot);
	}
	__atomic_fetch_add(slot ? &fence.fenced : &fence.passed, 1, __ATOMIC_RELAXED);
	guard_leave(&guard);
	return slot ? (void *)slot->start : NULL;
}

static struct fence_slot *slot_known(const void *ptr)
{
	struct fence_slot *slot = slot_at_sigsafe((uint64_t)ptr);

	return slot && slot->state != FENCE_FREE && slot->start == (uint64_t)ptr ? slot : NULL;
}

static void bad_free_tell(struct guard *guard, const struct fence_slot *slot, const void *pointer,
			  enum log_bad_free_kind kind, enum log_free_by by, struct caller caller)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, fence_key(slot));
	struct log_bad_free bad = { .kind = kind, .by = by };
	struct block_view view = { .start = slot->start,
				   .size = slot->size,
				   .relation = LOG_INSIDE };

	/* It is what we gave out ourselves. */
	bad.evidence = kind == LOG_DOUBLE_FREE ? LOG_EVIDENCE_QUARANTINE : LOG_EVIDENCE_PLACE;
	if (block)
		view.block = *block;
	badfree_record(guard, (uint64_t)pointer, &view, &bad, caller);
}

/* libc says what it says about a block that is freed twice: about one of its own. */
static void free_twice(size_t size)
{
	void *volatile mine = real.malloc(size);

	real.free(mine);
	real.free(mine);
}

void fence_free(void *ptr, enum log_free_by by, struct caller caller)
{
	struct fence_slot *slot = slot_known(ptr);
	struct block *block;
	struct guard guard;
	uint64_t began;

	if (fence.left || !guard_enter(&guard)) {
		fence_leave_sigsafe(ptr);
		return;
	}
	if (!slot) {
		slot = slot_at_sigsafe((uint64_t)ptr);
		if (slot && slot->state != FENCE_FREE)
			bad_free_tell(&guard, slot, ptr, LOG_INTERIOR_FREE, by, caller);
		guard_leave(&guard);
		real.free(ptr);
		return;
	}
	if (slot->state == FENCE_FREED) {
		bad_free_tell(&guard, slot, ptr, LOG_DOUBLE_FREE, by, caller);
		guard_leave(&guard);
		free_twice(slot->size);
		return;
	}
	block = block_at_sigsafe(BLOCKS_HEAP, fence_key(slot));
	if (block && canary_mismatched(block, by))
		bad_free_tell(&guard, slot, ptr, LOG_MISMATCHED_FREE, by, caller);
	began = timed_begin(state.freed++);
	slack_look(slot, LOG_CHECK_FREE, context_find(&guard, caller));
	keep_block(slot);
	if (block && block->state == LOG_BLOCK_LIVE)
		block_end_known(&guard, block, fence_key(slot), caller);
	__atomic_store_n(&slot->state, FENCE_FREED, __ATOMIC_RELEASE);
	slot_give(slot);
	timed_end(began, slot);
	guard_leave(&guard);
}

void *fence_realloc(void *ptr, size_t size, struct caller caller)
{
	struct fence_slot *slot = slot_known(ptr);
	const struct block *block;
	enum log_api api = LOG_API_MALLOC;
	void *moved;

	if (!slot || slot->state != FENCE_LIVE) {
		fence_free(ptr, LOG_BY_REALLOC, caller);
		return slot ? NULL : real.realloc(NULL, size);
	}
	if (size && size == slot->size)
		return ptr;
	block = block_at_sigsafe(BLOCKS_HEAP, fence_key(slot));
	if (block)
		api = (enum log_api)(block->api & BLOCK_API_MASK);
	moved = size ? canary_allocate(0, size, 0, api, caller) : NULL;
	if (size && !moved)
		return NULL;
	if (moved)
		memcpy(moved, ptr, slot->size < size ? slot->size : size);
	fence_free(ptr, size ? LOG_BY_REALLOC : LOG_BY_FREE, caller);
	return moved;
}

size_t fence_usable(const void *ptr)
{
	const struct fence_slot *slot = slot_known(ptr);

	return slot ? slot->size : 0;
}

void fence_leave_sigsafe(void *ptr)
{
	(void)ptr; /* open, and nobody's: who still uses it is not seen */
}

static void end_write(enum log_check check)
{
	struct log_fence_end record = { .fenced = fence.fenced,
					.passed = fence.passed,
					.level = fence.level };
	uint32_t i, count;
	uint64_t all = 0;

	if (!fence.bytes || fence.left || !agent_switch.ids)
		return;
	record.most = slots_peak();
	count = context_rows_sigsafe();
	for (i = 0; i < count; i++)
		all += context_ordinals[i];
	/* Most of those without go by a way that does not count them. */
	if (all > record.fenced)
		record.passed = all - record.fenced;
	count = slots_count_sigsafe();
	for (i = 0; i < count; i++) {
		const struct fence_slot *slot = slot_number_sigsafe(i);

		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == FENCE_LIVE)
			slack_look(slot, check, 0);
	}
	access_counts_sigsafe(&record);
	log_event_sigsafe(LOG_FENCE_END, &record, sizeof(record));
}

void fence_exiting_sigsafe(void)
{
	end_write(LOG_CHECK_EXIT);
}

void fence_crashed_sigsafe(const struct log_crash *crash, const uint64_t *starts, unsigned count)
{
	(void)crash;
	(void)starts;
	(void)count;
	end_write(LOG_CHECK_CRASH);
}

void fence_left_sigsafe(void)
{
	uint32_t i, count = slots_count_sigsafe();

	if (!fence.bytes || fence.left)
		return;
	end_write(LOG_CHECK_EXIT);
	fence.left = true;
	shutter_leave();
	/* Who reads a freed block is to find what he would have found; the last ones suffice. */
	for (i = count > FREED_OPENED ? count - FREED_OPENED : 0; i < count; i++)
		keep_restore_sigsafe(slot_number_sigsafe(i), fence_low(slot_number_sigsafe(i)));
	told_stop_sigsafe();
}

bool fence_holds_ptr(const void *ptr)
{
	return fence_holds(ptr);
}
