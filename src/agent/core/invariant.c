#include "agent/core/invariant.h"

#if AGENT_CHECKS

#include "agent/core/retire.h"

const char *invariant_last;

void invariant_broken_sigsafe(const char *what)
{
	invariant_last = what;
	agent_retire_sigsafe(LOG_RETIRED_SELF_FAULT);
}

#endif
