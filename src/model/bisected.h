#pragma once

#include "model/summary.h"

/*
 * The product of `bisect`, ready to be printed. Everything in it is owned by it unless it says
 * const.
 */
enum bisected_verdict {
	BISECTED_SEARCHING, /* interrupted before anything was sure */
	BISECTED_FOUND,	    /* one commit */
	BISECTED_RANGE,	    /* one of several: what would tell them apart cannot be tested */
	BISECTED_BEFORE,    /* GOOD fails, too */
	BISECTED_NEVER,	    /* nothing fails */
};

struct bisected_commit {
	char *hash;
	char *author, *date, *subject;
	size_t number;	    /* 0 is GOOD, the last is BAD */
	double probability; /* that it is the culprit; of GOOD: that, or one before it */
	struct rate rate;
	bool suspect;	/* it is the answer, or one of those that remain */
	char *untested; /* why it could not be tested; NULL when it could */
};

struct bisect_result {
	enum bisected_verdict verdict;
	char *good, *bad; /* full hashes */
	size_t total;	  /* commits in question; GOOD is not one of them */
	size_t merges;
	bool first_parent;
	/* What was tested, could not be, or is suspected; oldest first. */
	VEC(struct bisected_commit) commits;
	double probability, wanted; /* of the verdict; what --confidence asked for */
	double with_rate_doubt;	    /* of the verdict, when the rate itself may be another */
	double before, never;
	double rate, rate_low, rate_high; /* of the failure where it is there */
	struct rate there;  /* of all trials where it is, by the verdict; none: not known */
	double stated_rate; /* what the user said it was; 0: nothing */
	double clean_bound; /* nothing failed: BAD's rate is below this with that confidence */
	double to_go;	    /* while searching: trials expected */

	uint64_t trials, failed;	 /* that said something */
	uint64_t no_information;	 /* not in `trials` */
	uint64_t earlier;		 /* trials that were in the case already */
	uint64_t builds;		 /* of this run: commits checked out and built */
	uint64_t git_steps, git_repeats; /* what git bisect would take for the same; 0: unknown */

	char target[SIGNATURE_ID_LEN + 1]; /* "" when any failure counts */
	struct signature_summaries signatures;

	char *builds_dir; /* where the builds' output is; NULL: nothing was to be built */
	const char *case_dir;
	char *const *program;
	unsigned int jobs;
	double seconds;
	bool interrupted;
};

void bisect_result_deinit(struct bisect_result *result);
