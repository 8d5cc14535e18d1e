#pragma once

#include "run/framework/framework.h"

/*
 * One run of a framework's own command, outside of any trial, to learn which tests there are.
 */
struct listing {
	char *dir;  /* a directory of its own, for files that the run wants or leaves */
	char *out;  /* what it printed on stdout */
	char *talk; /* the last lines of its stderr (or stdout, when that is empty): why it failed
		     */
	int status; /* exit status; 128 + signal */
};

int listing_open(struct listing *l, struct err *err); /* makes the directory */
int listing_run(struct listing *l, const struct framework *f, const struct strv *argv,
		const struct strv *env, struct err *err);
void listing_close(struct listing *l);

/* Puts a file into its directory. */
int listing_write(const struct listing *l, const char *name, const char *content, struct err *err);

/* Reads one; the caller's to free. */
int listing_read(const struct listing *l, const char *name, char **ret, struct err *err);

/* Hands `line` on to fn, without its line end; blank lines too. */
typedef int (*listing_line_fn)(void *ctx, char *line, struct err *err);
int listing_lines(char *text, listing_line_fn fn, void *ctx, struct err *err);
