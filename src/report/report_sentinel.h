#pragma once

#include <stdio.h>

#include "model/certificate.h"

/* What a run of a sentinel proves: for people, as JSON (docs/json.md), as JUnit XML for a CI. */
void report_certificate_text(const struct certificate *certificate, FILE *out);
void report_certificate_json(const struct certificate *certificate, FILE *out);
void report_certificate_junit(const struct certificate *certificate, FILE *out);

/* What `sentinel create` wrote. */
struct sentinel_report {
	const char *dir, *case_dir;
	int64_t series;
	const char *signature, *summary;
	struct rate rate;
	uint64_t needed;      /* clean runs that show with 99 % confidence that it is fixed */
	char *const *program; /* as written, with {root} and {sentinel} */
	const struct strv *env, *tests;
	const struct said_list *copied;
	const struct said_list *notes;
};

void report_sentinel_text(const struct sentinel_report *report, FILE *out);
void report_sentinel_json(const struct sentinel_report *report, FILE *out);
