#pragma once

#include "model/layout.h"
#include "model/minimal.h"
#include "model/notebook.h"
#include "model/said.h"
#include "model/summary.h"
#include "model/verdict.h"

/*
 * Everything that a case says about one failure, ready to be printed: the product of `report` and
 * of `hunt`. Written from the case alone; what it does not hold is empty here. Everything in it is
 * owned by it.
 */
struct series_entry {
	int64_t id;
	char *command; /* repro, compare, … */
	char *observer;
	int64_t began_ms, last_ms;
	struct rate rate;	    /* as it counts for its own command */
	VEC(struct arm_count) arms; /* of a comparison: their trials are not alike */
};

/* What an observer does to the rate. */
enum observer_effect {
	EFFECT_UNKNOWN, /* it is what the others are compared with, or nothing failed */
	EFFECT_NONE,	/* no sign of any */
	EFFECT_HIDES,
	EFFECT_RARER,
	EFFECT_MORE_OFTEN,
};

/* The identifier in JSON; NULL for EFFECT_UNKNOWN. */
const char *observer_effect_name(enum observer_effect effect);

struct observer_rate {
	char *name;
	struct rate rate;
	enum observer_effect effect;
	double p; /* of that */
	/* So many trials under it would show a halving of the rate without it, four times in five.
	 * Where the effect is unknown because nothing was run without: so many of these. 0: that
	 * rate is not known. */
	uint64_t enough;
	VEC(double) times; /* of the trials that passed */
	double seconds;	   /* their median; 0: none passed */
};

void observer_rate_deinit(struct observer_rate *observer);

/* What the search says about one test of the full list. */
enum cell_state { CELL_NOT_NEEDED, CELL_NEEDED, CELL_UNSURE, CELL_VICTIM };

/* A test of the full list, and whether it takes part. */
struct trigger_cell {
	char *name;
	enum cell_state state;
};

/* The shortest list of tests that brings the failure out. */
struct trigger_set {
	bool known;   /* a list has failed; else the rest is empty */
	bool proven;  /* each of its items was left out, too, and then it never failed */
	size_t total; /* items of the full list */
	VEC(struct minimal_item) items;
	VEC(struct trigger_cell) cells; /* the full list, in order */
	struct rate full, minimal;
	char *file; /* the list as a file; NULL */
};

struct investigation {
	char *case_dir;
	struct strv program; /* the command under suspicion; may be empty */
	struct strv options; /* of redhand, that it was run with: slots and their variables */
	char *root;	     /* of the project: where redhand was started, or its git root; NULL */
	VEC(struct series_entry) series; /* in the order in which they were begun */
	size_t main_series;		 /* that `summary` is of; series.count: none */
	bool counted;			 /* `summary` means something */
	struct series_summary summary;	 /* of the series that says most about the failure */
	struct trigger_set trigger;
	VEC(struct observer_rate) observers;
	/* All trials by slot, with p of a slot against the others, compared within each series. */
	VEC(struct slot_summary) slots;
	size_t odd_slot;    /* index into slots; slots.count when none differs significantly */
	bool slots_crashed; /* crashes are counted there; else all that count as failures */
	bool slots_differ;  /* the user gave slots something of their own (--slot-env) */
	/* Slots of who made a mapped file shorter, and of who died of it. */
	bool cut_known;
	unsigned int cut_by, cut_who;

	struct evidence_list evidence;
	bool judged; /* `verdict` means something */
	struct verdict verdict;
	struct block_layout layout; /* of investigation_block(), where somebody asked for it */
	VEC(struct ledger_entry) own_hypotheses; /* the user's */
	struct decision_list decisions;
	struct choice_list choices; /* experiments that the hunt chose */
	struct said_list notes;	    /* the user's, and what else should be known: a sentence each */
	struct notebook notebook;   /* the user's, as it was written */

	char *sentinel;		     /* the directory of the one that guards the failure; NULL */
	char *report;		     /* a file that has all of this in words; NULL */
	char *reproduce, *prove_fix; /* commands; NULL when the program is not known */
	uint64_t clean_runs;	     /* that prove_fix makes */
	double seconds;		     /* of this run of redhand */
	bool interrupted;
};

void investigation_deinit(struct investigation *inv);

/* The crash that the verdict speaks of, or the one of the most frequent failure; NULL. */
const struct crash *investigation_crash(const struct investigation *inv);

/* The stack of what the verdict accuses; of a verdict that accuses nobody, its last step, or where
 * it fails; NULL. */
const struct stack *investigation_accused(const struct investigation *inv);

/* The block that the field of the verdict is in: of a stale pointer the one that holds it; NULL. */
const struct block_life *investigation_block(const struct investigation *inv);

/* In how many of the failing trials that were watched by it the key of a block led to the victim;
 * false when none was. */
bool investigation_keys(const struct investigation *inv, uint64_t *ret_right, uint64_t *ret_tried);

/* The slot that stands out; NULL: none. */
const struct slot_summary *investigation_odd_slot(const struct investigation *inv);

/* A file as it is shown: relative to the project's root where it lies below it. */
const char *investigation_path(const struct investigation *inv, const char *file);
