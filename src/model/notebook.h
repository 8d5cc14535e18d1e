#pragma once

#include <stdint.h>

#include "base/vec.h"
#include "model/hypothesis.h"
#include "model/rate_seen.h"
#include "model/signature.h"
#include "model/world.h"

/*
 * What people write into a case: notes, hypotheses, workarounds, and that it was set aside.
 * Everything in it is owned by it. Times are milliseconds since the epoch.
 */
struct note {
	uint64_t id;
	int64_t made_ms;
	char *text;
};

/* What the world looked like when a command began to run trials; a row for each change. */
struct surroundings {
	int64_t seen_ms;
	struct world world; /* no variables */
};

/* What hides the bug for the time being. */
struct workaround {
	uint64_t id;
	int64_t made_ms;
	char *text;
};

struct parking {
	uint64_t id;
	int64_t made_ms;
	char *because, *until;
	struct world world; /* as it was then */
	int64_t resumed_ms; /* 0: still parked */
	char *gate;	    /* what the resumption gate said; NULL while parked */
};

/* Trials that a command ran after an attempt, up to the next one. */
struct attempt_trials {
	char *command; /* repro, hunt, … */
	struct rate rate;
	bool same_build; /* the program's file is the one that ran before the attempt */
};

/* A fix that somebody tried. */
struct attempt {
	uint64_t id;
	int64_t made_ms;
	char *text;
	struct world world; /* as it was then; no variables */
	char *diff;	    /* of the git checkout against its commit; NULL: none, or no checkout */
	uint64_t after;	    /* the last trial of the case at that time */
	VEC(struct attempt_trials) trials; /* filled in by studies/overview/attempts.c */
};

/* What somebody means to do next. */
struct step {
	uint64_t id;
	int64_t made_ms, done_ms; /* 0: still to do */
	char *text;
};

/* Another case that may have the same cause. */
struct relation {
	uint64_t id;
	int64_t made_ms;
	char *dir;
	struct strv common; /* what both verdicts name, as verdicts_common() says it */
};

/* A sentinel that was made from the case. */
struct sentinel_note {
	int64_t made_ms;
	char *dir; /* seen from the case directory */
	int64_t series;
	char signature[SIGNATURE_ID_LEN + 1];
	uint64_t failed, trials;
};

struct notebook {
	VEC(struct note) notes;
	VEC(struct hypothesis) hypotheses;
	VEC(struct workaround) workarounds; /* those in place */
	VEC(struct parking) parkings;	    /* the last one may still hold */
	VEC(struct sentinel_note) sentinels;
	VEC(struct attempt) attempts;	       /* the oldest first */
	VEC(struct step) steps;		       /* likewise */
	VEC(struct relation) relations;	       /* likewise */
	VEC(struct surroundings) surroundings; /* likewise */
};

void notebook_deinit(struct notebook *notebook);
void attempt_deinit(struct attempt *attempt);

/* The parking that holds now, or NULL. */
const struct parking *notebook_parked(const struct notebook *notebook);

/* The sentinel that guards the case, or NULL. */
const struct sentinel_note *notebook_sentinel(const struct notebook *notebook);
