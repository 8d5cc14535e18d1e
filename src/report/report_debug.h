#pragma once

#include <stdio.h>

/* The lines of a dump (studies/debug/dump.h) as a document: an object each, all values as text. */
void report_dump_json(const char *lines, FILE *out);
