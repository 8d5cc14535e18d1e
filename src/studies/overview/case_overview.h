#pragma once

#include "case/stored_notebook.h"
#include "model/overview.h"

/* Everything that a case knows, from its stored trials and notes alone; no log is read. */
int overview_read(struct case_store *cs, struct case_overview *ret, struct err *err);

/* Counts what the trials after each attempt show (attempts.c). */
int attempts_count(struct case_store *cs, struct notebook *notebook, struct err *err);

/*
 * Cases in and below `dir`, to a small depth, in order of their names. Hidden directories and
 * links are not entered. A case that cannot be read is an entry, too, with the reason.
 */
void overview_find(const char *dir, struct case_lines *ret);

/* Adds the case in `dir` itself. */
void overview_add(const char *dir, struct case_lines *ret);
