#pragma once

#include "model/summary.h"
#include "run/stored.h"
#include "run/tally.h"

/*
 * From counts to what can be said: rates with intervals, always or now and
 * then, which slot is odd, between which log lines it dies.
 */
struct findings_source {
	const struct tally *tally;
	struct case_store *cs;
	struct series_id series;
	struct readings *readings;
};

void findings_clean_runs(struct series_summary *summary); /* by its rate */
int findings_summarise(const struct findings_source *of, struct series_summary *ret,
		       struct err *err);

/* What observers saw of an example trial; `ret` stays NULL when nothing is there. */
int findings_crash(struct reading *reading, struct case_store *cs, struct crash **ret,
		   struct err *err);

/* The signatures alone, the frequent ones first, those of every run last. */
int findings_signatures(const struct findings_source *of, struct signature_summaries *ret,
			struct err *err);
