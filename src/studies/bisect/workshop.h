#pragma once

#include "run/job.h"
#include "studies/bisect/commits.h"

/*
 * Where commits are checked out and built: a few git worktrees inside the case, so that the
 * user's own checkout is never touched.
 *
 * A tree holds one commit; the slots share it, as they share the current directory in `repro`. Some
 * recent commits stay built, for the search comes back to them. Beyond that the tree unused for
 * longest gives way: the new commit is checked out over the old one and files that git does not
 * know stay, so that a build need not begin from nothing, as with `git bisect`.
 *
 * One build at a time, and no trial is started meanwhile: a busy machine changes rates. git and the
 * build run in a slot's process, which ends them with everything they started when redhand goes,
 * and holds the case's lock until then.
 */
struct workshop;

struct workshop_request {
	const struct commit_history *history;
	const char *dir;   /* its own, inside the case; made when missing */
	const char *build; /* for sh; NULL: nothing is built */
	char *const *program;
	const struct trial_settings *settings; /* of the trials: signal mask */
	unsigned int trees;
	int lock_fd;
	void (*tick)(void *ctx); /* now and then while something runs */
	void *ctx;
};

/* Clears away the trees that a redhand left which was killed. */
int workshop_clear(const struct commit_history *history, const char *dir, struct err *err);

/* The directory must have been cleared. */
int workshop_open(const struct workshop_request *request, struct workshop **ret, struct err *err);

/* Removes all trees. The builds' output stays. */
void workshop_close(struct workshop *w);
AUTO_DEFINE(struct workshop, workshop_close)

#define WORKSHOP_NONE SIZE_MAX

enum workshop_state {
	WORKSHOP_READY,
	WORKSHOP_UNUSABLE,    /* this commit cannot be tested: `why` */
	WORKSHOP_BUSY,	      /* trials run in all trees */
	WORKSHOP_INTERRUPTED, /* SIGINT, SIGTERM or SIGHUP is pending */
};

struct workshop_visit {
	enum workshop_state state;
	size_t tree;
	size_t evicted;	  /* the commit that was in it; WORKSHOP_NONE when none was */
	bool built;	  /* it was checked out and built for this visit … */
	uint64_t wall_ns; /* … in this time */
	struct err why;
};

int workshop_prepare(struct workshop *w, size_t commit, struct workshop_visit *ret,
		     struct err *err);

/* A trial begins or ends in this tree: until then it stays what it is. */
void workshop_enter(struct workshop *w, size_t tree);
void workshop_leave(struct workshop *w, size_t tree);

/* The directory in the tree where the program runs. */
const char *workshop_cwd(const struct workshop *w, size_t tree);

/* Can the program in there be observed? */
bool workshop_observable(const struct workshop *w, size_t tree);

/* What is being done for which commit, for progress; NULL: nothing. */
const char *workshop_activity(const struct workshop *w, size_t *ret_commit);
