#pragma once

#include <stdio.h>

#include "model/summary.h"

/* The results of `repro` and `compare`, for people and as JSON (docs/json.md). */
void report_repro_text(const struct repro_result *result, FILE *out);
void report_repro_json(const struct repro_result *result, FILE *out);
/* What a comparison says in words; the caller's to free. */
char *compare_sentence(const struct compare_result *result);
void report_compare_text(const struct compare_result *result, FILE *out);
void report_compare_json(const struct compare_result *result, FILE *out);
