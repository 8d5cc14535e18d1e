#pragma once

#include <stdint.h>

/* How often something fails, never without its interval and the number of runs. */
struct rate {
	uint64_t trials;
	uint64_t failed;
	double rate;
	double low, high; /* Wilson, 95 % unless said otherwise */
};
