#include "agent/plan_apply.h"

#include <stddef.h>

#include "agent/canary.h"
#include "agent/holders.h"
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
		/* PLAN_ITEM_ALLOCATOR and those after it come with their hooks. */
		default:
			refused++;
			break;
		}
	return refused;
}
