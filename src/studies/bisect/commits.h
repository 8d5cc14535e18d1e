#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "search/bisection/lineage.h"

/*
 * The commits that are in question: GOOD, and everything that BAD has and GOOD has not, parents
 * before children. Merged branches are part of it, each commit with its own ancestors, unless
 * only first parents are asked for: then it is the line of merges that one reads in
 * `git log --first-parent`.
 */
struct commit_history {
	char *top;	     /* the user's checkout, absolute */
	char *common;	     /* the repository itself: .git, absolute */
	char *prefix;	     /* from there to the directory that was meant: "" or "src/tests/" */
	struct strv commits; /* full hashes; GOOD is the first, BAD the last */
	size_t merges;	     /* commits with more than one parent within the range */
	struct lineage *lineage;
};

struct history_request {
	const char *dir; /* somewhere in the checkout; NULL: where we are */
	const char *good, *bad;
	bool first_parent;
};

/* -EINVAL, with a sentence, for what git does not know, and when GOOD is not an ancestor of BAD. */
int history_open(const struct history_request *request, struct commit_history *ret,
		 struct err *err);
void history_close(struct commit_history *history);

/* What people want to know of a commit; all of it printable. */
struct commit_words {
	char *author, *date, *subject;
};

/* Fills in the words of these commits, by their numbers. */
int history_words(const struct commit_history *history, const size_t *numbers, size_t count,
		  struct commit_words *ret, struct err *err);
