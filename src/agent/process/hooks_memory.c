/*
 * mlockall: a target that wants all its memory in RAM must not get all that the agent has reserved,
 * which is more than any machine has. With MCL_ONFAULT pages are locked when they are first
 * touched; that is the one argument that a hook changes.
 */
#include <errno.h>
#include <sys/mman.h>

#include "agent/core/agent.h"
#include "agent/core/real.h"

EXPORT int mlockall(int flags)
{
	if (!real.mlockall) {
		errno = ENOSYS;
		return -1;
	}
	return real.mlockall(agent_switch.ids && flags ? flags | MCL_ONFAULT : flags);
}
