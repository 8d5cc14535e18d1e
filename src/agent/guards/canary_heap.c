#include "agent/guards/canary_heap.h"

#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/memory_budget.h"
#include "agent/core/real.h"
#include "agent/guards/badfree.h"
#include "agent/guards/damage.h"
#include "agent/guards/guard_check.h"
#include "agent/guards/quarantine.h"
#include "agent/guards/sample.h"
#include "agent/guards/sweep.h"

/* Blocks up to this size move whenever realloc changes them, so that what still points to the old
 * place is caught. Larger ones are left to libc, which may extend them in place: copying a buffer
 * of megabytes for every few bytes it grows would take for ever. */
#define MOVE_MAX (32u << 10)
#define QUARANTINE_PART 16u /* of the memory that the target may have */

static void settings_record(void)
{
	struct log_heap record = { .seed = canary.seed,
				   .quarantine_mib = canary.plan.quarantine_mib,
				   .poison_ppm = canary.plan.poison_ppm,
				   .timer_ms = canary.plan.timer_ms,
				   .sweep = canary.plan.sweep,
				   .sampled = sample.on };

	log_event_sigsafe(LOG_HEAP, &record, sizeof(record));
}

static void budget_apply(uint64_t limit)
{
	uint64_t most = limit / QUARANTINE_PART >> 20;

	if (canary.plan.quarantine_mib > most)
		canary.plan.quarantine_mib = (uint32_t)most;
}

void canary_tight(void)
{
	if (canary.tight)
		return;
	canary.tight = true;
	quarantine_close();
}

void canary_init(void)
{
	/* Blocks of a malloc that the program has inside have none: builtin_malloc.h. */
	if (!canary.planned || !blocks_state.bases || real.past_us)
		return;
	budget_apply(budget_init());
	canary.on = blocks_state.guards = history_state.turns_told = true;
	blocks_state.seed = canary.seed;
	(void)sample_init();
	guard_check_init();
	settings_record();
}

void canary_after_fork(void)
{
	if (!canary.on)
		return;
	sample_after_fork();
	guard_check_init();
	damage_forget();
	settings_record();
}

void canary_orphaned(void)
{
	canary.on = blocks_state.guards = history_state.turns_told = false;
}

void canary_switch_on(void)
{
	agent_switch.lines |= canary.on;
}

/* Does it lie elsewhere? */
static inline bool annexed(const void *ptr)
{
	return unlikely(canary.annexed) && canary_annex.holds(ptr);
}

/* The code of a front this long; 0: it cannot have one. */
static uint32_t front_code(uint64_t front)
{
	if (front > CANARY_FRONT_MAX || front & (front - 1))
		return 0;
	return (uint32_t)__builtin_ctzll(front / CANARY_FRONT) + 1;
}

/* Some allocators align a small block less than the guards make it. */
static void *libc_allocate(size_t align, size_t size, unsigned flags)
{
	if (flags & CANARY_ZEROED)
		return real.calloc(1, size);
	return align > (flags & CANARY_PASSED ? 0 : CANARY_FRONT) ? real.memalign(align, size)
								  : real.malloc(size);
}

/* Memory is short: what is in quarantine may be what is missing. */
static __attribute__((noinline)) void *allocate_again(size_t align, size_t size, unsigned flags)
{
	struct quarantine_leaves leaves;
	struct guard guard;
	void *base;

	do {
		leaves.count = 0;
		if (!guard_enter(&guard))
			return NULL;
		quarantine_shrink(&guard, &leaves);
		guard_leave(&guard);
		quarantine_give_back(&leaves);
		base = libc_allocate(align, size, flags);
	} while (!base && leaves.count);
	return base;
}

/* What a new block holds, by chance: garbage in some of its words, if its context is to have any.
 * Whoever uses it before he writes it is found so. */
static void fresh_fill(uint64_t start, uint64_t size)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);
	uint32_t row = block ? block->context & BLOCK_CONTEXT_MASK : 0,
		 ppm = canary.plan.poison_ppm;
	/* Who tests a single bit finds it set in three of four trials. */
	unsigned char garbage = (unsigned char)(0x81 | canary.seed >> 8 | canary.seed >> 16);
	uint64_t hash, at, whole = CANARY_FRESH_WORDS * 8;

	if (!row || row >= agent.plan.context_rows)
		return;
	hash = log_map.contexts[row].stack_hash;
	/* So that the tool knows whose coin counted, and of how many words; a lost increment does
	 * not matter. */
	log_map.contexts[row].allocs++;
	if (log_map.contexts[row].alloc_bytes < size)
		log_map.contexts[row].alloc_bytes = size;
	memset((void *)start, 0, size);
	if (!canary_chance(canary.seed, hash, ppm))
		return;
	for (at = 0; at < size && at < whole; at += 8)
		if (canary_chance(canary.seed, canary_word_hash(hash, at / 8), ppm))
			memset((void *)(start + at), garbage, size - at < 8 ? size - at : 8);
	for (at = whole; at < size; at += whole)
		memcpy((void *)(start + at), (void *)start, size - at < whole ? size - at : whole);
}

