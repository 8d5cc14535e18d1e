/*
 * Does a hit count? A few steps that the tool compiled, on a stack of numbers. _sigsafe
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/plan.h"

/* What a predicate can ask about. Values are the field's first eight bytes. */
struct predicate_input {
	uint64_t old_value, new_value, size, tid, age, rip;
	uint32_t bytes; /* of the field */
};

/* No steps: true. Steps that do not add up (a damaged plan): true, too, rather than lose a hit. */
bool predicate_holds_sigsafe(const struct plan_watch *plan, const struct predicate_input *input);
