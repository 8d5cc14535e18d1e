/*
 * The agent's structures, damaged on purpose: the invariants that debug builds check
 * (agent/core/invariant.h) must fire, and only then. The modules are compiled into this file, so
 * that what they keep to themselves can be damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/core/invariant.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/watch/watch_registers.h"

/* In this order: a name that the last one has at file scope is a parameter in the others. */
/* clang-format off */
#include "agent/ids/history.c"
#include "agent/watch/registers_assign.c"
#include "agent/fence/slots.c"
/* clang-format on */

/* ---- what these ask of others ---- */

struct agent agent;
struct agent_switch agent_switch;
struct log log_map;
struct fence_state fence;
struct watch_state watch_state;

static const char *broken;

void invariant_broken_sigsafe(const char *what)
{
	broken = what;
}

int watch_registers_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes, uint64_t tag)
{
	return 0;
}

int watch_registers_park_sigsafe(unsigned n)
{
	return 0;
}

const struct thread *lane_area_sigsafe(uint32_t n)
{
	return NULL;
}

struct thread *guard_enter_slow(void)
{
	return NULL;
}

size_t maps_text_sigsafe(const char *path, char *to, size_t room)
{
	(void)path;
	(void)to;
	(void)room;
	return 0;
}

void *memory_map_sigsafe(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

uint32_t shutter_mappings(void)
{
	return 0;
}

bool shutter_cut(const struct shutter_range *data, uint32_t count)
{
	return true;
}

bool shutter_open(const struct shutter_range *ranges, uint32_t count)
{
	return true;
}

bool shutter_close(uint64_t at, uint64_t bytes)
{
	return true;
}

void keep_forget(struct fence_slot *slot)
{
}

void fence_narrow(void)
{
}

/* ---- debug registers ---- */

static void registers_that_are_sound_are_silent(void **nothing)
{
	struct aim pieces[WATCH_REGISTERS];
	unsigned count = registers_cut(0x1003, 11, pieces);

	broken = NULL;
	assert_true(registers_lock());
	watch_state.armed[0].number = 1;
	assert_int_equal(registers_set(0, pieces, count), 0);
	registers_unlock();
	assert_null(broken);
}

static void a_register_aimed_askew_is_noticed(void **nothing)
{
	broken = NULL;
	aims[1] = (struct aim){ .address = 0x1001, .bytes = 4, .owner = 0 };
	assert_true(registers_lock());
	assert_non_null(broken);
	broken = NULL;
	aims[1] = (struct aim){ .address = 0x1000, .bytes = 3, .owner = 0 };
	registers_unlock();
	assert_non_null(broken);
	broken = NULL;
	aims[1] = (struct aim){ .address = 0x1000, .bytes = 4, .owner = 77 };
	assert_true(registers_lock());
	assert_non_null(broken);
	aims[1] = (struct aim){ 0 };
	registers_unlock();
}

/* ---- history ---- */

#define RECORDS 256u

static struct thread *lane(void)
{
	static struct thread self;
	static struct log_life ring[RECORDS];
	static struct log_thread row;
	static struct log_header header;

	memset(&self, 0, sizeof(self));
	self.blocks.ring = ring;
	self.row = &row;
	self.blocks.ring_ready = sizeof(ring);
	log_map.header = &header;
	agent.plan.ring_records = RECORDS;
	history_state.group = LOG_LIFE_GROUP;
	return &self;
}

static void a_ring_that_turns_is_silent(void **nothing)
{
	struct thread *self = lane();
	unsigned i;

	broken = NULL;
	ring_aim(self, 0);
	for (i = 0; i < 3 * RECORDS / LOG_LIFE_GROUP; i++) {
		self->fast.ring_next = self->blocks.ring_end + (i % 3) * sizeof(struct log_life);
		(void)ring_turn(self);
		assert_int_equal(self->blocks.ring_group, (uint64_t)(i + 1) * LOG_LIFE_GROUP);
	}
	assert_null(broken);
}

static void a_ring_that_lost_its_place_is_noticed(void **nothing)
{
	struct thread *self = lane();

	ring_aim(self, 0);
	broken = NULL;
	self->blocks.ring_end += sizeof(struct log_life);
	(void)ring_turn(self);
	assert_non_null(broken);
	ring_aim(self, 64);
	broken = NULL;
	self->fast.ring_next = (uint64_t)self->blocks.ring;
	(void)ring_turn(self);
	assert_non_null(broken);
}

/* ---- fences ---- */

static void slots_open(void)
{
	fence.base = 1ull << 40;
	fence.bytes = 64ull << 20;
	fence.plan.memory_mib = 32;
	fence.mode = LOG_FENCE_MARKERS;
	memset(&state, 0, sizeof(state));
	assert_true(slots_init());
}

static void slots_that_come_and_go_are_silent(void **nothing)
{
	struct fence_slot *taken[200];
	unsigned i, k;

	slots_open();
	broken = NULL;
	for (k = 0; k < 100; k++) {
		for (i = 0; i < 200; i++) {
			taken[i] = slot_take(1 + (i + k) % 5);
			assert_non_null(taken[i]);
		}
		for (i = 0; i < 200; i++)
			slot_give(taken[(i * 7) % 200]);
	}
	assert_null(broken);
}

static void a_slot_that_lost_its_pages_is_noticed(void **nothing)
{
	struct fence_slot *slot, *other;

	slots_open();
	slot = slot_take(2);
	other = slot_take(2);
	broken = NULL;
	slot->page++;
	slot_give(slot);
	assert_non_null(broken);
	broken = NULL;
	state.kinds[2].oldest = 0;
	slot_give(other);
	assert_non_null(broken);
}

/* ---- the guard ---- */

static void who_leaves_the_guard_was_inside(void **nothing)
{
	struct guard guard;

	thread_self = lane();
	broken = NULL;
	assert_true(guard_enter_any(&guard));
	guard_leave(&guard);
	assert_null(broken);
	guard_leave(&guard);
	assert_non_null(broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_that_are_sound_are_silent),
		cmocka_unit_test(a_register_aimed_askew_is_noticed),
		cmocka_unit_test(a_ring_that_turns_is_silent),
		cmocka_unit_test(a_ring_that_lost_its_place_is_noticed),
		cmocka_unit_test(slots_that_come_and_go_are_silent),
		cmocka_unit_test(a_slot_that_lost_its_pages_is_noticed),
		cmocka_unit_test(who_leaves_the_guard_was_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
