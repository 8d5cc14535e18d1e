#include "base/percent.h"

#include <math.h>
#include <stdio.h>

#define DECIMALS_MAX 9

const char *percent_text(char *buf, double share)
{
	double percent = share * 100;
	int decimals = 1;

	if (percent > 0 && percent < 0.95) {
		decimals = 1 - (int)floor(log10(percent));
		if (decimals > DECIMALS_MAX)
			decimals = DECIMALS_MAX;
	}
	(void)snprintf(buf, PERCENT_MAX, "%.*f", decimals, percent);
	return buf;
}
