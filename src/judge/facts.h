#pragma once

#include "base/vec.h"
#include "model/evidence.h"

/*
 * Evidence put in order for the rules: which home was watched in how many failing trials, who
 * wrote it last, who wrote it in just that way without harm. Private to judge/.
 *
 * Nothing here is owned but the arrays: everything points into the evidence.
 */

/* One writer of a home, and the failing trials in which it wrote what the failure found. */
struct suspect {
	VEC(const struct evidence *) writes; /* one per failing trial */
	/* Writes of the same instruction that changed the same field in the same way and did no
	 * harm: in a trial that passed, or to another block. */
	VEC(const struct evidence *) harmless;
	bool verified; /* all of `writes` left what the failure found (WRITE_FOUND) */
};

/* One home on the way from the failure back to the origin. */
struct chain_link {
	const struct home *home;
	VEC(struct suspect) suspects;		/* most caught first */
	uint64_t watched;			/* failing trials in which the victim was watched */
	VEC(const struct evidence *) imprecise; /* last writes whose writer is not known */
};

struct facts {
	const struct evidence_list *list;
	VEC(struct chain_link)
	chain;		 /* from the home that the failure read to the origin; may be
			  * empty */
	uint64_t trials; /* run; 0 unknown */
	uint64_t failed; /* of these */
	/* How the command fails by itself; NULL: nobody counted. */
	const struct failure_seen *failure;
	/* What was tried, all experiments of a kind taken together: trials 0, it was not made. */
	struct experiment_made made[EXPERIMENT_KINDS];
	double missed[EXPERIMENT_KINDS]; /* chance_missed() of them all */
};

void facts_init(struct facts *facts, const struct evidence_list *list);
void facts_deinit(struct facts *facts);

/* The last link of the chain at which somebody was caught in most of the watched trials (the first
 * at which anybody was, if there is none), and who was caught most; NULL. */
const struct chain_link *facts_origin(const struct facts *facts);
const struct suspect *link_first(const struct chain_link *link);

/* Was a writer caught in more than one trial? */
bool facts_writer_twice(const struct facts *facts);

/* How many different trials the pieces come from. */
#define EVIDENCE_TRIALS(vec) evidence_trials((vec)->items, (vec)->count)
uint64_t evidence_trials(const struct evidence *const *items, size_t count);

/* It has never failed as it is run, and did so under an observer. */
bool facts_only_observed(const struct facts *facts);

/* All trials with guards, fences or random contents, and those of them that failed. */
struct experiment_made facts_disturbed(const struct facts *facts);

/* Did the store change the field? A store of the value that was there did nothing. */
bool write_changed(const struct write_seen *write);

/* The same instruction, not only the same function. */
bool same_store(const struct write_seen *a, const struct write_seen *b);

/* The chance that so many trials show nothing, when every second of them would show it to an
 * experiment that sees this share of it. */
double chance_missed(uint64_t telling, double coverage);
