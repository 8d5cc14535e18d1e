#pragma once

#include "run/job.h"

/*
 * The parent of a slot, which does nothing but outlive it: whatever kills redhand and the slot, the
 * processes of the trial come to the keeper (PR_SET_CHILD_SUBREAPER), which ends them. Never
 * returns.
 */
_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings);
