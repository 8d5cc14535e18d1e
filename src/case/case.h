#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "model/chaos_knobs.h"
#include "model/crash.h"
#include "model/machine.h"
#include "model/minimal.h"
#include "model/signature.h"
#include "model/trial.h"
#include "model/trial_line.h"
#include "model/verdict.h"

/*
 * The stored case: DIR/case.db (SQLite, WAL) and DIR/trials/N/.
 *
 * One writer at a time (DIR/lock), any number of readers beside it. A trial is
 * stored in one transaction when it has ended, so SIGKILL at any moment loses
 * at most the trials in flight. Only this folder knows SQL. A case that was made inside a git
 * checkout is invisible to git, but for DIR/sentinel.
 */
struct case_store;

struct series_id {
	int64_t value;
};

enum case_mode {
	CASE_READ,  /* must exist */
	CASE_WRITE, /* created when missing; waits a moment for another writer to finish */
};

int case_open(const char *dir, enum case_mode mode, struct case_store **ret, struct err *err);
void case_close(struct case_store *cs);
AUTO_DEFINE(struct case_store, case_close)

const char *case_dir(const struct case_store *cs);

/* Its descriptor, for files in it; the case keeps it. */
int case_dir_fd(const struct case_store *cs);

/* Descriptor of DIR/trials; the case keeps it. */
int case_trials_dir(const struct case_store *cs);

/* Descriptor that holds the writer's lock, for processes that still work on a trial when redhand
 * itself has been killed: while they have it open, nobody else becomes the writer. */
int case_lock_fd(const struct case_store *cs);

/* What makes two runs of redhand go on with the same series. */
struct series_identity {
	const char *command;  /* repro, compare, … */
	const char *settings; /* canonical text of all that shapes a trial */
	const char *program;  /* what the program's file is */
};

struct series_found {
	struct series_id id;
	uint64_t seed;
	bool program_changed; /* the case has this series, but of another build of the program */
};

/* Finds the series with exactly this identity, or makes it (with that seed). */
int case_series(struct case_store *cs, const struct series_identity *identity, uint64_t seed,
		struct series_found *ret, struct err *err);

/* Forgets all trials of the series, rows first, then directories. */
int case_series_clear(struct case_store *cs, struct series_id series, struct err *err);

/* One series of the case. */
struct series_row {
	struct series_id id;
	const char *command, *settings, *program; /* as in series_identity */
	int64_t created_ms;
	int64_t last_ms; /* when its last trial started; 0 when there is none */
	uint64_t trials;
};

/* Every series, the oldest first. */
typedef int (*series_fn)(void *ctx, const struct series_row *row, struct err *err);
int case_series_each(struct case_store *cs, series_fn fn, void *ctx, struct err *err);

struct series_progress {
	uint64_t trials;
	uint64_t last_position; /* 0 when there is none */
	uint64_t learnt;	/* runs whose breadcrumb order is stored */
};

int case_series_progress(struct case_store *cs, struct series_id series,
			 struct series_progress *ret, struct err *err);

/* Has this run of the series been stored? */
int case_position_done(struct case_store *cs, struct series_id series, uint64_t position, bool *ret,
		       struct err *err);

/* The smallest trial number above `after` that no stored trial has. */
int case_free_number(struct case_store *cs, uint64_t after, struct trial_number *ret,
		     struct err *err);

/* Which list of items a trial of `minimize` ran, and how far it came. */
struct list_run {
	const char *items;    /* numbers in order, as ranges: "0-5,7" */
	unsigned int purpose; /* enum minimiser_purpose */
	uint64_t started;     /* how many of them started; 0 when that cannot be told */
	bool complete;	      /* all of them came to their end */
	bool told;	      /* false: the run says nothing about its list */
};

struct trial_record {
	struct trial_number number;
	struct series_id series;
	uint64_t position;
	unsigned int arm, slot;
	const struct trial_end *end;
	const struct signatures *signatures; /* empty: it passed */
	bool kept;			     /* its directory stays */
	const struct list_run *list_run;     /* NULL outside of minimize */
	const struct chaos *chaos;	     /* NULL: it was not disturbed */
	const struct machine_facts *machine; /* NULL: it ran here */
	bool more; /* the next one is to be added at once: they may be committed together */
};

