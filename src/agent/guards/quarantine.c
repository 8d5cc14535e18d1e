#include "agent/guards/quarantine.h"

#include <stddef.h>

#include "agent/core/clock.h"
#include "agent/core/invariant.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/guards/canary.h"
#include "agent/guards/damage.h"
#include "agent/guards/poison.h"
#include "agent/ids/blocks.h"

#define ENTRIES_MAX (1u << 20)
#define ENTRIES_MIN (1u << 10)
#define BLOCK_BYTES 64u	 /* expected of a block, when the ring's length is chosen */
#define LARGEST_SHARE 8u /* a block of more than that part of the quarantine goes straight back */
#define LINE 64u
#define AHEAD 16u
#define SIZE_UNITS_MAX 0xffffu
#define FETCHED_MOST 1024u /* of a block; the CPU sees by itself how it goes on */
/* What is overwritten is read again, cold, when the block leaves. A core does some gigabytes of
 * both in a second: a few percent of its time. */
#define WHOLE_PER_SECOND (128ull << 20) /* bytes of a lane that are overwritten whole */

struct quarantine {
	uint64_t head, tail; /* entries ever added and removed; only the lane's thread writes */
	uint64_t bytes;	     /* of libc's memory */
	uint64_t whole_left, whole_from_ns; /* of WHOLE_PER_SECOND, and since when */
	uint32_t mask;
	struct quarantined entries[];
};

static uint32_t rings;	 /* atomic: lanes that have one */
static uint64_t share;	 /* of each, in bytes; a division per free would be felt */
static uint64_t largest; /* that is taken in */
static struct quarantine *by_lane[PLAN_THREAD_SLOTS]; /* for those who look at all */

#if AGENT_CHECKS
static const char *quarantine_invariant_sigsafe(const struct quarantine *ring)
{
	if (ring->mask & (ring->mask + 1) || ring->mask >= ENTRIES_MAX)
		return "quarantine: a ring of no possible length";
	if (ring->tail > ring->head || ring->head - ring->tail > ring->mask + 1ull)
		return "quarantine: more has left than came in, or more is in than fits";
	return NULL;
}
#endif

static void share_out(void)
{
	if (canary.tight) {
		share = largest = 0;
		return;
	}
	share = ((uint64_t)canary.plan.quarantine_mib << 20) / (rings ? rings : 1);
	largest = share / LARGEST_SHARE;
}

static struct quarantine *ring_open(struct thread *self)
{
	uint32_t entries = ENTRIES_MAX;
	struct quarantine *ring;
	uint64_t wanted;

	__atomic_fetch_add(&rings, 1, __ATOMIC_RELAXED);
	share_out();
	wanted = share / BLOCK_BYTES;
	while (entries > ENTRIES_MIN && entries / 2 >= wanted)
		entries /= 2;
	ring = memory_map_sigsafe(sizeof(*ring) + entries * sizeof(ring->entries[0]));
	if (!ring) {
		__atomic_fetch_sub(&rings, 1, __ATOMIC_RELAXED);
		share_out();
		return NULL;
	}
	ring->mask = entries - 1;
	self->quarantine = ring;
	if (self->lane < PLAN_THREAD_SLOTS)
		__atomic_store_n(&by_lane[self->lane], ring, __ATOMIC_RELEASE);
	return ring;
}

void *quarantine_release_sigsafe(struct block *block, uint64_t start)
{
	uint32_t front = canary_front(block);
	uint8_t api = block->api & BLOCK_API_MASK;

	if (!(__atomic_exchange_n(&block->api, api, __ATOMIC_ACQ_REL) & ~BLOCK_API_MASK))
		return NULL;
	return (void *)(start - front);
}

struct block *quarantined_block_sigsafe(const struct quarantined *entry)
{
	struct block *block = &blocks_state.pool[entry->entry];

	return (uint32_t)block->id == entry->id_low && block->state == LOG_BLOCK_FREED &&
			       canary_front(block)
		       ? block
		       : NULL;
}

static uint64_t block_room(const struct block *block)
{
	return canary_room(canary_front(block), block_size(block)) + 8;
}

/* What is in quarantine is cold: all of a block that will be compared is fetched long before it is
 * looked at, its entry, and the place in the index that the next owner of its memory will need. The
 * ring's own entries come one after the other, which the CPU sees by itself. */
