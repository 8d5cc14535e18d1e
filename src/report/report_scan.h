#pragma once

#include <stdio.h>

#include "model/scan_report.h"

/* `scan`. */
void report_scan_text(const struct scan_report *report, bool verbose, FILE *out);
void report_scan_json(const struct scan_report *report, FILE *out);
