#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "model/finding.h"

/* The diagnosis for a reader: a line each with ok, limited or no, and below those that are not ok
 * what is lost and how to get it. */
void report_doctor_text(const struct diagnosis *diagnosis, bool colour, FILE *out);

/* The same as one JSON document, schema redhand/doctor/1. */
void report_doctor_json(const struct diagnosis *diagnosis, FILE *out);
