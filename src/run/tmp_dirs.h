#pragma once

#include "base/err.h"
#include "run/job.h"

/*
 * The directory that holds the temporary directories of all trials of one redhand, outside of the
 * project and with a short path.
 */

/* Makes settings->trials.tmp_dirs; tmpdir_remove() removes it. */
int tmp_dirs_make(struct trial_settings *settings, struct err *err);

/* Its descriptor; -1 where trials have no temporary directory of their own. */
int tmp_dirs_open(const struct trial_settings *settings);
