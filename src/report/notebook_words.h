#pragma once

#include <stdio.h>

#include "base/strbuf.h"
#include "model/notebook.h"

/* Attempts, steps and related cases in words; what text and Markdown share. Private to report/. */

/* What the trials after it show: "still fails: 8 of 60 failed, … (repro)". */
void attempt_outcome(const struct attempt *attempt, struct strbuf *sb);

/* What was changed: "+3 -1 in src/a.c, src/b.c"; nothing where no difference is known. */
void attempt_change(const struct attempt *attempt, struct strbuf *sb);

/* "both verdicts name function f; …". */
void relation_words(const struct strv *common, struct strbuf *sb);

/* The parts of `case show` that are about them. */
void print_attempts(const struct notebook *notebook, FILE *out);
void print_steps(const struct notebook *notebook, FILE *out);
void print_relations(const struct notebook *notebook, FILE *out);
