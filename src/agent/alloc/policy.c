#include "agent/alloc/policy.h"

#include "agent/chaos/chaos.h"
#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/guards/canary.h"
#include "agent/guards/sample.h"
#include "agent/ids/blocks.h"
#include "agent/pages/pages.h"

static enum agent_ids ids_wanted(void)
{
	/* The shortest ways have no place to be held at, nor to be asked where a block is to lie.
	 */
	bool shortest = !(agent_switch.chaos & CHAOS_HOLD) && !pages.bytes;

	if (canary.on && !blocks_hot())
		return AGENT_IDS_GUARDED_SLOW;
	if (canary.on)
		return sample.on && shortest ? AGENT_IDS_SAMPLED : AGENT_IDS_GUARDED;
	if (!blocks_hot())
		return AGENT_IDS_SLOW;
	return real.glibc_malloc && shortest ? AGENT_IDS_GLIBC : AGENT_IDS_OTHER;
}

void policy_switch_on(void)
{
	bool ids = agent.plan.observer >= PLAN_OBSERVE_IDS && !(agent.plan.flags & PLAN_NO_BLOCKS);

	__atomic_store_n(&agent_switch.ids, ids ? ids_wanted() : AGENT_IDS_OFF, __ATOMIC_RELEASE);
}