/* Does a block get guards? */
static inline bool takes_guards(uint64_t front, size_t size, unsigned flags, struct caller caller)
{
	return size < CANARY_SIZE_MAX && front_code(front) && !canary.tight &&
	       (flags & CANARY_TAKEN || sample_takes(caller));
}

void *canary_allocate(size_t align, size_t size, unsigned flags, enum log_api api,
		      struct caller caller)
{
	uint64_t front = align > CANARY_FRONT ? align : CANARY_FRONT;
	void *base = canary.annexed ? canary_annex.allocate(align, size, api, caller) : NULL;

	if (!base) {
		bool guarded = takes_guards(front, size, flags, caller);
		size_t room = guarded ? canary_room(front, size) + canary.gap : size;

		flags |= guarded ? 0 : CANARY_PASSED;
		base = libc_allocate(align, room, flags);
		if (unlikely(!base))
			base = allocate_again(align, room, flags);
		if (!base)
			return NULL;
		base = canary_take(base, guarded ? front : 0, size, api, caller);
	}
	if (unlikely(canary.fresh) && !(flags & CANARY_ZEROED))
		fresh_fill((uint64_t)base, size);
	return base;
}

void *canary_take(void *base, uint64_t front, size_t size, enum log_api api, struct caller caller)
{
	uint32_t code = front ? front_code(front) : 0;
	struct guard guard;
	uint64_t start;

	if (unlikely(!guard_enter(&guard)))
		return base; /* unknown to us, and a sound block as it is */
	if (unlikely((uint64_t)base % CANARY_FRONT))
		code = 0; /* an allocator that aligns less */
	start = (uint64_t)base + (code ? front : 0);
	if (likely(code))
		canary_write(start, front, size);
	if (unlikely(!block_begin_guarded(&guard, BLOCKS_HEAP, start, size,
					  (enum log_api)(api | code << BLOCK_FRONT_SHIFT), caller)))
		start = (uint64_t)base;
	guard_leave(&guard);
	return (void *)start;
}

/* A block with guards is over: into quarantine. */
static void block_over(struct guard *guard, struct block *block, uint64_t start,
		       struct caller caller, enum log_check check, struct quarantine_leaves *ret)
{
	if (unlikely(!canary_whole(start, canary_front(block), block_size(block))))
		(void)damage_look_sigsafe(block, start, check, context_find(guard, caller), 0);
	block_end_known(guard, block, start, caller);
	if (unlikely(canary.plan.sweep))
		sweep_free(guard, block, start, caller);
	quarantine_add(guard, block, start, ret);
}

/* new with delete, new[] with delete[], everything else with free. Only where operator new and
 * delete are the C++ library's and reached through our hooks: one that the program brings itself
 * may do as it likes. */
bool canary_mismatched(const struct block *block, enum log_free_by by)
{
	enum log_api api = block->api & BLOCK_API_MASK;

	if (!real.plain_new || !real.hooked_new)
		return false;
	if (by == LOG_BY_DELETE)
		return api != LOG_API_NEW;
	if (by == LOG_BY_DELETE_ARRAY)
		return api != LOG_API_NEW_ARRAY;
	return api == LOG_API_NEW || api == LOG_API_NEW_ARRAY;
}

static void tell_bad_free(struct guard *guard, const struct block *block, uint64_t start,
			  enum log_bad_free_kind kind, enum log_free_by by, struct caller caller)
{
	struct log_bad_free bad = { .kind = kind, .by = by };
	struct block_view view = { .block = *block, .start = start, .relation = LOG_INSIDE };

	if (kind == LOG_DOUBLE_FREE)
		bad.evidence = LOG_EVIDENCE_QUARANTINE;
	view.size = block_size(block);
	badfree_record(guard, start, &view, &bad, caller);
}

