#pragma once

#include <stdio.h>

#include "model/said.h"

/*
 * Hostile text in Markdown (GitHub's). Private to report/.
 *
 * Names of functions and tests, paths and messages come from the target: nothing in them may
 * become markup, a link, a mention or the end of a table's row.
 */

/* As running text. */
void md_text(const char *text, FILE *out);
void md_said(const struct said *said, FILE *out);

/* As a code span; in a cell of a table. */
void md_code(const char *text, FILE *out);
void md_cell_code(const char *text, FILE *out);

/* A line of a fenced block that md_fence() opened and closes: what could end it is broken up. */
void md_fence(FILE *out);
void md_fenced(const char *text, FILE *out);
