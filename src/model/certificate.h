#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/rate_seen.h"
#include "model/said.h"
#include "model/signature.h"

/*
 * What a run of a sentinel proves, in counts. Everything in it is owned by it unless it says const.
 */
enum expectation {
	EXPECT_FAILS, /* the known bug is still there */
	EXPECT_FIXED, /* it is gone */
};

extern const char *const expectation_names[]; /* NULL at the end */

/* Another way to fail that was met. */
struct other_failure {
	char id[SIGNATURE_ID_LEN + 1];
	char *summary;
	uint64_t count;
	uint64_t trial; /* an example */
	bool known;	/* every run showed it when the sentinel was made: a separate issue */
};

struct certificate {
	enum expectation expect;
	double confidence;  /* that was asked for */
	bool careful;	    /* `needed` allows for the uncertainty of the recorded rate */
	struct rate before; /* as recorded */
	uint64_t needed;    /* trials that this takes */

	uint64_t shown;	      /* trials that failed as recorded */
	uint64_t clean;	      /* trials that could have, and did not */
	uint64_t others;      /* trials that failed in a way not known: they say nothing about it */
	uint64_t shown_trial; /* the first of `shown`; 0 when there is none */
	VEC(struct other_failure) other_failures;
	bool allow_others; /* they do not stand against 'fixed' */
	bool interrupted;

	/* From here on made by certificate_conclude(). */
	bool met; /* as expected */
	struct rate now;
	double bound;  /* nothing shown: the rate is below this with 95 % confidence */
	double chance; /* of as few failures as now, had the recorded rate not changed */
	double p;      /* the same when that rate is itself an estimate: Fisher's exact test */
	struct said sentence;

	/* About the run. */
	const char *dir;
	char *const *program;
	const char *summary;	/* of the recorded failure */
	const char *signature;	/* its id */
	struct said_list notes; /* what differs from when it was made, a sentence each */
	double seconds;
};

void certificate_deinit(struct certificate *certificate);
