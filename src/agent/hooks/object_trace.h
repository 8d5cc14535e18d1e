/*
 * Who is given objects of one kind, and who hands them out: for the tool, which looks for
 * allocators of the target's own (PLAN_SIGHT_ENTER, PLAN_SIGHT_LEAVE).
 */
#pragma once

#include "agent/core/guard.h"
#include "agent/hooks/hook_sites.h"

void object_trace_enter(struct guard *guard, const struct plan_action *action,
			const struct hooked_call *call);
void object_trace_leave(struct guard *guard, const struct plan_action *action,
			const struct hooked_call *call);
