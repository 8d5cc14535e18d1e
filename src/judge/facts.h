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
struct stage {
	const struct home *home;
	VEC(struct suspect) suspects;		/* most caught first */
	uint64_t watched;			/* failing trials in which the victim was watched */
	VEC(const struct evidence *) imprecise; /* last writes whose writer is not known */
};

struct facts {
	const struct evidence_list *list;
	VEC(struct stage)
	chain;		 /* from the home that the failure read to the origin; may be
			  * empty */
	uint64_t trials; /* run; 0 unknown */
};

void facts_init(struct facts *facts, const struct evidence_list *list);
void facts_deinit(struct facts *facts);

/* The last stage of the chain at which somebody was caught in most of the watched trials (the first
 * at which anybody was, if there is none), and who was caught most; NULL. */
const struct stage *facts_origin(const struct facts *facts);
const struct suspect *stage_first(const struct stage *stage);

/* How many different trials the pieces come from. */
#define EVIDENCE_TRIALS(vec) evidence_trials((vec)->items, (vec)->count)
uint64_t evidence_trials(const struct evidence *const *items, size_t count);

/* Did the store change the field? A store of the value that was there did nothing. */
bool write_changed(const struct write_seen *write);

/* Bits of the field that it changed. */
uint64_t write_mask(const struct write_seen *write);

/* How often the same instruction was seen to leave there, without harm, what cannot be an address
 * either, in place of what may have been one, or of another number, as this time; in this trial or
 * another. Who does that again and again writes what belongs there as he sees it: a field of
 * another kind of object. */
#define HABIT 3 /* times that are no accident */
uint64_t write_habit(const struct evidence_list *list, const struct evidence *write);

/* The same where no address stood there before: it is a number, and whoever reads it as an address
 * takes the object for another kind. */
bool write_of_habit(const struct evidence_list *list, const struct evidence *write);

/* Did it replace what was no address either, and did not put there itself? Then it spoilt nothing
 * that was right before. */
bool write_over_number(const struct evidence_list *list, const struct evidence *write);

/* Was what is no address put into that home in two trials that passed, by anybody? */
bool write_of_numbers(const struct evidence_list *list, const struct evidence *write);

/* Same code: a function and, in emitted code, the instruction. */
bool same_writer(const struct write_seen *a, const struct write_seen *b);