/*
 * All of it, or nothing and an error. Of trials that come faster than they can be committed one by
 * one, up to CASE_BATCH_MOST are one transaction: readers see all of them or none, and a redhand
 * that is killed in between runs them again.
 */
#define CASE_BATCH_MOST 256u
int case_add_trial(struct case_store *cs, const struct trial_record *record, struct err *err);
/* Files and directories that workers got from here, by their absolute paths. */
void case_shipped(const struct case_store *cs, struct strv *ret);
int case_add_shipped(struct case_store *cs, const char *path, struct err *err);

/* Commits what waits for the next one, which does not come after all. */
int case_flush(struct case_store *cs, struct err *err);

/* Trials with the same arm, slot, node and outcome, counted. */
struct tally_row {
	unsigned int arm, slot;
	const char *node;	/* "" or NULL: this machine */
	const char *signatures; /* ids separated by a space; "" = passed */
	bool cut_short;
	uint64_t count;
	uint64_t trial; /* the smallest number among them */
};

typedef void (*tally_fn)(void *ctx, const struct tally_row *row);
int case_tally(struct case_store *cs, struct series_id series, tally_fn fn, void *ctx,
	       struct err *err);

/* -ENOENT when the case does not know it. */
int case_signature(struct case_store *cs, const char *id, struct signature *ret, struct err *err);

/* Where failing trials ended. `signature` "" stands for every trial that was cut short. */
struct window_row {
	const char *last;
	const char *next; /* the most frequent successor in runs that got further, or NULL */
	uint64_t count;
	uint64_t trial;
};

typedef void (*window_fn)(void *ctx, const struct window_row *row);
int case_windows(struct case_store *cs, struct series_id series, const char *signature,
		 window_fn fn, void *ctx, struct err *err);

/* Every stored run of the series, in order of position. */
struct run_row {
	uint64_t position, trial;
	unsigned int arm;
	const char *signatures; /* as in tally_row */
	const char *node;	/* where it ran; "": here */
	int signal;		/* of its own process, or of another one of the trial */
	uint64_t wall_ns;
	bool kept;
};

typedef void (*run_fn)(void *ctx, const struct run_row *row);
int case_runs(struct case_store *cs, struct series_id series, run_fn fn, void *ctx,
	      struct err *err);

/* Stores the names of a series' items, unless they are there. */
int case_set_items(struct case_store *cs, struct series_id series, const struct strv *names,
		   struct err *err);

/* The names of a series' items, in order; none outside of minimize. */
int case_items(struct case_store *cs, struct series_id series, struct strv *ret, struct err *err);

/* Every stored run of a list, in the order in which they ended. */
struct list_run_row {
	struct list_run run;
	const char *signatures; /* as in tally_row */
	uint64_t trial;
};

typedef int (*list_run_fn)(void *ctx, const struct list_run_row *row, struct err *err);
int case_list_runs(struct case_store *cs, struct series_id series, list_run_fn fn, void *ctx,
		   struct err *err);

/* What a search of `minimize` has found so far. */
struct minimal_record {
	struct series_id series;
	enum minimal_verdict verdict;
	const char *items;     /* numbers in order, as in list_run */
	const char *victim;    /* NULL when there is none */
	const char *signature; /* NULL while none is chased */
	struct rate minimal, full;
	double confidence;
	const struct strv *argv; /* the plain command; {case} stands for the case's directory */
	const struct strv *env;	 /* what it needs besides the user's own --slot-env */
};

int case_set_minimal(struct case_store *cs, const struct minimal_record *record, struct err *err);

/* What became of it when it was run again. */
int case_set_minimal_verdict(struct case_store *cs, struct series_id series,
			     enum minimal_verdict verdict, struct err *err);

/* What the search of that series found; a series of 0: the newest search that found a list. */
int case_minimal(struct case_store *cs, struct series_id series, struct minimal_list *ret,
		 struct err *err);

/* A commit of a series of `bisect` that was built, or could not be. */
struct build_record {
	uint64_t item;
	const char *unusable; /* why it cannot be tested; NULL when it can */
	uint64_t wall_ns;
};

