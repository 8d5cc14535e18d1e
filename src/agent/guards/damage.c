#include "agent/guards/damage.h"

#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/secret.h"
#include "agent/guards/canary.h"
#include "agent/guards/poison.h"
#include "agent/ids/blocks.h"

#define TOLD_BITS 10u
#define TOLD_MAX (1u << TOLD_BITS)
#define PLACES 256u
#define PER_PLACE 8u
#define ALL_MAX 512u

static struct {
	uint64_t told[TOLD_MAX]; /* id and kind, by hash: the last one of each; atomic */
	uint8_t by_place[PLACES];
	uint32_t count; /* atomic: records written */
	uint64_t seen;	/* atomic */
} damage;

struct damage_stamps damage_stamps;

void damage_stamp_sigsafe(struct log_heap_damage *ret, bool freed)
{
	const struct damage_stamp *good =
		freed ? &damage_stamps.freed_good : &damage_stamps.live_good;

	ret->checkpoint = damage_stamps.checkpoint;
	ret->good_checkpoint = good->checkpoint;
	ret->good_ns = good->ns;
}

/* A range that holds poison, which is one word over and over, or a guard. */
struct damage_stretch {
	enum log_damage_kind kind;
	uint64_t low, high;
	uint64_t word;
};

static uint8_t byte_expected(const struct damage_stretch *s, uint64_t at)
{
	uint64_t word = s->kind == LOG_DAMAGE_FREED ? s->word : canary_guard_at(s->word, at);

	return (uint8_t)(word >> (at % 8 * 8));
}

static bool byte_differs(const struct damage_stretch *s, uint64_t at)
{
	return *(const uint8_t *)at != byte_expected(s, at);
}

static bool told_before(const struct block *block, enum log_damage_kind kind)
{
	uint64_t mark = block->id << 2 | kind;
	uint64_t *at = &damage.told[(mark * 0x9e3779b97f4a7c15ull) >> (64 - TOLD_BITS)];

	return __atomic_exchange_n(at, mark, __ATOMIC_RELAXED) == mark;
}

static bool too_many(const struct block *block, enum log_damage_kind kind)
{
	uint8_t *place =
		&damage.by_place[((block->context & BLOCK_CONTEXT_MASK) * 4 + kind) % PLACES];

	if (*place >= PER_PLACE)
		return true;
	++*place;
	return __atomic_fetch_add(&damage.count, 1, __ATOMIC_RELAXED) >= ALL_MAX;
}

static void tell(const struct block *block, uint64_t start, const struct log_heap_damage *record)
{
	struct log_block hit = { .via = LOG_VIA_DAMAGE };
	struct block_view view = { .block = *block, .start = start, .relation = LOG_INSIDE };
	struct log_writer writer;

	view.size = block_size(block);
	hit.where = hit.value = start + (uint64_t)record->offset;
	block_describe_sigsafe(&view, &hit);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_HEAP_DAMAGE, record, sizeof(*record));
	(void)log_append_sigsafe(&writer, LOG_BLOCK, &hit, sizeof(hit), NULL, 0);
}

/* The first and the last wrong byte; false: all are right. */
static bool stretch_look(const struct damage_stretch *s, uint64_t start,
			 struct log_heap_damage *ret)
{
	uint64_t first = s->low, last = s->high, i;

	while (first < s->high && !byte_differs(s, first))
		first++;
	if (first >= s->high)
		return false;
	while (!byte_differs(s, last - 1))
		last--;
	ret->kind = s->kind;
	ret->offset = (int64_t)(first - start);
	ret->length = last - first;
	ret->bytes =
		s->high - first < LOG_DAMAGE_BYTES ? (uint32_t)(s->high - first) : LOG_DAMAGE_BYTES;
	for (i = 0; i < ret->bytes; i++) {
		ret->expected[i] = byte_expected(s, first + i);
		ret->found[i] = *(const uint8_t *)(first + i);
	}
	secret_hide_sigsafe(ret->found, ret->bytes, first);
	return true;
}

/* Is it still the block that we looked at? */
static bool same_block(const struct block *now, const struct block *then)
{
	return now->id == then->id && now->state == then->state && now->api == then->api &&
	       block_size(now) == block_size(then);
}

static bool looks_whole(const struct block *block, uint64_t start, unsigned flags)
{
	uint64_t size = block_size(block);

	return canary_whole(start, canary_front(block), size) &&
	       (!(flags & DAMAGE_POISONED) || poison_whole(start, size, !(flags & DAMAGE_ENDS)));
}

/* Whoever resizes or frees it changes its entry first and its bytes afterwards: what is wrong while
 * the entry is as it was, twice, is damage. */
static bool still_wrong(const struct block *block, const struct block *then, uint64_t start,
			unsigned flags)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!same_block(block, then) || looks_whole(then, start, flags))
			return false;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return same_block(block, then);
}

static __attribute__((noinline)) void examine(const struct block *block, uint64_t start,
					      enum log_check check, uint32_t context,
					      unsigned flags)
{
	uint64_t size = block_size(block), front = canary_front(block), end = start + size;
	uint64_t guard = canary_word(canary.seed, start, CANARY_GUARD);
	uint64_t poison = canary_word(canary.seed, start, CANARY_POISON), head, tail;
	struct damage_stretch stretches[4] = {
		{ LOG_DAMAGE_BEFORE, start - CANARY_FRONT, start, guard },
		{ LOG_DAMAGE_BEHIND, end, start - front + canary_room(front, size), guard },
	};
	unsigned count = 2, i;

	poison_parts(start, size, !(flags & DAMAGE_ENDS), &head, &tail);
	if (flags & DAMAGE_POISONED) {
		stretches[count++] =
			(struct damage_stretch){ LOG_DAMAGE_FREED, start, head, poison };
		stretches[count++] = (struct damage_stretch){ LOG_DAMAGE_FREED, tail, end, poison };
	}
	for (i = 0; i < count; i++) {
		struct log_heap_damage record = { .check = check, .context = context };

		if (!stretch_look(&stretches[i], start, &record))
			continue;
		if (told_before(block, stretches[i].kind))
			continue;
		__atomic_fetch_add(&damage.seen, 1, __ATOMIC_RELAXED);
		if (too_many(block, stretches[i].kind))
			continue;
		damage_stamp_sigsafe(&record, block->state == LOG_BLOCK_FREED);
		tell(block, start, &record);
	}
}

/* Has another thread given it back to libc, or made another block there, since the caller looked at
 * its entry? Then its guards are nobody's. */
static bool has_left(const struct block *then, uint64_t start)
{
	return !canary_front(then) || block_low(then) != (uint8_t)start;
}

bool damage_look_sigsafe(const struct block *block, uint64_t start, enum log_check check,
			 uint32_t context, unsigned flags)
{
	struct block then = *block;

	if ((flags & DAMAGE_SHARED) && unlikely(has_left(&then, start)))
		return true;
	if (likely(looks_whole(&then, start, flags)))
		return true;
	if ((flags & DAMAGE_SHARED) && !still_wrong(block, &then, start, flags))
		return true;
	examine(&then, start, check, context, flags);
	return false;
}

uint64_t damage_count_sigsafe(void)
{
	return __atomic_load_n(&damage.seen, __ATOMIC_RELAXED);
}

void damage_forget(void)
{
	memset(&damage, 0, sizeof(damage));
}
