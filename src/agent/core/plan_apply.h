/*
 * The items of the plan. What this agent does not know it refuses, and
 * says how many (LOG_DROP_PLAN_ITEM), so that the tool can tell the user what was not done.
 */
#ifndef REDHAND_AGENT_PLAN_APPLY_H
#define REDHAND_AGENT_PLAN_APPLY_H

#include <stdint.h>

/* `bytes` is a plan that plan_check() found sound. Returns how many items were refused. */
uint32_t plan_apply(const void *bytes);

#endif
