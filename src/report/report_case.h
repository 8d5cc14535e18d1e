#pragma once

#include <stdio.h>

#include "model/certificate.h"
#include "model/overview.h"
#include "model/trial_line.h"

/* `case show`, `case list`, and what `case resume` found, for people and as JSON (docs/json.md). */
void report_case_text(const struct case_overview *overview, bool verbose, FILE *out);
void report_case_json(const struct case_overview *overview, FILE *out);
void report_cases_text(const struct case_lines *lines, FILE *out);
void report_cases_json(const struct case_lines *lines, FILE *out);

/* `case trials`. */
void report_trial_lines_text(const struct trial_lines *lines, FILE *out);
void report_trial_lines_json(const char *case_dir, const struct trial_lines *lines, FILE *out);

/* A change that was stored: "note", "hypothesis" and so on, with its number. */
void report_case_change_json(const char *case_dir, const char *what, uint64_t id, FILE *out);

/* Another case, and what both verdicts name. */
void report_relation_text(const struct relation *relation, FILE *out);
void report_relation_json(const char *case_dir, const struct relation *relation, FILE *out);

struct resumption {
	const char *case_dir;
	const struct parking *parking;
	const struct said_list *changes; /* what differs from then */
	const struct certificate *gate;	 /* NULL: it could not be run */
	const char *reason;		 /* why it is refused, or what was forced; NULL: passed */
	bool resumed;
};

void report_resumption_text(const struct resumption *resumption, FILE *out);
void report_resumption_json(const struct resumption *resumption, FILE *out);
