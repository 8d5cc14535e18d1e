#include "agent/core/retire.h"

#include <stddef.h>
#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/log.h"

void agent_retire_sigsafe(enum log_retired reason)
{
	memset(&agent_switch, 0, offsetof(struct agent_switch, rest));
	if (!log_map.header)
		return;
	log_publish_sigsafe();
	log_map.header->retired = reason;
	log_map.header->state = LOG_STATE_RETIRED;
}
