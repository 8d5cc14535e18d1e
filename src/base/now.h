#pragma once

#include <stdint.h>
#include <time.h>

/* Time that only goes on, since some moment; and since the epoch. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline double clock_s(void)
{
	return (double)clock_ns() / 1e9;
}

static inline int64_t clock_epoch_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static inline void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}
