#pragma once

#include "base/err.h"
#include "base/vec.h"

/*
 * Asking git. What may take long and writes runs in a slot instead (workshop.c),
 * where it is ended and cleaned up with redhand.
 */
struct git_answer {
	char *out;  /* what it printed */
	char *talk; /* the last of what it said on stderr, made printable */
	int status; /* exit status; 128 + signal */
};

void git_answer_deinit(struct git_answer *answer);

/* Runs `git -C dir ARGS…`; the arguments end with NULL. An error only when git cannot be run. */
int git_ask(const char *dir, const char *const *args, struct git_answer *ret, struct err *err);

/* The same where any status but 0 is an error that tells what git said. One line: without its
 * end. The result is the caller's to free. */
int git_line(const char *dir, const char *const *args, char **ret, struct err *err);

/* The variables that would lead git to another repository than that of its directory, as `git
 * rev-parse --local-env-vars` has them. NULL at the end. */
extern const char *const git_variables[];
