#pragma once

#include "studies/sentinel/sentinel.h"
#include "studies/sentinel/source.h"

/*
 * Making a sentinel: what the trials were, turned into a directory that any checkout can use.
 */

/* What people read in it, and what any CI can call. */
struct sentinel_words {
	const char *redhand; /* its version */
	const char *run_sh;
	void (*readme)(const struct sentinel *sentinel, struct strbuf *ret);
};

struct sentinel_request {
	const char *dir;
	const char *const *files; /* to copy and use from there, as the user named them */
	size_t file_count;
	const char *const *env; /* NAME or NAME=VALUE */
	size_t env_count;
	const struct sentinel_words *words;
	bool replace; /* a sentinel that is there already */
};

struct sentinel_made {
	struct sentinel sentinel; /* as written */
	struct said_list copied;  /* what has been copied */
	struct said_list notes;	  /* what the user should know */
};

/* -EEXIST when `dir` is not empty and not a sentinel that may be replaced. */
int sentinel_make(struct case_store *cs, const struct sentinel_source *source,
		  const struct sentinel_request *request, struct sentinel_made *ret,
		  struct err *err);

/* Has the case know that this sentinel guards it. */
int sentinel_remember(struct case_store *cs, const char *dir, const struct sentinel_source *source,
		      struct err *err);
void sentinel_made_deinit(struct sentinel_made *made);
