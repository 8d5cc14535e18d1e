#include "agent/alloc/policy.h"

#include "agent/alloc/builtin_malloc.h"
#include "agent/chaos/chaos.h"
#include "agent/core/real.h"
#include "agent/guards/canary.h"
#include "agent/guards/sample.h"
#include "agent/ids/blocks.h"
#include "agent/pages/pages.h"

struct policy_state policy_state = { .rest = &policy_plain, .bottom = &policy_plain };

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

/* Where every block has guards, or those have that are chosen. */
static const struct policy *guarded_wanted(void)
{
	if (canary.asks)
		return &policy_fenced;
	return blocks_hot() ? &policy_guarded : &policy_guarded_slow;
}

static const struct policy *policy_wanted(enum agent_ids ids)
{
	const struct policy *policy;

	switch (ids) {
	case AGENT_IDS_OFF:
		policy = &policy_plain;
		break;
	case AGENT_IDS_GUARDED:
	case AGENT_IDS_GUARDED_SLOW:
		policy = guarded_wanted();
		break;
	case AGENT_IDS_SAMPLED:
		policy_state.beneath_sampled = guarded_wanted();
		policy = &policy_sampled;
		break;
	case AGENT_IDS_SLOW:
		policy = &policy_ids_slow;
		break;
	default:
		policy = &policy_ids;
		break;
	}
	if (pages.bytes && !builtin_replaced) {
		policy_state.beneath_placed = policy;
		policy = &policy_placed;
	}
	if (agent_switch.chaos & CHAOS_HOLD) {
		policy_state.beneath_held = policy;
		policy = &policy_held;
	}
	if (builtin_replaced) {
		policy_state.beneath_builtin = policy;
		policy = &policy_builtin;
	}
	return policy;
}

static void choose(void)
{
	const struct policy *policy = policy_wanted((enum agent_ids)agent_switch.ids);

	policy_state.bottom = canary.on ? &policy_guarded_rest : &policy_plain;
	policy_state.rest = builtin_replaced ? &policy_builtin
			    : pages.bytes    ? &policy_placed
					     : policy_state.bottom;
	__atomic_store_n(&agent_switch.policy, policy, __ATOMIC_RELEASE);
}

void policy_switch_on(void)
{
	bool ids = agent.plan.observer >= PLAN_OBSERVE_IDS && !(agent.plan.flags & PLAN_NO_BLOCKS);

	__atomic_store_n(&agent_switch.ids, ids ? ids_wanted() : AGENT_IDS_OFF, __ATOMIC_RELEASE);
	choose();
}

void policy_take_over(void)
{
	builtin_take_over();
	if (agent_switch.here) /* with a library that came later */
		choose();
}
