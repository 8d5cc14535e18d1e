/*
 * How blocks are followed in this process: chosen once, when the agent is switched on.
 */
#ifndef REDHAND_AGENT_POLICY_H
#define REDHAND_AGENT_POLICY_H

/* Sets agent_switch.ids: from then on the hooks record. */
void policy_switch_on(void);

#endif
