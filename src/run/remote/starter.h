#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/said.h"

/*
 * Who has workers started: Slurm, ssh, or whatever command the user names.
 *
 * redhand has no scheduler of its own: it asks one that is there for as many workers as it has
 * slots, and tells what that one says about them.
 */
struct starter;

struct starter_start {
	unsigned int slots;
	const char *connect;  /* HOST:PORT that workers go to */
	const char *variable; /* NAME=VALUE that they prove themselves with */
	void (*say)(void *ctx, const struct said *said);
	void *say_ctx;
};

struct starter_ops {
	const char *name;
	bool takes_options; /* it is nothing without */
	/* Is what it needs here? */
	int (*check)(struct starter *s, struct err *err);
	int (*start)(struct starter *s, struct err *err);
	/* Now and then; negative: no worker will come any more. */
	int (*watch)(struct starter *s, unsigned int joined, struct err *err);
	void (*stop)(struct starter *s);
};

/* A process of ours that is a worker or leads to one. */
struct started {
	pid_t pid;	     /* 0: none */
	unsigned int slot;   /* of all */
	unsigned int deaths; /* in a row */
	uint64_t since_ns;
	struct strv argv;
	char *input; /* for its stdin; NULL */
};

struct starter {
	const struct starter_ops *ops;
	char *options; /* what stands behind the colon; "" */
	struct starter_start how;
	struct strv env;    /* of what is started */
	char *redhand;	    /* our own program */
	char *peer;	    /* a host that the nodes are near to; NULL: this machine */
	char *munge_socket; /* where MUNGE is said to be; NULL: it is not used */
	uint64_t looked_ns;
	unsigned int most_joined;

	VEC(struct started) started;
	int talk; /* what they print; -1 */

	struct strv jobs; /* of Slurm */
	pid_t asking;	  /* Slurm is being asked; 0 */
	uint64_t asked_ns;
	int answer; /* its answer; -1 */
	struct strbuf heard;
	struct said told;   /* what was said about them last */
	unsigned int again; /* how often more were asked for */
};

/* "slurm", "exec:TEMPLATE", …; -EINVAL with a sentence when there is no such. */
int starter_open(const char *runner, struct starter **ret, struct err *err);
void starter_close(struct starter *s); /* stops all that it started */
AUTO_DEFINE(struct starter, starter_close)

int starter_start(struct starter *s, const struct starter_start *how, struct err *err);
int starter_watch(struct starter *s, unsigned int joined, struct err *err);

extern const struct starter_ops starter_slurm, starter_ssh, starter_exec;

/* Runs a program to its end, at most so many seconds: its exit status, what it printed on stdout
 * and stderr. `input` may be NULL. */
int starter_ask(const struct starter *s, const char *const *argv, const char *input,
		unsigned int seconds, struct strbuf *ret_out, struct strbuf *ret_err,
		struct err *err);
/* Starts a program whose stdout is read later. */
int starter_begin_ask(struct starter *s, const char *const *argv);

/* Processes that are workers: started, started again when they end, ended. */
void started_add(struct starter *s, unsigned int slot, const struct strv *argv, const char *input);
int started_begin(struct starter *s, struct err *err);
int started_watch(struct starter *s, unsigned int joined, struct err *err);
void started_stop(struct starter *s);

void starter_say(const struct starter *s, const struct said *said);
