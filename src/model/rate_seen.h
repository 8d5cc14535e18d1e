#pragma once

#include <stdint.h>

/* How often something fails, never without its interval and the number of runs. */
struct rate {
	uint64_t trials;
	uint64_t failed; /* <= trials */
	double rate;	 /* failed / trials; 0 when there were no trials */
	double low;	 /* 0 <= low <= rate */
	double high;	 /* rate <= high <= 1 */
};
