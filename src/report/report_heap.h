#pragma once

#include <stdio.h>

#include "model/heap.h"

void report_heap_text(const struct heap_report *report, bool verbose, FILE *out);
void report_heap_json(const struct heap_report *report, FILE *out);
