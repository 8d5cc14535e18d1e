#pragma once

#include "base/err.h"

/*
 * Temporary directories of this redhand: for their owner alone, and gone when redhand is gone.
 *
 * A child of whoever makes one waits for his end, and removes it then. It is locked as well: one
 * that nobody has locked was left when that child was killed, too, and the next start removes it. A
 * mark inside tells ours from what only has a similar name; of one without a mark, because its
 * maker was killed at once, the name tells who made it, and nothing is in it.
 */

/* Makes PLACE/redhand-KINDPID-XXXXXX; `place` NULL: $TMPDIR, or /tmp. `kind` is "" or "word-". The
 * path is the caller's to free. */
int tmpdir_make(const char *place, const char *kind, char **ret, struct err *err);

/* Removes it with all that is in it. NULL is fine. */
void tmpdir_remove(const char *path);

/* Removes what was left in `place` (NULL: as above). */
void tmpdir_sweep(const char *place);
