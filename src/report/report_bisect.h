#pragma once

#include <stdio.h>

#include "model/bisected.h"

/* The result of `bisect`, for people and as JSON (docs/json.md). */
void report_bisect_text(const struct bisect_result *result, FILE *out);
void report_bisect_json(const struct bisect_result *result, FILE *out);

/* The result of `bisect-step`. */
struct bisect_step_report {
	const char *verdict; /* good, bad, cannot-tell */
	const char *why;     /* for the last one; else NULL */
	uint64_t wanted;     /* clean runs that make it good */
	double rate, confidence;
	const struct repro_result *repro; /* NULL when nothing was run */
};
void report_bisect_step_json(const struct bisect_step_report *report, FILE *out);
