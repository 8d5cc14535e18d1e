#pragma once

#include "case/case.h"
#include "read/reading.h"

/*
 * Trials that are stored already, read again.
 *
 * A command may ask for the same trial several times: when it ends, in the next stage, in the
 * summary. So it keeps a few readings open, and the trial is read once all the same.
 */
struct readings {
	struct symbols *symbols; /* readings_symbols() */
	VEC(struct reading *) list;
	/* Where trials faulted, also of those that are no longer open. */
	VEC(struct known_fault) faults;
};

struct known_fault {
	uint64_t trial, address;
	enum fault_class fault;
};

/* Closes them all. */
void readings_deinit(struct readings *readings);

/* What readings name things by; made when first needed. */
struct symbols *readings_symbols(struct readings *readings, const struct case_store *cs);

/* Keeps it open; whose symbols must be these. With so many open, others are read again when they
 * are asked for. */
#define READINGS_MAX 50
void readings_keep(struct readings *readings, struct reading *reading);

/* Remembers where a trial faulted, if it did. */
void readings_note_fault(struct readings *readings, struct reading *reading);

/* NULL: by no fault, or nothing is left that would tell. Of a trial that was not noted the logs are
 * opened. */
const struct known_fault *readings_fault(struct readings *readings, struct case_store *cs,
					 uint64_t trial, int signal);

/* A trial of the case: the reading that is open, or a new one, which is kept. `signal` is what it
 * died of, 0: not known. The caller closes it. */
struct reading *readings_open(struct readings *readings, struct case_store *cs, uint64_t trial,
			      int signal);
