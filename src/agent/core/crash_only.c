/* Compiled once for each of the two libraries; all else is the same. */
#include "agent/core/agent.h"

const bool agent_crash_only = AGENT_CRASH_ONLY;