/* Replaces what was known of that commit. */
int case_add_build(struct case_store *cs, struct series_id series,
		   const struct build_record *record, struct err *err);

typedef void (*build_fn)(void *ctx, const struct build_record *record);
int case_builds(struct case_store *cs, struct series_id series, build_fn fn, void *ctx,
		struct err *err);

/* A file that a process of a trial made shorter. */
struct cut_record {
	struct trial_number trial;
	const char *path;
	uint64_t device, inode, realtime_ns;
	const struct file_cut *cut;
};

int case_add_cut(struct case_store *cs, const struct cut_record *record, struct err *err);

/* Who last made this file shorter before `realtime_ns`; NULL when nobody is known to have. The
 * result is the caller's to free. */
int case_find_cut(struct case_store *cs, uint64_t device, uint64_t inode, uint64_t realtime_ns,
		  struct file_cut **ret, struct err *err);

/* One stored trial. */
struct trial_view {
	struct trial_number number;
	uint64_t position;
	unsigned int slot;
	char *command;	  /* repro, compare, … */
	char *settings;	  /* of its series, as in series_identity */
	char *signatures; /* ids separated by a space */
	int exit_status, signal;
	bool timed_out, kept;
	uint64_t wall_ns, peak_kib;
	char *last_crumb;   /* NULL for passing trials */
	struct chaos chaos; /* knobs 0: it was not disturbed */
};

/* -ENOENT when there is none. */
int case_trial(struct case_store *cs, struct trial_number number, struct trial_view *ret,
	       struct err *err);
void trial_view_deinit(struct trial_view *view);

/* Every stored trial, in order of their numbers. */
int case_trial_lines(struct case_store *cs, struct trial_lines *ret, struct err *err);

/* Of each breadcrumb of the series the one that most runs to the end had after it, in order of the
 * first one's text. */
typedef void (*crumb_order_fn)(void *ctx, const char *crumb, const char *next);
int case_crumb_order(struct case_store *cs, struct series_id series, crumb_order_fn fn, void *ctx,
		     struct err *err);

/* Trials of a series that chaos kept on one core, counted per core. */
struct core_row {
	int core;
	uint64_t trials, failed;
};

typedef void (*core_fn)(void *ctx, const struct core_row *row);
int case_cores(struct case_store *cs, struct series_id series, core_fn fn, void *ctx,
	       struct err *err);

struct use_row {
	double wall_mean_ns, wall_max_ns, user_mean_ns, system_mean_ns;
	uint64_t peak_kib, leftovers;
	uint64_t cut_full_buffer; /* crashed with stdout empty or a whole number of 4 KiB blocks */
	uint64_t cut_short;
	uint64_t full_with_output; /* reached their end and had printed to stdout */
};

int case_use(struct case_store *cs, struct series_id series, struct use_row *ret, struct err *err);

/*
 * What was seen, what follows from it, and what was done next (stored_evidence.c).
 */

/* Stores the piece and gives it its id. */
int case_add_evidence(struct case_store *cs, struct evidence *evidence, struct err *err);

/* All of it, in the order in which it was stored, with the case's trials counted. -EUCLEAN for
 * a damaged piece, by its number. */
int case_evidence(struct case_store *cs, struct evidence_list *ret, struct err *err);

int case_add_verdict(struct case_store *cs, const struct verdict *verdict, struct err *err);

/* The last one. -ENOENT when there is none. */
int case_verdict(struct case_store *cs, struct verdict *ret, struct err *err);

/* One line of a hunt, now. */
int case_add_decision(struct case_store *cs, const char *stage, const struct said *said,
		      struct err *err);
int case_decisions(struct case_store *cs, struct decision_list *ret, struct err *err);

/* An experiment that was chosen, when it is; and what came of it, when it has ended. */
int case_add_choice(struct case_store *cs, const struct choice_record *choice, uint64_t *ret_id,
		    struct err *err);
int case_end_choice(struct case_store *cs, uint64_t id, const struct choice_record *choice,
		    struct err *err);
int case_choices(struct case_store *cs, struct choice_list *ret, struct err *err);

/* Forgets evidence, verdicts, a hunt's decisions and choices; trials stay, and what bisections
 * said. */
int case_clear_evidence(struct case_store *cs, struct err *err);
