#pragma once

#include <stdio.h>

#include "model/watch_report.h"

/* Who wrote to watched memory. */
void report_watch_text(const struct watch_report *report, bool verbose, FILE *out);
/* How to have a look at the process that was stopped. */
void report_watch_stop(const struct watch_stop *stop, FILE *out);
void report_watch_json(const struct watch_report *report, FILE *out);
