#pragma once

#include <sys/types.h>

#include "run/job.h"

/*
 * The parent of a slot, which does nothing but outlive it: whatever kills redhand and the slot, the
 * processes of the trial come to the keeper (PR_SET_CHILD_SUBREAPER), which ends them. When redhand
 * is gone, too, it removes the temporary directories.
 *
 * `redhand`: its pid. Never returns.
 */
_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings,
			   pid_t redhand);
