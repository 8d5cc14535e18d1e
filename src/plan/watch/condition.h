#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "wire/plan.h"

/*
 * Which hits count: --when EXPR, compiled into steps that the agent carries out.
 *
 * As in C: || && | ^ & == != < <= > >= << >> + - ! ~ and parentheses, over unsigned 64-bit numbers;
 * old, new, size, tid, age; changes, clears(BIT), sets(BIT); writer == NAME, writer != NAME, where
 * NAME is a function or a module's file name.
 */
struct when_name {
	char *name;
	size_t step; /* steps[step] is to get its ranges */
	size_t at;   /* where it stands in the text */
};

struct when {
	struct plan_step steps[PLAN_STEPS_MAX];
	size_t count;
	VEC(struct when_name) names;
};

/* -EINVAL with the place of the mistake under the text. */
int when_compile(const char *text, struct when *ret, struct err *err);
void when_deinit(struct when *when);
