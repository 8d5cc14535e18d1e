#pragma once

#include <stdio.h>

#include "model/growth_site.h"

/* `heap --growth`. */
void report_growth_text(const struct growth_report *report, bool verbose, FILE *out);
void report_growth_json(const struct growth_report *report, FILE *out);
