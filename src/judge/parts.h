#pragma once

#include "judge/rules.h"

/* The parts of a judgement. Private to judge/. */

/* Fills in ret->hypotheses. `rule` and `proof` are those of the class that was chosen; NULL when
 * nothing fits. */
void hypotheses_decide(const struct facts *facts, const struct rule *rule,
		       const struct proof *proof, struct verdict *ret);

/* What is left when nothing fits: leads, open hypotheses, the next cheapest experiment. */
void not_caught(const struct facts *facts, struct verdict *ret);
