/*
 * What each debug register is aimed at, and the lock under which that changes.
 *
 * A register whose object has ended stays aimed until another object needs it, or a trap finds it
 * so (watch_retire_register_sigsafe() in watch.h).
 */
#pragma once

#include "agent/watch/watch_registers.h"
#include "agent/watch/watch_state.h"

struct aim {
	uint64_t address;
	uint32_t bytes; /* 0: parked */
	uint32_t owner; /* index in watch_state.armed, or one that none has: its object has ended */
};

/* False when somebody has it for too long: then this object is not watched, and counted so. */
bool registers_lock(void);
void registers_unlock(void);

/* Cuts [address, +bytes) into what a register can cover; returns how many it takes. */
unsigned registers_cut(uint64_t address, uint32_t bytes, struct aim pieces[WATCH_REGISTERS]);

/* How many registers watch nothing any more. */
unsigned registers_free(void);

/* An entry is used anew: registers that its last object had are nobody's, though still aimed. */
void registers_disown(uint32_t owner);

/* 0, or an errno. */
int registers_set(uint32_t owner, const struct aim *pieces, unsigned count);

/* The child's registers are new ones. */
void registers_after_fork(void);

/* A trap of a register whose object has ended: parks it. _sigsafe */
void watch_retire_register_sigsafe(unsigned n, uint64_t address);

/* A register may still be aimed at where an object was. _sigsafe */
bool watch_register_lingers_sigsafe(void);
