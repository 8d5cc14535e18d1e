#pragma once

#include "base/err.h"
#include "run/job.h"

/*
 * The directory that holds the temporary directories of all trials of one redhand, outside of the
 * project and with a short path.
 *
 * It holds a link to the case's trials/, so that the next redhand of the same case finds and
 * removes what a killed one left.
 */

/* Makes settings->tmp_dirs. To be called with the lock of the case. */
int tmp_dirs_make(struct trial_settings *settings, struct err *err);

/* Removes it. NULL is fine. */
void tmp_dirs_remove(const char *dir);

/* Its descriptor; -1 where trials have no temporary directory of their own. */
int tmp_dirs_open(const struct trial_settings *settings);
