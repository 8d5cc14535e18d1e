#include "agent/ids/history.h"

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/invariant.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"

#define RING_STEP LOG_PAGE

struct history_state history_state = { .group = 1 };

static uint64_t forgotten; /* events that the epoch never had */

#if AGENT_CHECKS
static const char *history_invariant_sigsafe(const struct thread *self)
{
	uint64_t mask = agent.plan.ring_records - 1, at = self->blocks.ring_group & mask,
		 left = history_state.group - self->blocks.ring_group % history_state.group;

	if (self->blocks.ring_end != (uint64_t)(self->blocks.ring + at + left))
		return "history: the group does not end where its position says";
	if (self->fast.ring_next < (uint64_t)(self->blocks.ring + at))
		return "history: the next record lies before its group";
	return NULL;
}
#endif

/* The pages of the ring in its first lap, more at once as it goes on: a page of a file costs more
 * than a microsecond where it is touched, and less than half of that where it is asked for with
 * others. */
static void ring_populate(struct thread *self)
{
	uint64_t bytes = agent.plan.ring_records * sizeof(struct log_life),
		 ready = self->blocks.ring_ready;

	if (ready >= bytes || self->blocks.ring_end - (uint64_t)self->blocks.ring <= ready)
		return;
	self->blocks.ring_ready = (uint32_t)(ready < RING_STEP	 ? RING_STEP
					     : 2 * ready < bytes ? 2 * ready
								 : bytes);
	if (ready) /* those that free little have the first page, when they touch it */
		memory_populate_sigsafe((uint64_t)self->blocks.ring + ready,
					self->blocks.ring_ready - ready);
}

void ring_aim(struct thread *self, uint64_t position)
{
	uint32_t group = history_state.group, mask = agent.plan.ring_records - 1;

	self->blocks.ring_group = position;
	self->blocks.ring_end =
		(uint64_t)(self->blocks.ring + (position & mask) + (group - position % group));
	self->fast.ring_next = (uint64_t)(self->blocks.ring + (position & mask));
	ring_populate(self);
	INVARIANT(history_invariant_sigsafe(self));
}

uint64_t ring_position(const struct thread *self)
{
	uint64_t next = self->fast.ring_next < self->blocks.ring_end ? self->fast.ring_next
								     : self->blocks.ring_end;

	return self->blocks.ring_group + history_state.group -
	       self->blocks.ring_group % history_state.group -
	       (self->blocks.ring_end - next) / sizeof(struct log_life);
}

/* The epoch's cache line goes from thread to thread: seldom, where there are several. */
bool epoch_move(struct thread *self, uint32_t groups)
{
	bool moves;

	self->blocks.epoch_due += groups;
	moves = self->blocks.epoch_due >= LOG_EPOCH_GROUPS || log_map.header->threads_seen == 1;
	if (moves) {
		log_map.header->epoch =
			__atomic_add_fetch(&agent.epoch, self->blocks.epoch_due, __ATOMIC_RELAXED);
		self->blocks.epoch_due = 0;
	}
	self->fast.freed_word = (uint64_t)(LOG_BLOCK_FREED - LOG_BLOCK_LIVE) << 32 |
				(uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	return moves;
}

uint32_t ids_groups(struct thread *self)
{
	uint32_t groups = (uint32_t)(self->fast.next_id - self->blocks.id_group) / LOG_LIFE_GROUP;

	self->blocks.id_group += groups * LOG_LIFE_GROUP;
	return groups;
}

/* Events of the lane, ends and beginnings, that the epoch does not have yet. _sigsafe */
static uint64_t ring_uncounted(const struct thread *self)
{
	if (!self->blocks.ring)
		return 0;
	return self->fast.next_id - self->blocks.id_group +
	       (uint64_t)self->blocks.epoch_due * LOG_LIFE_GROUP +
	       ring_position(self) % LOG_LIFE_GROUP;
}

void history_forget_lane(const struct thread *area)
{
	forgotten += ring_uncounted(area);
}

uint64_t history_uncounted_sigsafe(void)
{
	const struct thread *area;
	uint64_t events = forgotten;
	uint32_t i;

	for (i = 0; (area = lane_area_sigsafe(i)); i++)
		events += ring_uncounted(area);
	return events;
}

bool ring_turn(struct thread *self)
{
	uint64_t position = ring_position(self);

	INVARIANT(history_invariant_sigsafe(self));
	ring_aim(self, position);
	self->row->ring_position = position;
	return !(position % LOG_LIFE_GROUP) && epoch_move(self, 1 + ids_groups(self));
}

ARCH_KEPT(ring_take_turned);

uint64_t ring_take_turned(struct thread *self, uint64_t unused, uint64_t unused_too)
{
	uint64_t place;

	(void)unused;
	(void)unused_too;
	if (self->fast.busy || !self->blocks.ring || history_state.turns_told ||
	    agent_switch.growth)
		return 0;
	guard_close(self);
	(void)ring_turn(self);
	place = arch_take(&self->fast.ring_next, sizeof(struct log_life));
	guard_open(self);
	return place;
}
