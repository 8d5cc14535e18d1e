/*
 * The lane's ring: where its next record goes, and the epoch that orders the rings of several
 * lanes.
 *
 * Records come in groups. Within one, a record takes its place by one addition (arch_take); what
 * need not be done for every record is done when a group is full: the position in the log, the
 * epoch. All of it is compiled as the hooks are, without vector registers, so that the hot path can
 * turn to the next group without giving up its registers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/thread.h"

extern HIDDEN struct history_state {
	/* Records between two updates of the position. Settled before the first lane is opened: a
	 * ring's groups must not change their length. */
	uint32_t group;
	bool turns_told; /* somebody is told of every full group: not by the hot path */
} history_state;

/* The group that the position lies in, from there on. */
void ring_aim(struct thread *self, uint64_t position);

/* Of the next record. _sigsafe */
uint64_t ring_position(const struct thread *self);

/* So many groups more. True: the epoch has moved, which with several threads it does not always. */
bool epoch_move(struct thread *self, uint32_t groups);

/* Of all lanes, also of threads that have ended. _sigsafe */
uint64_t history_uncounted_sigsafe(void);
/* The log is new since a fork: what the epoch does not have of this lane it will never have. */
void history_forget_lane(const struct thread *area);

/* Beginnings have no record; they move the epoch all the same: whole groups of them that it does
 * not have yet, and has from now on. */
uint32_t ids_groups(struct thread *self);

/* On to the next group, inside the guard. True: the epoch has moved. */
bool ring_turn(struct thread *self);

/* The same from the hot path: the place of one record, behind the guard. 0: the slow way has to do
 * it, because somebody is inside or more hangs on it. Called by arch_call_kept(). */
uint64_t ring_take_turned(struct thread *self, uint64_t unused, uint64_t unused_too);

/* A record at its place, as words: struct log_life and log_life_check(). */
static inline __attribute__((always_inline)) void ring_write(uint64_t place, uint64_t id,
							     uint64_t size_context, uint64_t freed,
							     uint64_t state, uint64_t start)
{
	uint64_t *life = (uint64_t *)place;

	life[0] = id;
	life[1] = size_context;
	life[2] = freed;
	life[3] = state;
	life[4] = start;
	life[5] = ~(id ^ size_context ^ freed ^ state ^ start);
}

/* The place of one record, in the hot path. 0: the slow way has to do it. */
static inline __attribute__((always_inline)) uint64_t ring_take(struct thread *self)
{
	uint64_t place = arch_take(&self->fast.ring_next, sizeof(struct log_life));

	if (unlikely(place >= self->fast.ring_stop))
		place = arch_call_kept(ring_take_turned, self, place, 0);
	return place;
}
