#pragma once

#include "base/err.h"
#include "run/job.h"

/*
 * What shapes the trials of a series, read back from the text that the case knows it by
 * (cmd/trial_options.c writes it).
 */
struct series_settings {
	struct strv program; /* {slot} and {trial} not replaced */
	char *cwd;	     /* absolute */
	struct strv env;     /* --slot-env: NAME=VALUE, likewise */
	char *stdin_path;    /* NULL: nothing */
	struct strv ignore, fail_on;
	char *breadcrumb; /* NULL when none was given */
	enum observer observer;
	uint64_t jobs, timeout_ns, linger_ns;
	uint64_t chaos;	  /* enum chaos_knob */
	char *chaos_seed; /* NULL: drawn for each trial */
	bool without_ids; /* blocks were not followed, whatever the observer */
	bool jobs_matter; /* `jobs` was chosen because it fails more often so */
	bool share_tmp, pty;
	struct strv arms; /* of a comparison; else empty */
};

/* -EUCLEAN, with a sentence, when it is no such text. */
int series_settings_read(const char *text, struct series_settings *ret, struct err *err);
void series_settings_deinit(struct series_settings *settings);

/* The text of the same settings with another line for `name` (put at the end when there is none);
 * `line` has its own end of line. The result is the caller's to free. Only for names whose values
 * are numbers or single words. */
char *series_settings_with(const char *text, const char *name, const char *line);

/* The observer with this name. -EINVAL, with a sentence, when this build has none. */
int observer_from_name(const char *name, enum observer *ret, struct err *err);
