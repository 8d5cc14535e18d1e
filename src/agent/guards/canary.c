#include "agent/guards/canary.h"

#include <string.h>

struct canary_state canary;

void canary_plan(const struct plan_heap *plan)
{
	memcpy(&canary.plan, plan, sizeof(canary.plan));
	if (canary.plan.quarantine_mib > PLAN_QUARANTINE_MIB_MAX)
		canary.plan.quarantine_mib = PLAN_QUARANTINE_MIB_MAX;
	if (canary.plan.sweep_count > PLAN_SWEEP_MAX)
		canary.plan.sweep_count = PLAN_SWEEP_MAX;
	canary.seed = plan->seed;
	canary.gap = canary_gap(plan->seed, plan->item.flags & PLAN_HEAP_SAMPLED);
	canary.python = plan->item.flags & PLAN_HEAP_PYTHON;
	canary.fresh = canary.asks = plan->item.flags & PLAN_HEAP_FRESH;
	canary.planned = blocks_state.guards_planned = true;
}
