#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/rate_seen.h"
#include "model/signature.h"

/*
 * A family of failures: one corruption dies in many ways, and a signature is one of them.
 *
 * Members come in the same test, or without tests in the same function by the same signal, or used
 * a block of the same allocation when they died. What is rare, or cannot be told apart by a test,
 * is no family of its own: two families are told apart only where both are frequent and come with
 * different tests.
 */
struct failure_family {
	VEC(struct signature) members; /* the most frequent one first: it names the family */
	VEC(uint64_t) counts;	       /* trials that showed each member */
	struct rate rate;	       /* trials that showed any of them */
	uint64_t trial;		       /* an example */
	char *block;		       /* context of the block that was used; NULL: unknown */
};

struct failure_families {
	VEC(struct failure_family) list; /* most frequent first */
};

void failure_family_deinit(struct failure_family *family);
void failure_families_deinit(struct failure_families *families);

/* Do they come in the same test, or in the same function by the same signal? */
bool signatures_akin(const struct signature *a, const struct signature *b);

/* The family that has this signature as a member; NULL: none. */
const struct failure_family *family_of(const struct failure_families *families, const char *id);

bool family_has(const struct failure_family *family, const char *id);

/* Is it, or would it be, a member? */
bool family_takes(const struct failure_family *family, const struct signature *signature);

/* One more trial shows this member, which may be new. */
void family_count(struct failure_family *family, const struct signature *signature);

/* The member that was seen most often. */
const struct signature *family_name(const struct failure_family *family);

/* The test that all members came in; NULL: none, or several. */
const char *family_test(const struct failure_family *family);
