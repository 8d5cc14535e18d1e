#pragma once

#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/pack.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/chaos_knobs.h"
#include "model/signature.h"
#include "model/trial.h"
#include "run/expected_tests.h"

/*
 * What a trial is asked to do.
 *
 * `struct trial_settings` is the same for all trials of a pool: the slots get
 * it by being forked. `struct trial_job` is one trial and is sent to its slot.
 */
enum keep {
	KEEP_FAILED, /* directories of passing trials are dropped */
	KEEP_ALL,
	KEEP_NONE,
};

/* What is put into the target, cheapest first (docs/glossary.md). */
enum observer {
	OBSERVE_NONE,
	OBSERVE_VALGRIND, /* none of ours: the program runs under Memcheck, which says what it sees
			   */
	OBSERVE_CRASH,	  /* from here on the agent is loaded */
	OBSERVE_IDS,
	OBSERVE_WATCH, /* ids, with watches of the plan */
	OBSERVE_HEAP,  /* ids, with guards around blocks */
	OBSERVE_FENCE, /* heap, with blocks that end at closed pages */
	OBSERVERS,
};

extern const char *const observer_names[]; /* NULL at the end */

enum trial_flags {
	TRIAL_SHARE_TMP = 1 << 0, /* leave TMPDIR alone */
	TRIAL_PTY = 1 << 1,	  /* stdout and stderr are a terminal */
	TRIAL_TRACED = 1 << 2,	  /* watches go through a tracer, not through perf */
	TRIAL_PAGES = 1 << 3,	  /* what is watched lies on watched pages */
	TRIAL_PYTHON = 1 << 4,	  /* objects of CPython are followed where blocks are */
};

/* What all trials of a command may use together, in however many series they are. The runner keeps
 * count and ends a run that has used it up. */
struct trial_budget {
	double deadline_s;	   /* CLOCK_MONOTONIC: trials that run then are ended; 0: none */
	uint64_t trials;	   /* that may still be started; UINT64_MAX: any number */
	uint64_t failures;	   /* failing trials that may still come; UINT64_MAX: any number */
	bool spent;		   /* a run was ended because of it */
	const struct strv *always; /* ids of what every run shows: a trial with no other uses up no
				    * failure; NULL: not known */
};

struct fail_on {
	char *pattern;
	regex_t regex;
};

struct readings;
struct fleet;
struct machine_facts;

/* The case's directory of trials. */
struct trials_place {
	char *path;		/* absolute */
	uint64_t device, inode; /* of it, when it was found; 0: not known */
	char *tmp_dirs;		/* where trials have their temporary directories; NULL: nowhere */
};

/* Which lines of the output tell how far a trial came. */
struct crumb_pattern {
	bool given; /* else every line is one */
	char *text; /* as it was given; NULL */
	regex_t regex;
};

/* What several series have in common. The caller's. */
struct trial_shared {
	struct trial_budget *budget; /* NULL: none */
	struct fleet *fleet;	     /* of other machines that run them; NULL: this one does */
	struct readings *readings;   /* that the command keeps open; NULL: each series its own */
};

/* Every trial gets the draw of one seed, or each has a seed of its own. */
struct chaos_seed {
	bool given;
	uint64_t value;
};

struct trial_settings {
	char *cwd;	  /* NULL: where redhand was started */
	char *stdin_path; /* /dev/null unless the user named a file */
	struct trials_place trials;
	unsigned int flags; /* enum trial_flags */
	enum keep keep;
	uint64_t timeout_ns;   /* 0: none */
	uint64_t linger_ns;    /* for processes that outlive the command */
	uint64_t output_limit; /* bytes kept of each stream */
	unsigned int ignored;  /* bit per enum failure_kind that is no failure here */
	struct crumb_pattern breadcrumb;
	VEC(struct fail_on) fail_on;
	bool children;			/* crashes that a parent hides count, too */
	char *agent_dir;		/* of the libraries to preload; NULL: none is needed */
	sigset_t signal_mask;		/* redhand's own at start, for the command */
	const struct test_names *tests; /* the full list where jobs want parts of it; else NULL */
	unsigned int chaos; /* enum chaos_knob: of every trial, unless its job says otherwise */
	struct chaos_seed chaos_seed;
	struct strbuf plan_items; /* of every trial's plan (wire/plan.h), one after the other */
	/* Of the program's own, as the user described them (plan/hooks/allocator.h), for who
	 * decides by himself which trials follow them. Empty: none, or plan_items has them. */
	struct strv allocators;
	struct trial_shared shared;
};

/* A file that the slot puts into the trial's directory before it starts the command. */
struct trial_file {
	char *name, *content;
};

/* Name of the fifo in the trial's directory through which tests are told when the list wants
 * marks. */
#define TRIAL_MARKS "marks"

/* A slot takes a second job while it works on the first, so that a short trial need not wait for
 * redhand to be scheduled. */
#define POOL_DEPTH 2

struct trial_job {
	struct trial_number number;
	unsigned int slot;
	struct strv argv;
	char *cwd;	 /* NULL: that of the settings */
	struct strv env; /* NAME=VALUE sets, NAME alone removes */
	enum observer observer;
	bool learn;	  /* report the order of breadcrumbs */
	bool without_ids; /* blocks are not followed, whatever the observer */
	bool pages;	  /* what is watched lies on watched pages */
	bool python;	  /* as TRIAL_PYTHON */
	bool wild;	  /* a crash looks where else in memory its wild pointers stand */
	bool examined;	  /* its directory is looked at whether it fails or not */
	bool growth; /* record live blocks at each line, and report which lines are milestones */
	struct strv held;	   /* with growth: who points to blocks of these contexts (keys)? */
	uint64_t held_after_lines; /* looked for then, or at the end */
	struct chaos chaos;
	struct strbuf plan_items; /* of this trial's plan, after those of the settings */
	VEC(struct trial_file) files;
	struct wanted_list wanted;
};

/* What comes back. */
struct trial_result {
	struct trial_number number;
	unsigned int slot;
	char *trouble; /* redhand could not run it (a sentence); NULL = `end` is valid */
	int trouble_code;
	bool left; /* its directory is still there */
	bool lost; /* with the machine that ran it: neither passed nor failed; not part of messages
		    */
	const struct machine_facts
		*machine; /* NULL: this machine; as long as the fleet; likewise */
	struct trial_end end;
};

void trial_settings_deinit(struct trial_settings *settings);
void trial_job_deinit(struct trial_job *job);
void trial_result_deinit(struct trial_result *result);

void trial_job_pack(const struct trial_job *job, struct strbuf *sb);
bool trial_job_unpack(const char *bytes, size_t len, struct trial_job *ret);
void trial_result_pack(const struct trial_result *result, struct strbuf *sb);
bool trial_result_unpack(const char *bytes, size_t len, struct trial_result *ret);

/* A copy of `text` with {slot} and {trial} replaced. */
char *trial_substitute(const char *text, unsigned int slot, struct trial_number number);
