#pragma once

#include <stdio.h>

#include "model/chaos_knobs.h"
#include "model/crash.h"

/* A crash with everything that is known about it. */
struct trial_report {
	uint64_t trial;
	const char *case_dir;
	const char *outcome; /* "passed", or what its signatures say */
	unsigned int slot;
	double seconds;
	const char *last_crumb;	   /* NULL when there is none */
	bool kept;		   /* its directory is still there */
	const struct chaos *chaos; /* NULL: it was not disturbed */
	const struct crash_report *report;
};

void report_trial_text(const struct trial_report *trial, bool verbose, FILE *out);
void report_trial_json(const struct trial_report *trial, FILE *out);

/* The part of it that fits into a list of signatures, indented. */
void report_crash_brief(const struct crash *crash, const char *indent, FILE *out);
