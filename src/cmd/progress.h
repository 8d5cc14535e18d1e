#pragma once

#include <stdbool.h>

#include "engine/series/repro.h"

/*
 * How a running series talks on stderr: one line that is rewritten on a
 * terminal; elsewhere plain lines, seldom enough to be read.
 */
struct progress {
	bool terminal;
	bool shown;	     /* a rewritten line is on the screen */
	double last_s;	     /* when something was last said */
	uint64_t news_trial; /* already told */
	unsigned int told;   /* new ways to fail told so far */
};

void progress_init(struct progress *progress);
void progress_show(void *progress, const struct series_progress_view *view);
void progress_end(struct progress *progress); /* leaves the line clean */
