#pragma once

#include <stdbool.h>

#include "base/strbuf.h"
#include "studies/series/minimize.h"
#include "studies/series/repro.h"

/*
 * How a running series talks on stderr: one line that is rewritten on a
 * terminal; elsewhere plain lines, seldom enough to be read.
 */
struct progress {
	bool terminal;
	bool shown;	     /* a rewritten line is on the screen */
	double last_s;	     /* when something was last said */
	uint64_t ran;	     /* trials that had ended … */
	double ran_s;	     /* … when the last of them did: those that run now say nothing yet */
	uint64_t news_trial; /* already told */
	unsigned int told;   /* new ways to fail told so far */
};

void progress_init(struct progress *progress);
void progress_show(void *progress, const struct series_progress_view *view);

/* The same for a command with a view of its own: `text` is the state, told seldom or rewritten;
 * a trial that failed in a new way is told by itself. */
struct progress_news {
	uint64_t trial; /* 0 = none */
	const char *summary;
};
void progress_say(struct progress *progress, double seconds, const char *text,
		  const struct progress_news *news);

/* How far a search for a smaller list is. */
void progress_add_minimized(struct strbuf *sb, const struct minimize_view *view);

/* Appends a duration as people say it. */
void progress_add_time(struct strbuf *sb, double seconds);

void progress_end(struct progress *progress); /* leaves the line clean */
