#pragma once

#include <stdint.h>

#include "model/hypothesis.h"
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
};

void notebook_deinit(struct notebook *notebook);
void parking_deinit(struct parking *parking);

/* The parking that holds now, or NULL. */
const struct parking *notebook_parked(const struct notebook *notebook);

/* The sentinel that guards the case, or NULL. */
const struct sentinel_note *notebook_sentinel(const struct notebook *notebook);
