#pragma once

#include <stdbool.h>

/*
 * A finished report without what does not belong to other people: memory contents (values and
 * addresses), variables' values, names of the machine, the home directory and the project's place.
 * Works on what was written, so that no report has to think of it.
 */
struct share {
	const char *root; /* of the project; NULL */
	const char *home; /* NULL */
	const char *host; /* NULL */
};

/* The caller's to free. */
char *share_text(const struct share *share, const char *text);

/* A JSON document: members that hold memory become null. `mark` adds "shared": true. NULL when it
 * is none. */
char *share_json(const struct share *share, const char *text, bool mark);
