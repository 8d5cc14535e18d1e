#pragma once

#include "model/investigation.h"

/*
 * A block in a run that failed beside the same block in runs that passed: its bytes right after a
 * store to the watched field. Borrows everything from the investigation.
 */
#define BESIDE_RUNS 3u /* that passed, at most */

enum beside_moment {
	BESIDE_FAILED,	/* after the store that the failure came by */
	BESIDE_SAME,	/* after the last store by the same code */
	BESIDE_EARLIER, /* that code did not write there: after the store that came before */
	BESIDE_LAST,	/* the same, and there was none: after the last one */
	BESIDE_KNOWN,	/* of a failing run: after another store; of that one no bytes are known */
	BESIDE_MOMENTS,
};

enum beside_difference {
	BESIDE_ALIKE,
	BESIDE_ADDRESS, /* addresses in all of them, which differ from run to run */
	BESIDE_VARIES,	/* runs that passed do not agree, or had the same at another store */
	BESIDE_DIFFERS,
	BESIDE_DIFFERENCES,
};

struct beside_run {
	const struct evidence *piece; /* EVIDENCE_WRITE */
	enum beside_moment moment;
};

/* A field, or a part of one: at most eight bytes, which all runs have. */
struct beside_row {
	int64_t offset;
	unsigned int len;
	const char *name; /* of the field that begins here; NULL */
	bool watched;	  /* some of it is the watched field */
	enum beside_difference difference;
};

struct beside {
	struct beside_run failed;
	VEC(struct beside_run) passed; /* never empty */
	VEC(struct beside_row) rows;
};

/* False: there are no two to compare, and `ret` is empty. */
bool beside_find(const struct investigation *inv, struct beside *ret);
void beside_deinit(struct beside *beside);

/* The bytes of a row as this run has them. */
const uint8_t *beside_bytes(const struct beside_run *run, const struct beside_row *row);

/* Do the runs that passed agree on this byte of the row, and not with the one that failed? */
bool beside_odd(const struct beside *beside, const struct beside_row *row, unsigned int at);

/* The identifiers in JSON: "same-code", "varies". */
const char *beside_moment_name(enum beside_moment moment);
const char *beside_difference_name(enum beside_difference difference);

/* Where in the block a pthread mutex lies that the thread held at this store: its number stands in
 * it. -1: none among the bytes that were recorded. */
int64_t write_mutex(const struct write_seen *write);

/* Did the other one's thread hold that mutex of `holder` at its own store? -1: its bytes are not
 * known. */
int write_shares_mutex(const struct write_seen *holder, const struct write_seen *other);

/* Was it the same instruction of the same function? */
bool write_same_site(const struct write_seen *a, const struct write_seen *b);
