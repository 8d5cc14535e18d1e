#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * An explanation that somebody offers, and what became of it.
 */
enum hypothesis_status {
	HYPOTHESIS_OPEN,
	HYPOTHESIS_FALSIFIED,
	HYPOTHESIS_CONFIRMED,
	HYPOTHESIS_STATUSES,
};

/* "open" and so on: the name in the case and in JSON. */
const char *hypothesis_status_word(enum hypothesis_status status);

/* The status with this name; HYPOTHESIS_STATUSES when there is none. */
enum hypothesis_status hypothesis_status_from(const char *word);

/* What was seen that decides about one: at most one of the two is not 0. */
struct citation {
	uint64_t trial;
	uint64_t evidence; /* id of a stored piece of evidence */
};

/* "17" is a trial, "e3" a piece of evidence. False when it is neither. */
bool citation_parse(const char *text, struct citation *ret);

struct hypothesis_change {
	int64_t made_ms;
	enum hypothesis_status status;
	char *because; /* NULL when nothing was said */
	struct citation seen;
};

/* One of the user's own. */
struct hypothesis {
	uint64_t id;
	int64_t made_ms;
	char *text;
	enum hypothesis_status status;
	VEC(struct hypothesis_change) changes; /* in order; the last one gave the status */
};

void hypothesis_deinit(struct hypothesis *hypothesis);
