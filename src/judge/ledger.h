#pragma once

#include "judge/rules.h"

/*
 * The ledger: each built-in explanation is confirmed, excluded, open or untested. Private to
 * judge/.
 *
 * An explanation is excluded in two ways only. What was seen contradicts it: the caught store made
 * the very value that failed. Or an experiment that would have shown it saw nothing in enough
 * failing trials. The verdict's own explanation, and those of its alternatives, are never excluded.
 */

#define EXCLUDED_BELOW 0.05 /* of that chance: five failing trials at full coverage */

/* What the experiments say about an explanation by themselves. */
struct looked_at {
	bool any;		 /* one of them could have shown it */
	bool excluded;		 /* … would have, and did not */
	enum experiment_kind by; /* that says most; EXPERIMENT_KINDS: none */
	uint64_t telling;
	double missed;
};

const char *ledger_id(enum explanation explanation); /* "narrow" */

struct looked_at ledger_look(const struct facts *facts, enum explanation explanation);

/* judge_would_tell() */
bool ledger_would_tell(const struct verdict *verdict, enum experiment_kind kind);

/* Fills in ret->ledger. `rule` and `proof` are those of the class that was chosen; NULL when
 * nothing fits. */
void ledger_fill(const struct facts *facts, const struct rule *rule, const struct proof *proof,
		 struct verdict *ret);
