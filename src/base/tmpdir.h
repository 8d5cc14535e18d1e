#pragma once

#include "base/err.h"

/*
 * Temporary directories of this redhand: for their owner alone, and gone when redhand is gone.
 *
 * Whoever makes one has it locked for as long as he lives. One that nobody has locked was left by a
 * redhand that was killed; the next start removes it. A mark inside tells ours from what only has a
 * similar name.
 */

/* Makes PLACE/redhand-KINDXXXXXX; `place` NULL: $TMPDIR, or /tmp. `kind` is "" or "word-". The path
 * is the caller's to free. */
int tmpdir_make(const char *place, const char *kind, char **ret, struct err *err);

/* Removes it with all that is in it. NULL is fine. */
void tmpdir_remove(const char *path);

/* Removes what was left in `place` (NULL: as above). */
void tmpdir_sweep(const char *place);

/* For a process that outlives the one that made them: removes all of them. */
void tmpdir_remove_all(void);
