#pragma once

#include <stdio.h>

#include "base/err.h"

/* Why there is no other document: printed only when none was (json.c). */
void report_error_json(const struct err *err, FILE *out);
