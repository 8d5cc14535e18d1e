#pragma once

#include "model/minimal.h"
#include "model/notebook.h"
#include "model/rate_seen.h"
#include "model/summary.h"
#include "model/verdict.h"

/*
 * Everything that a case knows, brief enough for one screen. Everything in it is owned by it unless
 * it says const.
 */
struct signature_count {
	char id[SIGNATURE_ID_LEN + 1];
	char *summary;
	uint64_t count;
	uint64_t trial; /* an example */
	bool always;
};

struct series_overview {
	int64_t id;
	int64_t created_ms;
	char *command;	     /* repro, compare, … */
	struct strv program; /* empty when the case does not tell it */
	uint64_t jobs;	     /* 0 likewise */
	const char *observer;
	struct rate rate;  /* of the failures that come and go, when there are any; else of all */
	bool intermittent; /* which of the two */
	VEC(struct signature_count) signatures; /* those that come and go first, frequent first */
	VEC(struct arm_count) arms;		/* of a comparison */
};

/* A writer that `watch` caught. */
struct sighting_overview {
	uint64_t evidence, trial;
	bool failing;
	struct said text;
};

struct case_overview {
	const char *case_dir;
	VEC(struct series_overview) series; /* the oldest first */
	struct notebook notebook;
	struct decision_list decisions;
	struct choice_list choices;  /* experiments that the hunt chose */
	struct minimal_list minimal; /* .series 0 when there is none */
	bool judged;		     /* `verdict` is one; else it has the hypotheses alone, open */
	struct verdict verdict;
	VEC(struct sighting_overview) sightings; /* the oldest first */
};

void case_overview_deinit(struct case_overview *overview);

/* Are the trials of this command's series all of a kind? Those of minimize run different lists,
 * those of bisect different commits, those of a sentinel end as soon as they can: their share of
 * failures is no rate. */
bool command_has_rate(const char *command);
/* Is the command run as it is, without what a closer look may change? */
bool command_is_plain(const char *command);

/* The series that says how often it fails now: the newest that came and went, of the command as it
 * is before any other; NULL when none has. */
const struct series_overview *overview_latest(const struct case_overview *overview);

/* One case of several. */
struct case_line {
	char *dir;
	char *trouble; /* why it cannot be read; NULL when it can */
	struct case_overview overview;
};

struct case_lines {
	VEC(struct case_line) list;
};

void case_lines_deinit(struct case_lines *lines);
