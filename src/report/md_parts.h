#pragma once

#include <stdio.h>

#include "model/investigation.h"

/* The parts of the Markdown report, a file for each group of sections. Private to report/. */

/* Helpers (investigation_md.c). */
void md_heading(const char *text, FILE *out);
void md_time(int64_t ms, FILE *out);
void md_stack(const struct investigation *inv, const struct stack *stack, FILE *out);
void md_evidence_ids(const uint64_t *items, size_t count, FILE *out);
void md_rate(const struct rate *rate, FILE *out);

/* How often: as it is, by arm, by slot, by observer (md_rates.c). */
void md_rates(const struct investigation *inv, FILE *out);

/* What was found out (md_cause.c). */
void md_key_finding(const struct investigation *inv, FILE *out);
void md_root_cause(const struct investigation *inv, FILE *out);

/* What was done (md_record.c). */
void md_commits(const struct investigation *inv, FILE *out);
void md_attempts(const struct investigation *inv, FILE *out);
void md_timeline(const struct investigation *inv, FILE *out);
void md_hypotheses(const struct investigation *inv, FILE *out);
void md_separate(const struct investigation *inv, FILE *out);
void md_evidence(const struct investigation *inv, FILE *out);
