/*
 * Time. libc's clock_gettime is async-signal-safe (signal-safety(7)) and goes through the vDSO.
 * Where the clock is not one that the vDSO can read, it makes a system call, which must not be told
 * to us (told.h) as if it were the target's.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"

static inline uint64_t clock_ns_sigsafe(clockid_t clock)
{
	struct timespec now = { 0 };

	if (agent.calls_told)
		(void)raw_syscall2(SYS_clock_gettime, clock, &now);
	else
		(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
