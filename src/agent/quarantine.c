#include "agent/quarantine.h"

#include <stddef.h>

#include "agent/blocks.h"
#include "agent/canary.h"
#include "agent/damage.h"
#include "agent/log.h"
#include "agent/memory.h"
#include "agent/real.h"

#define ENTRIES_MAX (1u << 20)
#define ENTRIES_MIN (1u << 10)
#define BLOCK_BYTES 64u	 /* expected of a block, when the ring's length is chosen */
#define LARGEST_SHARE 8u /* a block of more than that part of the quarantine goes straight back */
#define LINE 64u
#define AHEAD 16u
#define FAR_AHEAD 48u
#define OVERWRITTEN 1u

struct quarantine {
	uint64_t head, tail; /* entries ever added and removed; only the lane's thread writes */
	uint64_t bytes;	     /* of libc's memory */
	uint32_t mask;
	struct quarantined entries[];
};

static uint32_t rings; /* atomic: lanes that have one */
static uint64_t share; /* of each, in bytes; a division per free would be felt */
static struct quarantine *by_lane[PLAN_THREAD_SLOTS]; /* for those who look at all */

static void share_out(void)
{
	share = ((uint64_t)canary.plan.quarantine_mib << 20) / (rings ? rings : 1);
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

static void fill(uint64_t *word, const uint64_t *end, uint64_t value)
{
	for (; word < end; word++)
		*word = value;
}

void poison_write(uint64_t start, uint64_t size)
{
	uint64_t poison = canary_word(canary.seed, start, CANARY_POISON), head, tail;
	uint64_t mask = canary_tail_mask(size), *last = (uint64_t *)(start + (size & ~7ull));

	poison_parts(start, size, &head, &tail);
	fill((uint64_t *)start, (const uint64_t *)(head & ~7ull), poison);
	if (tail < start + size)
		fill((uint64_t *)tail, last, poison);
	*last = (*last & ~mask) | (poison & mask);
}

static uint64_t differs(const uint64_t *word, const uint64_t *end, uint64_t value)
{
	uint64_t wrong = 0;

	for (; word < end; word++)
		wrong |= *word ^ value;
	return wrong;
}

bool poison_whole(uint64_t start, uint64_t size)
{
	uint64_t poison = canary_word(canary.seed, start, CANARY_POISON), head, tail;
	const uint64_t *last = (const uint64_t *)(start + (size & ~7ull));
	uint64_t wrong = (*last ^ poison) & canary_tail_mask(size);

	poison_parts(start, size, &head, &tail);
	wrong |= differs((const uint64_t *)start, (const uint64_t *)(head & ~7ull), poison);
	if (tail < start + size)
		wrong |= differs((const uint64_t *)tail, last, poison);
	return !wrong;
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

/* What is in quarantine is cold: an entry of the table is fetched long before it is looked at, and
 * then all bytes of the block that will be compared. */
static inline void fetch_ahead(const struct quarantine *ring, uint64_t position)
{
	const struct quarantined *entry = &ring->entries[(position + FAR_AHEAD) & ring->mask];
	uint64_t start, size, head, tail, at;

	__builtin_prefetch(&blocks_state.pool[entry->entry]);
	__builtin_prefetch((const void *)(entry->start - CANARY_FRONT));
	entry = &ring->entries[(position + AHEAD) & ring->mask];
	start = quarantined_start(entry);
	size = blocks_state.pool[entry->entry].size_low;
	poison_parts(start, size, &head, &tail);
	for (at = start + LINE; at < head; at += LINE)
		__builtin_prefetch((const void *)at);
	for (at = tail; at < start + size; at += LINE)
		__builtin_prefetch((const void *)at);
	__builtin_prefetch((const void *)(start + size));
}

static inline bool is_whole(const struct quarantined *entry, const struct block *block,
			    uint64_t start)
{
	uint64_t size = block_size(block);

	return canary_whole(start, canary_front(block), size) &&
	       (!quarantined_is_overwritten(entry) || poison_whole(start, size));
}

static void leave_one(struct quarantine *ring, struct quarantine_leaves *ret)
{
	const struct quarantined *entry = &ring->entries[ring->tail & ring->mask];
	uint64_t start = quarantined_start(entry), room;
	struct block *block = quarantined_block_sigsafe(entry);
	void *base;

	fetch_ahead(ring, ring->tail);
	__atomic_store_n(&ring->tail, ring->tail + 1, __ATOMIC_RELEASE);
	if (!block)
		return;
	if (unlikely(!is_whole(entry, block, start)))
		(void)damage_look_sigsafe(block, start, LOG_CHECK_EVICTION, 0,
					  quarantined_is_overwritten(entry) ? DAMAGE_POISONED : 0);
	room = block_room(block);
	base = quarantine_release_sigsafe(block, start);
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
	if (!canary.plan.poison_ppm || block->id < log_map.id_base ||
	    row >= agent.plan.context_rows)
		return false;
	/* So that the tool knows whose coin counted; a lost increment does not matter. */
	log_map.contexts[row].frees_own++;
	return canary_chance(canary.seed, log_map.contexts[row].stack_hash, canary.plan.poison_ppm);
}

void quarantine_add(struct guard *guard, struct block *block, uint64_t start,
		    struct quarantine_leaves *ret)
{
	struct quarantine *ring = guard->self->quarantine;
	uint64_t room = block_room(block);
	bool overwritten = is_overwritten(block);

	if (overwritten)
		poison_write(start, block_size(block));
	if (!ring && canary.plan.quarantine_mib)
		ring = ring_open(guard->self);
	if (!ring || room > share / LARGEST_SHARE) {
		ret->bases[ret->count] = quarantine_release_sigsafe(block, start);
		ret->count += ret->bases[ret->count] != NULL;
		return;
	}
	if (ring->head - ring->tail > ring->mask)
		leave_one(ring, ret);
	ring->entries[ring->head & ring->mask] =
		(struct quarantined){ start | (overwritten ? OVERWRITTEN : 0),
				      (uint32_t)(block - blocks_state.pool), (uint32_t)block->id };
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	ring->bytes += room;
	while (ring->bytes > share && ring->tail < ring->head && ret->count < QUARANTINE_LEAVES_MAX)
		leave_one(ring, ret);
}

void quarantine_shrink(struct guard *guard, struct quarantine_leaves *ret)
{
	struct quarantine *ring = guard->self->quarantine;

	while (ring && ring->tail < ring->head && ret->count < QUARANTINE_LEAVES_MAX)
		leave_one(ring, ret);
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
