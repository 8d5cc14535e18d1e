#pragma once

#include <stdio.h>

#include "model/minimal.h"

/* The result of `minimize`, for people and as JSON (docs/json.md). */
void report_minimize_text(const struct minimize_result *result, FILE *out);
void report_minimize_json(const struct minimize_result *result, FILE *out);
