/*
 * Time. libc's clock_gettime is async-signal-safe (signal-safety(7)) and goes through the vDSO.
 */
#ifndef REDHAND_AGENT_CLOCK_H
#define REDHAND_AGENT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns_sigsafe(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
