#pragma once

#include "run/job.h"

/*
 * The parent of a slot, which does nothing but outlive it: whatever kills redhand and the slot, the
 * processes of the trial come to the keeper (PR_SET_CHILD_SUBREAPER), which ends them. Never
 * returns.
 */
_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings);

/* Starts a program below a keeper of its own, which ends it, and what it has left, when the other
 * end of *ret_hold is closed: by the caller, or because he is gone. The keeper's exit status is the
 * program's, 128 + signal when one ended it. -errno: what `start` says. */
typedef int (*keeper_start_fn)(void *ctx, pid_t *ret);
int keeper_start(keeper_start_fn start, void *ctx, pid_t *ret, int *ret_hold);
