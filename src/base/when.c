#include "base/when.h"

#include <stdio.h>
#include <time.h>

const char *when_text(int64_t ms, char text[WHEN_MAX])
{
	time_t seconds = ms / 1000;
	struct tm tm;

	/* A damaged case may hold any number. */
	if (ms < 0 || !gmtime_r(&seconds, &tm) ||
	    strftime(text, WHEN_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(text, WHEN_MAX, "(unknown time)");
	return text;
}
