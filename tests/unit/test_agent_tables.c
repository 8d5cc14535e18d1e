/*
 * The same as test_agent_invariants.c for the side table, the quarantine and the slots of watched
 * pages. What these modules ask of others and the tests never come to is thrown away by the linker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/guard.h"
#include "agent/core/invariant.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"

/* clang-format off */
#include "agent/ids/blocks.c"
#include "agent/guards/quarantine.c"
#include "agent/pages/pages_slots.c"
/* clang-format on */

/* ---- what these ask of others ---- */

struct agent agent;
struct agent_switch agent_switch;
struct log log_map;
struct thread thread_nobody;
const struct feature features[1];
const unsigned features_count = 0;

static const char *broken;

void invariant_broken_sigsafe(const char *what)
{
	broken = what;
}

void *memory_map_sigsafe(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Every call comes from the one context that there is. */
uint32_t context_find_slow(struct guard guard, uint64_t return_address, uint64_t frame,
			   uint64_t rbp)
{
	return 1;
}

/* What the hot path calls without giving up its registers: it has none here to lose. */
__asm__(".globl context_seek_kept\n.hidden context_seek_kept\ncontext_seek_kept: xorl %eax, %eax\nret");

bool ring_turn(struct thread *lane)
{
	return false;
}

bool damage_look_sigsafe(const struct block *block, uint64_t start, enum log_check check,
			 uint32_t context, unsigned flags)
{
	return false;
}

bool watch_fences(void)
{
	return false;
}

bool pages_rights_sigsafe(uint64_t low, uint64_t high, bool open)
{
	return high > low && !open;
}

void pages_yield_once_written(void)
{
}

struct pages pages;
struct watch_state watch_state;
struct canary_state canary;
uint32_t *context_ordinals;
uint16_t *context_marks;

static struct thread self;
static const struct caller caller = { .return_address = 0x401000, .frame = 0x7000 };

/* ---- the side table ---- */

static struct block *block_live(uint64_t start)
{
	static struct log_header header;
	static struct log_life records[64];
	struct block *block;

	self.fast.site_next = self.fast.site_last = self.tables.sites;
	self.fast.ring_next = (uint64_t)records;
	self.fast.ring_stop = self.blocks.ring_end = (uint64_t)(records + 64);
	log_map.header = &header;
	agent.next_id = 100;
	agent.plan.context_rows = 16;
	if (!blocks_state.pool)
		blocks_state.pool = memory_map_sigsafe(64 * sizeof(struct block));
	pool.used = 8;
	pool.limit = 64;
	block = &blocks_state.pool[7];
	*block = (struct block){
		.id = 99, .ordinal = 1, .state = LOG_BLOCK_LIVE, .low = (uint8_t)start ^ BLOCK_MARK
	};
	((uint64_t *)block)[1] = block_size_context(48, 3);
	return block;
}

static bool end_is_noticed(struct block *block, uint64_t start)
{
	struct guard guard = { &self };

	broken = NULL;
	block_end_known(&guard, block, start, caller);
	return broken;
}

static void a_block_that_ends_is_silent(void **nothing)
{
	assert_false(end_is_noticed(block_live(0x5000), 0x5000));
}

static void an_entry_that_was_damaged_is_noticed(void **nothing)
{
	struct block *block = block_live(0x5000);

	assert_true(end_is_noticed(block, 0x5010)); /* of another start */
	block = block_live(0x5000);
	block->state = LOG_BLOCK_FREED;
	assert_true(end_is_noticed(block, 0x5000));
	block = block_live(0x5000);
	block->id = 100;
	assert_true(end_is_noticed(block, 0x5000));
	block = block_live(0x5000);
	block->id = 0;
	assert_true(end_is_noticed(block, 0x5000));
	block = block_live(0x5000);
	((uint64_t *)block)[1] = block_size_context(48, 16);
	assert_true(end_is_noticed(block, 0x5000));
	block = block_live(0x5000);
	pool.used = 7; /* entry 7 was never given out */
	assert_true(end_is_noticed(block, 0x5000));
}

/* ---- the quarantine ---- */

static unsigned char freed[256];

static bool add_is_noticed(void)
{
	struct quarantine_leaves leaves = { .count = 0 };
	uint64_t start = (uint64_t)freed + 64;
	struct guard guard = { &self };
	struct block *block = block_live(start);

	block->state = LOG_BLOCK_FREED;
	block->api = 1u << BLOCK_FRONT_SHIFT; /* it has guards */
	broken = NULL;
	quarantine_add(&guard, block, start, &leaves);
	return broken;
}

static struct quarantine *ring_new(void)
{
	self.quarantine = NULL;
	rings = 0;
	canary.plan.quarantine_mib = 1;
	canary.plan.poison_ppm = 0;
	assert_false(add_is_noticed());
	assert_non_null(self.quarantine);
	return self.quarantine;
}

static void a_quarantine_that_fills_is_silent(void **nothing)
{
	unsigned i;

	(void)ring_new();
	for (i = 0; i < 100; i++)
		assert_false(add_is_noticed());
}

static void a_quarantine_that_was_damaged_is_noticed(void **nothing)
{
	struct quarantine *ring = ring_new();

	ring->tail = ring->head + 2; /* more has left than came in */
	assert_true(add_is_noticed());
	ring = ring_new();
	ring->mask -= 1;
	assert_true(add_is_noticed());
}

/* ---- slots of watched pages ---- */

static void pages_open_here(void)
{
	memset(&state, 0, sizeof(state));
	pages.bytes = 64u << 20;
	pages.base = pages.top = (uint64_t)memory_map_sigsafe(pages.bytes);
	assert_true(pages_slots_init());
}

static void watched_slots_that_come_and_go_are_silent(void **nothing)
{
	struct pages_slot *taken[100];
	unsigned i, k;

	pages_open_here();
	broken = NULL;
	for (k = 0; k < 50; k++) {
		for (i = 0; i < 100; i++) {
			taken[i] = pages_slot_take(16, 1 + (i * 97 + k) % 40000);
			assert_non_null(taken[i]);
		}
		for (i = 0; i < 100; i++)
			pages_slot_give(taken[i * 7 % 100]);
	}
	assert_null(broken);
}

static bool give_is_noticed(struct pages_slot *slot)
{
	broken = NULL;
	pages_slot_give(slot);
	return broken;
}

static void a_watched_slot_that_was_damaged_is_noticed(void **nothing)
{
	struct pages_slot *slot;

	pages_open_here();
	slot = pages_slot_take(16, 100);
	slot->start += 8; /* between two */
	assert_true(give_is_noticed(slot));
	pages_open_here();
	slot = pages_slot_take(16, 100);
	slot->bytes = 5000;
	assert_true(give_is_noticed(slot));
	pages_open_here();
	slot = pages_slot_take(16, 100);
	slot->armed = 1; /* there is no object */
	assert_true(give_is_noticed(slot));
	pages_open_here();
	slot = pages_slot_take(16, 100);
	state.kinds[state.spans[slot->span].slot_bytes / SLOT_STEP].oldest = 1;
	assert_true(give_is_noticed(slot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_that_ends_is_silent),
		cmocka_unit_test(an_entry_that_was_damaged_is_noticed),
		cmocka_unit_test(a_quarantine_that_fills_is_silent),
		cmocka_unit_test(a_quarantine_that_was_damaged_is_noticed),
		cmocka_unit_test(watched_slots_that_come_and_go_are_silent),
		cmocka_unit_test(a_watched_slot_that_was_damaged_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