/* Freed twice: nobody can have been given this memory meanwhile. libc gets both frees, one after
 * the other, and decides what becomes of it, as it would have without us. */
static void freed_twice(struct guard *guard, struct block *block, uint64_t start,
			enum log_free_by by, struct caller caller)
{
	void *base = (void *)(start - canary_front(block)), *mine;

	tell_bad_free(guard, block, start, LOG_DOUBLE_FREE, by, caller);
	mine = quarantine_release_sigsafe(block, start);
	guard_leave(guard);
	if (mine)
		real.free(base);
	real.free(base);
}

void canary_free(void *ptr, enum log_free_by by, struct caller caller)
{
	struct quarantine_leaves leaves;
	uint64_t start = (uint64_t)ptr;
	struct guard guard;
	struct block *block;

	if (annexed(ptr)) {
		canary_annex.free(ptr, by, caller);
		return;
	}
	if (unlikely(!guard_enter(&guard))) {
		canary_free_blindly(ptr);
		return;
	}
	block = block_at_sigsafe(BLOCKS_HEAP, start);
	if (block && block->state == LOG_BLOCK_FREED && canary_front(block)) {
		freed_twice(&guard, block, start, by, caller);
		return;
	}
	if (block && block->state == LOG_BLOCK_LIVE && unlikely(canary_mismatched(block, by)))
		tell_bad_free(&guard, block, start, LOG_MISMATCHED_FREE, by, caller);
	if (!block || block->state != LOG_BLOCK_LIVE || !canary_front(block)) {
		block_end_guarded(&guard, BLOCKS_HEAP, start, caller);
		guard_leave(&guard);
		real.free(ptr);
		return;
	}
	leaves.count = 0;
	block_over(&guard, block, start, caller, LOG_CHECK_FREE, &leaves);
	guard_leave(&guard);
	quarantine_give_back(&leaves);
}

/* The old block stays as it is until the new one is there. */
static void *resize_by_copy(void *ptr, uint64_t old, size_t size, struct caller caller)
{
	struct quarantine_leaves leaves = { .count = 0 };
	uint64_t start = (uint64_t)ptr;
	struct guard guard;
	struct block *block;
	void *moved;

	moved = canary_allocate(CANARY_FRONT, size, 0, LOG_API_MALLOC, caller);
	if (!moved)
		return NULL;
	memcpy(moved, ptr, old < size ? old : size);
	if (!guard_enter(&guard)) {
		canary_free_blindly(ptr);
		return moved;
	}
	block = block_at_sigsafe(BLOCKS_HEAP, start);
	if (block && block->state == LOG_BLOCK_LIVE && canary_front(block))
		block_over(&guard, block, start, caller, LOG_CHECK_REALLOC, &leaves);
	guard_leave(&guard);
	quarantine_give_back(&leaves);
	return moved;
}

/* libc moves it or extends it. The old block is suspended meanwhile, as in hooks_alloc.c. */
static void *resize_by_libc(struct guard *guard, struct block *block, uint64_t start, size_t size,
			    struct caller caller)
{
	uint64_t front = canary_front(block), moved;
	struct block was;
	char *base;

	(void)block_suspend(guard, start, caller);
	was = *block;
	/* Whoever gets the old place must not find our mark on it. */
	block->api &= BLOCK_API_MASK;
	guard_leave(guard);
	base = real.realloc((void *)(start - front), canary_room(front, size) + canary.gap);
	if (!guard_enter(guard)) { /* the agent has retired meanwhile: no guards any more */
		if (base)
			memmove(base, base + front, size);
		return base;
	}
	if (!base) {
		block->api = was.api;
		block->free_context = 0;
		block->state = LOG_BLOCK_LIVE;
		guard_leave(guard);
		return NULL;
	}
	moved = (uint64_t)base + front;
	canary_write(moved, front, size);
	if (moved == start) {
		block->api = was.api;
		block_resume(guard, block, start, size);
	} else {
		block_moved(guard, &was, start, caller);
		sample_kept(guard->self);
		if (!block_begin_guarded(guard, BLOCKS_HEAP, moved, size, (enum log_api)was.api,
					 caller)) {
			memmove(base, (void *)moved, size);
			moved = (uint64_t)base;
		}
	}
	guard_leave(guard);
	return (void *)moved;
}

static void resize_in_place(struct guard *guard, struct block *block, uint64_t start, size_t size,
			    struct caller caller)
{
	(void)block_suspend(guard, start, caller);
	canary_close(start, canary_front(block), size);
	block_resume(guard, block, start, size);
}

