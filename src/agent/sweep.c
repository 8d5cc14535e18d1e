#include "agent/sweep.h"

void sweep_free(struct guard *guard, const struct block *block, uint64_t start,
		struct caller caller)
{
	(void)guard;
	(void)block;
	(void)start;
	(void)caller;
}

void sweep_line(struct guard *guard)
{
	(void)guard;
}

void sweep_crash_sigsafe(const struct log_crash *crash)
{
	(void)crash;
}
