/* Compiled once for each of the two libraries; all else is the same. */
#include "agent/core/agent.h"

const bool agent_lean = AGENT_LEAN;
