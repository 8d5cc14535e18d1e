#pragma once

#include "judge/facts.h"
#include "model/verdict.h"

/* When nothing fits: the sentence, what was seen all the same, what is still open, and the next
 * cheapest experiment. The ledger is filled in before. Private to judge/. */
void tell_not_caught(const struct facts *facts, struct verdict *ret);
