#pragma once

#include "case/case.h"
#include "model/family.h"

/*
 * Which failure is being chased.
 *
 * Either the user names it, or it is the crash that the full list shows most often. A test
 * that fails by assertion, now and then, is not the crash: it is taken only when the user asks for
 * it, or when nothing else ever failed.
 */
struct target_candidate {
	struct failure_family family; /* its rate counts the runs that showed it */
	uint64_t run;		      /* the last of them */
	bool crash;
};

struct target {
	const char *victim; /* the test that the user named; NULL when none was */
	bool exact;	    /* the user named it */
	bool lenient;	    /* a run that does not tell its tests can show it, too */
	bool faults;	    /* where the function counts, the kind of fault does, too */
	bool cuts;	    /* of a file that was cut, only the crash that meets its end counts */
	const struct target *among; /* only what is this one's can be chosen; NULL: anything */
	bool known;
	struct signature signature; /* once it is known */
	/* Other ways in which it shows itself; empty: only what is like the signature counts. */
	VEC(struct signature) members;

	uint64_t runs; /* of the full list */
	bool progress; /* runs tell which tests they start */
	VEC(struct target_candidate) candidates;
};

void target_deinit(struct target *t);

/* What another target counts as itself, this one does, too. */
void target_take_members(struct target *t, const struct target *from);

/* All members of the family count as the target from now on, unless the user named a signature. */
void target_take_family(struct target *t, const struct failure_family *family);

/* The user's own choice. -ENOENT, with a sentence, when the case does not know it. */
int target_set(struct target *t, struct case_store *cs, const char *id, struct err *err);

/* A run of the full list showed these signatures (ids separated by a space). */
int target_note(struct target *t, struct case_store *cs, const char *signatures, struct err *err);

/* Settles on a failure if one stands out; when nothing more will come, `last`, on what there is.
 * All of its family that was noted counts as the target, and so do failures that no test tells
 * apart from it. */
int target_choose(struct target *t, struct case_store *cs, bool last, struct err *err);

/* Settles on the one that was chosen before, with its family as it was noted. */
int target_adopt(struct target *t, struct case_store *cs, const char *id, struct err *err);

/* Is a failure with this signature the target's? By its id, or by all that does not depend on who
 * observed it. */
bool target_is(const struct target *t, const struct signature *signature);

/* Not the target, but may well have its cause: the same function dies of damaged memory by the bad
 * pointer, or by the exception or assertion that meets the bad value before. Nobody's kin where the
 * user named a signature. */
bool target_kin(const struct target *t, const struct signature *signature);

/* Is the target among these signatures? */
int target_shown(const struct target *t, struct case_store *cs, const char *signatures, bool *ret,
		 struct err *err);
