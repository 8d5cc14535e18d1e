#pragma once

#include "cmd/trial_options.h"

/*
 * Allocators of the program's own: those that the user names (--allocator) and a malloc that is
 * linked into the program, which is found. What is to be followed goes into the plan of every
 * trial.
 */

/* Their functions are looked for now, so that a mistyped name is told before any trial is run.
 * `setup` knows the program; notes say what will not be seen. */
int trial_allocators_plan(struct trial_setup *setup, const struct trial_options *options,
			  const char *command, char *const *program, struct err *err);
