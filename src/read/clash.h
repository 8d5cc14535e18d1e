#pragma once

/*
 * Does a program say that somebody else has what it wants: a port, a file, a lock?
 *
 * Such words are a hint and no proof: what settles it are trials that run one at a time.
 */

/* The line that says so, which the caller frees; NULL: none does. It is as the program wrote it. */
char *clash_read(const char *text);
