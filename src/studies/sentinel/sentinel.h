#pragma once

#include "model/rate_seen.h"
#include "model/said.h"
#include "model/signature.h"
#include "run/settings.h"

/*
 * A sentinel: a directory that lies in the project and can tell whether a known failure is still
 * there, on any checkout and machine.
 *
 *	sentinel.txt  what is here, as text: a keyword and its words on each line
 *	run.sh        plain shell entry
 *	README.md     for people
 *	files/        the reproducer's own files, verbatim
 *	tests.txt     the minimal list of tests, when there is one
 *
 * No path in it is absolute unless it leads out of the project: {root} stands for the project's
 * directory, {sentinel} for the sentinel's own.
 */
#define SENTINEL_FILE "sentinel.txt"
#define SENTINEL_FILES "files"
#define SENTINEL_DIR_DEFAULT "redhand-sentinel"

struct sentinel {
	struct series_settings trial; /* program, env, cwd and stdin with {root} and {sentinel} */
	char *root;	   /* the way from the sentinel to the project; NULL: it is not inside */
	struct strv files; /* copies in files/ of what lies in the project under the same name */
	struct strv own;   /* copies in files/ that the command uses instead of what they were */
	struct strv tests; /* the minimal list; empty when there is none */
	struct signature signature;    /* the failure that is expected */
	struct strv known;	       /* ids of failures that every run showed: a separate issue */
	uint64_t failed, trials;       /* recorded */
	char *made, *commit, *redhand; /* when, from which commit, by which redhand; may be NULL */
};

void sentinel_deinit(struct sentinel *sentinel);

void sentinel_write(const struct sentinel *sentinel, struct strbuf *ret);

/* -EINVAL, with a sentence, when it is no such text; -EPROTO when a newer redhand wrote it. */
int sentinel_read(const char *text, struct sentinel *ret, struct err *err);

/* Reads DIR/sentinel.txt. -ENOENT when there is none. */
int sentinel_open(const char *dir, struct sentinel *ret, struct err *err);

/*
 * Puts real paths in the places of {root} and {sentinel}, for a sentinel that lies in `dir`.
 * `root` is the user's word for the project, NULL: found from the recorded way or, when that leads
 * nowhere, the git checkout around `dir`. Adds a sentence to `notes` for each file that is not what
 * it was.
 */
int sentinel_settle(struct sentinel *sentinel, const char *dir, const char *root,
		    struct said_list *notes, struct err *err);