static inline void fetch_ahead(const struct quarantine *ring, uint64_t position)
{
	const struct quarantined *entry = &ring->entries[(position + AHEAD) & ring->mask];
	const struct blocks_space *space = &blocks_state.spaces[BLOCKS_HEAP];
	uint64_t start = quarantined_start(entry);
	uint64_t size = (entry->start >> QUARANTINED_SIZE_SHIFT) * 16, head, tail, at;

	__builtin_prefetch(&blocks_state.pool[entry->entry]);
	if (space->flat)
		__builtin_prefetch(&space->flat[start >> space->shift]);
	poison_parts(start, size, size <= FETCHED_MOST, &head, &tail);
	for (at = start - CANARY_FRONT; at < head; at += LINE)
		__builtin_prefetch((const void *)at);
	for (at = tail; at < start + size; at += LINE)
		__builtin_prefetch((const void *)at);
	__builtin_prefetch((const void *)(start + size + CANARY_BEHIND));
}

static inline bool is_whole(const struct quarantined *entry, const struct block *block,
			    uint64_t start)
{
	uint64_t size = block_size(block), guard = canary_word(canary.seed, start, CANARY_GUARD);

	return canary_is(start, canary_front(block), size, guard) &&
	       (!(entry->start & QUARANTINED_OVERWRITTEN) ||
		poison_is(start, size, !(entry->start & QUARANTINED_ENDS),
			  canary_poison_of(guard)));
}

/* As quarantine_release_sigsafe(), inside the guard: a process with one thread has nobody to race
 * with. */
static inline void *release(struct block *block, uint64_t start)
{
	uint32_t front = canary_front(block);

	if (log_map.header->threads_seen != 1)
		return quarantine_release_sigsafe(block, start);
	block->api &= BLOCK_API_MASK;
	return (void *)(start - front);
}

static void leave_one(struct quarantine *ring, struct quarantine_leaves *ret)
{
	const struct quarantined *entry = &ring->entries[ring->tail & ring->mask];
	uint64_t start = quarantined_start(entry), room;
	struct block *block = quarantined_block_sigsafe(entry);
	void *base;

	INVARIANT(quarantine_invariant_sigsafe(ring));
	fetch_ahead(ring, ring->tail);
	__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
	if (!block)
		return;
	if (unlikely(!is_whole(entry, block, start)))
		(void)damage_look_sigsafe(block, start, LOG_CHECK_EVICTION, 0,
					  quarantined_flags(entry));
	room = block_room(block);
	base = release(block, start);
	if (!base)
		return;
	ring->bytes -= room < ring->bytes ? room : ring->bytes;
	ret->bases[ret->count++] = base;
}

/* Does the plan have freed blocks of this context overwritten? */
static bool is_overwritten(const struct block *block)
{
	uint32_t row = block->context & BLOCK_CONTEXT_MASK;

	if (canary.plan.poison_ppm >= 1000000)
		return true;
	if (!canary.plan.poison_ppm || canary.fresh || block->id < log_map.id_base ||
	    row >= agent.plan.context_rows)
		return false;
	/* So that the tool knows whose coin counted; a lost increment does not matter. */
	log_map.contexts[row].frees_own++;
	return canary_chance(canary.seed, log_map.contexts[row].stack_hash, canary.plan.poison_ppm);
}

/* As the ring keeps it. */
static inline uint64_t size_units(uint64_t size)
{
	uint64_t units = (size + 15) / 16;

	return units < SIZE_UNITS_MAX ? units : SIZE_UNITS_MAX;
}

/* Is there time to overwrite all of it? With poison by chance it must be, since whoever reads it
 * anywhere is to be found. */
static __attribute__((noinline)) bool affords_whole_slow(struct quarantine *ring, uint64_t size)
{
	uint64_t now = clock_ns_sigsafe(CLOCK_MONOTONIC_COARSE);

	if (now - ring->whole_from_ns >= 1000000000u) {
		ring->whole_from_ns = now;
		ring->whole_left = WHOLE_PER_SECOND;
	}
	if (ring->whole_left < size)
		return canary.plan.poison_ppm < 1000000;
	ring->whole_left -= size;
	return true;
}

static inline bool affords_whole(struct quarantine *ring, uint64_t size)
{
	if (likely(size <= 2 * POISON_END))
		return true;
	if (unlikely(ring->whole_left < size))
		return affords_whole_slow(ring, size);
	ring->whole_left -= size;
	return true;
}

/* Into the ring, and others out of it. marks: QUARANTINED_… */
static inline void add(struct quarantine *ring, const struct block *block, uint64_t start,
		       unsigned marks, struct quarantine_leaves *ret)
{
	if (unlikely(ring->head - ring->tail > ring->mask))
		leave_one(ring, ret);
	ring->entries[ring->head & ring->mask] = (struct quarantined){
		start | marks | size_units(block_size(block)) << QUARANTINED_SIZE_SHIFT,
		(uint32_t)(block - blocks_state.pool), (uint32_t)block->id
	};
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	ring->bytes += block_room(block);
	while (ring->bytes > share && ring->tail < ring->head && ret->count < QUARANTINE_LEAVES_MAX)
		leave_one(ring, ret);
}

