#pragma once

#include "base/err.h"
#include "case/case.h"

/*
 * Running counts of a series: how many trials per arm and slot showed which
 * signatures. Small, however many trials there are, and enough to decide when to
 * stop and what to print.
 */
struct tally_count {
	unsigned int arm, slot;
	char *node;	  /* "": this machine */
	char *signatures; /* ids separated by a space; "" = passed */
	bool cut_short;
	uint64_t count;
	uint64_t trial; /* smallest number: the example */
};

struct tally_signature {
	char id[SIGNATURE_ID_LEN + 1];
	uint64_t count;
	uint64_t full;	/* of these, trials that reached their own end */
	uint64_t trial; /* the first one */
	bool cuts;	/* it is what ends a trial before its end */
	bool always;	/* kept up to date by tally_add() */
};

struct tally {
	VEC(struct tally_count) counts;
	VEC(struct tally_signature) signatures;
	uint64_t trials;
	uint64_t full; /* trials that reached their own end */
};

void tally_deinit(struct tally *tally);

/* Reads what the case has of this series. */
int tally_load(struct tally *tally, struct case_store *cs, struct series_id series,
	       struct err *err);

void tally_add(struct tally *tally, const struct tally_row *row);

const struct tally_signature *tally_find(const struct tally *tally, const char *id);

/* Has anything failed now and then? If so, failures that every run shows do not count. */
bool tally_intermittent(const struct tally *tally);

/* Does a trial with these signatures count as failed, by that rule? */
bool tally_counts(const struct tally *tally, const char *signatures);

#define TALLY_ALL (~0u)

/* Trials and failures (by that rule) of one arm or slot, or of all. */
void tally_failed(const struct tally *tally, unsigned int arm, unsigned int slot,
		  uint64_t *ret_trials, uint64_t *ret_failed);
