/*
 * Watches: which memory is looked at, and what is written down when somebody writes to it.
 */
#ifndef REDHAND_AGENT_WATCH_H
#define REDHAND_AGENT_WATCH_H

#include <stdint.h>

#include "agent/context.h"
#include "agent/guard.h"

/* A hook on a function saw an object that watch number `watch` of the plan (PLAN_ITEM_WATCH, counted
 * from 0) is about: what it returned, or one of its arguments. NULL pointers are left out by the
 * caller. */
void watch_object(struct guard *guard, uint32_t watch, uint64_t address, struct caller caller);

#endif