void quarantine_add(struct guard *guard, struct block *block, uint64_t start,
		    struct quarantine_leaves *ret)
{
	struct quarantine *ring = guard->self->quarantine;
	bool kept, all;
	unsigned marks = 0;

	if (!ring && canary.plan.quarantine_mib)
		ring = ring_open(guard->self);
	if (ring && unlikely(canary.tight))
		while (ring->tail < ring->head && ret->count < QUARANTINE_LEAVES_MAX - 1)
			leave_one(ring, ret);
	kept = ring && block_room(block) <= largest;
	if (is_overwritten(block)) {
		all = kept ? affords_whole(ring, block_size(block))
			   : canary.plan.poison_ppm < 1000000;
		marks = QUARANTINED_OVERWRITTEN | (all ? 0 : QUARANTINED_ENDS);
		poison_write(start, block_size(block), all,
			     canary_word(canary.seed, start, CANARY_POISON));
	}
	if (!kept) {
		ret->bases[ret->count] = quarantine_release_sigsafe(block, start);
		ret->count += ret->bases[ret->count] != NULL;
		return;
	}
	add(ring, block, start, marks, ret);
	INVARIANT(quarantine_invariant_sigsafe(ring));
}

/* As block_write_end(); what the front adds to the entry stays out of the record. */
static inline void write_end(const struct thread *self, uint64_t *entry, uint64_t life,
			     uint64_t start, uint64_t context)
{
	const uint64_t front = (uint64_t)(0xffu & ~BLOCK_API_MASK) << 40;
	uint64_t id = entry[0], size_context = entry[1];
	uint64_t freed = entry[2] | context, state = entry[3] + self->fast.freed_word;

	entry[2] = freed;
	entry[3] = state;
	state &= ~front;
	ring_write(life, id, size_context, freed, state, start);
}

bool quarantine_free(void *ptr, enum log_api api, uint64_t return_address, uint64_t frame)
{
	const struct caller caller = { return_address, frame, 0 };
	struct guard guard = { thread_hot };
	struct quarantine *ring = guard.self->quarantine;
	struct quarantine_leaves leaves;
	uint64_t start = (uint64_t)ptr, context, life, word;
	struct block *block;
	bool all;

	if (unlikely(!ring || guard.self->fast.busy || canary.plan.sweep ||
		     canary.plan.poison_ppm < 1000000 ||
		     !block_region(guard.self, BLOCKS_HEAP, start) ||
		     !context_hit(guard.self, caller, &context)))
		return false;
	block = &blocks_state.pool[block_number(BLOCKS_HEAP, blocks_state.spaces[BLOCKS_HEAP].shift,
						start)];
	word = canary_word(canary.seed, start, CANARY_GUARD);
	if (unlikely(block->state != LOG_BLOCK_LIVE || block->low != (uint8_t)start ||
		     block->api != (api | 1u << BLOCK_FRONT_SHIFT) ||
		     block->size_low > largest / 2 ||
		     !canary_is(start, CANARY_FRONT, block->size_low, word)))
		return false;
	life = arch_take(&guard.self->fast.ring_next, sizeof(struct log_life));
	if (unlikely(life >= guard.self->fast.ring_stop))
		return false;
	guard_close(guard.self);
	write_end(guard.self, (uint64_t *)block, life, start, context);
	all = affords_whole(ring, block->size_low);
	poison_write(start, block->size_low, all, canary_poison_of(word));
	leaves.count = 0;
	add(ring, block, start, QUARANTINED_OVERWRITTEN | (all ? 0 : QUARANTINED_ENDS), &leaves);
	guard_leave(&guard);
	quarantine_give_back(&leaves);
	return true;
}

void quarantine_shrink(struct guard *guard, struct quarantine_leaves *ret)
{
	struct quarantine *ring = guard->self->quarantine;

	while (ring && ring->tail < ring->head && ret->count < QUARANTINE_LEAVES_MAX)
		leave_one(ring, ret);
}

void quarantine_close(void)
{
	share_out();
}

void quarantine_give_back(const struct quarantine_leaves *leaves)
{
	uint32_t i;

	for (i = 0; i < leaves->count; i++)
		real.free(leaves->bases[i]);
}

void quarantine_walk_sigsafe(bool (*visit)(void *ctx, const struct quarantined *entry), void *ctx)
{
	uint32_t lane;

	for (lane = 0; lane < PLAN_THREAD_SLOTS; lane++) {
		struct quarantine *ring = __atomic_load_n(&by_lane[lane], __ATOMIC_ACQUIRE);
		uint64_t at, head;

		if (!ring)
			continue;
		at = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		for (; at < head; at++) {
			struct quarantined entry = ring->entries[at & ring->mask];

			fetch_ahead(ring, at);
			if (at < __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE))
				continue; /* its place has been taken again, or may be */
			if (!visit(ctx, &entry))
				return;
		}
	}
}
