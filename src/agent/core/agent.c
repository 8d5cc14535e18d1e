#include "agent/core/agent.h"

#include "agent/arch/x86_64.h"

struct agent_switch agent_switch;
struct agent agent;

bool agent_owns_process_sigsafe(void)
{
	long pid = raw_syscall0(SYS_getpid);

	/* A sandbox may say no to anything. */
	return pid < 0 || (uint32_t)pid == agent.pid;
}
