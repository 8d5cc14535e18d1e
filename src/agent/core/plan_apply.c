#include "agent/core/plan_apply.h"

#include <stddef.h>

#include "agent/chaos/chaos.h"
#include "agent/fence/fence.h"
#include "agent/growth/holders.h"
#include "agent/guards/canary.h"
#include "agent/hooks/hooked.h"
#include "agent/watch/watch.h"
#include "wire/plan.h"

uint32_t plan_apply(const void *bytes)
{
	const struct plan_item *item = NULL;
	uint32_t refused = 0;

	while ((item = plan_next(bytes, item)))
		switch (item->type) {
		case PLAN_ITEM_HOLDERS:
			holders_plan((const struct plan_holders *)item);
			break;
		case PLAN_ITEM_CANARY:
			canary_plan((const struct plan_heap *)item);
			break;
		case PLAN_ITEM_FENCE:
			fence_plan((const struct plan_fence *)item);
			break;
		case PLAN_ITEM_CHAOS:
			chaos_plan((const struct plan_chaos *)item);
			break;
		case PLAN_ITEM_WATCH:
			refused += !watch_plan((const struct plan_watch *)item);
			break;
		case PLAN_ITEM_HOOK:
			refused += !hooked_plan_hook((const struct plan_hook *)item);
			break;
		case PLAN_ITEM_ACTION:
			refused += !hooked_plan_action((const struct plan_action *)item);
			break;
		default:
			refused++;
			break;
		}
	return refused;
}
