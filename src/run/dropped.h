#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "model/trial.h"

/*
 * What a crash leaves in the directory that the program runs in, which is the user's project: a
 * core file, where the kernel's pattern is a plain name and the user's limit allows one, and Java's
 * hs_err_pidN.log. Such a file belongs to its trial and is moved there.
 *
 * Only what is new, is what its name says, and is of this trial: by the process in its name. A
 * plain `core` names none: it must not have been there before.
 */
struct dropped {
	int dir; /* where the program runs; -1: it cannot be opened */
	bool core_before;
};

void dropped_begin(struct dropped *dropped, const char *cwd); /* NULL: where we are */

/* The trial is over: its files go to trials/`name`. What cannot be moved stays where it is. */
void dropped_end(struct dropped *dropped, const struct trial_end *end, pid_t main, int trials,
		 const char *name);