/* A freed block, from quarantine: libc is to say what it thinks of it. */
static void *realloc_freed(struct guard *guard, struct block *block, uint64_t start, size_t size,
			   struct caller caller)
{
	void *base = (void *)(start - canary_front(block)), *mine;

	tell_bad_free(guard, block, start, LOG_DOUBLE_FREE, LOG_BY_REALLOC, caller);
	mine = quarantine_release_sigsafe(block, start);
	guard_leave(guard);
	if (mine)
		real.free(base);
	return real.realloc(base, size);
}

/* Of a block that is found whole, or whose damage has been told. */
static void *resize(struct guard *guard, struct block *block, void *ptr, size_t size,
		    struct caller caller)
{
	uint64_t start = (uint64_t)ptr, front = canary_front(block), old = block_size(block);

	if (!size) { /* as glibc does it */
		guard_leave(guard);
		canary_free(ptr, LOG_BY_FREE, caller);
		return NULL;
	}
	if (size < CANARY_SIZE_MAX && canary_room(front, size) == canary_room(front, old)) {
		resize_in_place(guard, block, start, size, caller);
		guard_leave(guard);
		return ptr;
	}
	if (old > MOVE_MAX && size > MOVE_MAX && size < CANARY_SIZE_MAX)
		return resize_by_libc(guard, block, start, size, caller);
	guard_leave(guard);
	return resize_by_copy(ptr, old, size, caller);
}

void *canary_realloc(void *ptr, size_t size, struct caller caller)
{
	uint64_t start = (uint64_t)ptr, front;
	struct guard guard;
	struct block *block;

	if (annexed(ptr))
		return canary_annex.realloc(ptr, size, caller);
	if (unlikely(!guard_enter(&guard)))
		return canary_realloc_blindly(ptr, size);
	block = block_at_sigsafe(BLOCKS_HEAP, start);
	front = block ? canary_front(block) : 0;
	if (block && front && block->state == LOG_BLOCK_FREED)
		return realloc_freed(&guard, block, start, size, caller);
	if (!block || !front || block->state != LOG_BLOCK_LIVE) {
		guard_leave(&guard); /* canary_holds() said otherwise: a race of the target's own */
		return real.realloc(ptr, size);
	}
	if (unlikely(canary_mismatched(block, LOG_BY_REALLOC)))
		tell_bad_free(&guard, block, start, LOG_MISMATCHED_FREE, LOG_BY_REALLOC, caller);
	if (unlikely(!canary_whole(start, front, block_size(block))))
		(void)damage_look_sigsafe(block, start, LOG_CHECK_REALLOC,
					  context_find(&guard, caller), 0);
	return resize(&guard, block, ptr, size, caller);
}

bool canary_could_hold(const void *ptr)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);

	return block && block->state == LOG_BLOCK_LIVE;
}

void *canary_take_in(void *ptr, size_t size, unsigned flags, enum log_api api, struct caller caller)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);
	uint64_t old = block ? block_size(block) : 0;
	void *moved = canary_allocate(0, size, flags, api, caller);

	if (!moved)
		return NULL;
	memcpy(moved, ptr, old < size ? old : size);
	canary_free(ptr, LOG_BY_REALLOC, caller);
	return moved;
}

bool canary_holds(const void *ptr)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);

	return annexed(ptr) || (block && canary_front(block));
}

size_t canary_usable(void *ptr)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);

	if (annexed(ptr))
		return canary_annex.usable(ptr);
	if (block && canary_front(block))
		return block_size(block);
	return real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
}

void canary_free_blindly(void *ptr)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);
	void *base;

	if (annexed(ptr)) {
		canary_annex.leave(ptr);
		return;
	}
	if (!block || !canary_front(block)) {
		real.free(ptr);
		return;
	}
	block->state = LOG_BLOCK_FREED;
	base = quarantine_release_sigsafe(block, (uint64_t)ptr);
	if (base)
		real.free(base);
}

void *canary_realloc_blindly(void *ptr, size_t size)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, (uint64_t)ptr);
	uint64_t old;
	void *moved;

	if (!annexed(ptr) && (!block || !canary_front(block)))
		return real.realloc(ptr, size);
	old = canary_usable(ptr);
	moved = size ? real.malloc(size) : NULL;
	if (moved)
		memcpy(moved, ptr, old < size ? old : size);
	if (moved || !size)
		canary_free_blindly(ptr);
	return moved;
}
