#pragma once

#include "engine/series/tally.h"
#include "model/summary.h"
#include "read/crash_report.h"

/*
 * From counts to what can be said: rates with intervals, always or now and
 * then, which slot is odd, between which log lines it dies.
 */
void findings_clean_runs(struct series_summary *summary); /* by its rate */
int findings_summarise(const struct tally *tally, struct case_store *cs, struct series_id series,
		       struct series_summary *ret, struct err *err);

/* Reads what observers saw of an example trial; `ret` stays NULL when nothing is there. */
int findings_crash(struct autopsy *autopsy, struct case_store *cs, uint64_t trial, int signal,
		   struct crash **ret, struct err *err);

/* The signatures alone, the frequent ones first, those of every run last. */
int findings_signatures(const struct tally *tally, struct case_store *cs, struct series_id series,
			struct signature_summaries *ret, struct err *err);
