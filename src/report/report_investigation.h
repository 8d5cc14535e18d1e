#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "model/investigation.h"

/*
 * An investigation in every form: `redhand report`, and what `redhand hunt` ends with.
 *
 * Everything that came from the target or from a case is escaped for where it goes.
 */

/* What text is for. */
struct terminal {
	bool colour;
	unsigned int columns;
};

/* Trials were run, and there is nothing to explain. */
bool verdict_never_failed(const struct investigation *inv);

/* The verdict for a terminal: one screen. */
void report_verdict_text(const struct investigation *inv, const struct terminal *terminal,
			 FILE *out);

/* The whole of it: the verdict first, then how it was found. */
void report_investigation_text(const struct investigation *inv, const struct terminal *terminal,
			       FILE *out);
void report_investigation_md(const struct investigation *inv, FILE *out);

/* Schema redhand/report/2 and redhand/hunt/2 (docs/json.md). */
void report_investigation_json(const struct investigation *inv, FILE *out);
void report_hunt_json(const struct investigation *inv, FILE *out);

/* SARIF 2.1.0: one result, with the way from the allocation to the failure as a code flow. */
void report_investigation_sarif(const struct investigation *inv, const char *version, FILE *out);

/* "file:line: error: …" and "file:line: note: …", as editors read them from compilers. */
void report_investigation_gcc(const struct investigation *inv, FILE *out);
