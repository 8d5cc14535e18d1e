#pragma once

#include "case/case.h"
#include "cmd/common.h"
#include "plan/hooks/libraries.h"
#include "run/job.h"
#include "studies/series/repro.h"
#include "studies/watch/mode.h"

/*
 * The options of every command that runs trials, and what they become.
 */
/* Trials on other machines. */
struct runner_options {
	const char *runner;
	const char *bind;
	struct option_list ship;
};

struct trial_options {
	uint64_t jobs;
	struct option_list slot_env;
	const char *cwd;
	const char *stdin_path;
	uint64_t timeout_ns;
	uint64_t linger_ns;
	uint64_t output_limit;
	bool share_tmp;
	bool pty;
	bool fresh;
	unsigned int keep;
	unsigned int observe;
	struct option_list allocators;
	struct option_list ignore;
	struct option_list fail_on;
	const char *breadcrumb;
	const char *chaos;
	const char *chaos_seed; /* text, because 0 is a seed, too */
	struct runner_options elsewhere;
};

extern const struct option trial_option_table[];

#define TRIAL_GROUP(type)                                                                          \
	{                                                                                          \
		.title = "Trials", .options = trial_option_table, .offset = offsetof(type, trial), \
		.defaults = trial_options_defaults                                                 \
	}

/* OPTION_GROUPS() of a command that runs trials, its own first. */
#define TRIAL_OPTIONS(type, title, table) \
	OPTION_GROUPS(type, OWN_GROUP(title, table), TRIAL_GROUP(type), COMMON_GROUP(type))

void trial_options_defaults(void *options);

/* What `jobs` is by default. */
uint64_t trial_options_cores(void);

struct trial_setup {
	struct trial_settings settings;
	struct strv slot_env;
	enum observer observer;
	char *unobserved;	  /* why the program cannot be observed; NULL when it can */
	struct strv notes;	  /* what the user should know about it besides, a sentence each */
	struct strbuf identity;	  /* canonical text: what makes two runs the same series … */
	struct strbuf program;	  /* … together with the program's content: size and hash */
	char *program_path;	  /* the file that is run */
	struct library_list seen; /* what else the command was seen to load; empty: nobody looked */
	bool joined;		  /* the alias for TMPDIR is another setup's, and so is the fleet */
	const char *runner, *bind; /* the options, where other machines run the trials; else NULL */
	struct strv ship;
	unsigned int slots;
	char *agent_link_dir; /* the same for an agent in a folder with spaces */
};

/* Checks everything the user said, the program included, before anything is run or written. */
int trial_setup_init(struct trial_setup *setup, const struct trial_options *options,
		     const char *command, char *const *program, struct err *err);

/* The same for a program that need not be there yet: a path relative to the directory of each
 * trial, which is another one each time. What goes through PATH or is absolute is checked. */
int trial_setup_init_later(struct trial_setup *setup, const struct trial_options *options,
			   const char *command, char *const *program, struct err *err);

/* Settles how memory is watched; trials that are watched another way are another series. The reason
 * is the caller's to free, NULL when there is nothing to say. */
int trial_setup_watch(struct trial_setup *setup, enum watch_mode wanted, char **ret_reason,
		      struct err *err);

/* What a study is told, once the case is open; begins to show progress. */
struct progress;
struct series_request trial_setup_series(const struct trial_setup *setup,
					 const struct trial_options *options,
					 const struct invocation *inv, struct progress *progress);

/* The last of it; says when the program is another one than the case was made with. */
void trial_progress_end(struct progress *progress, bool program_changed);

/* The files that its names are looked up in; points into `setup`. */
struct libraries_request trial_setup_files(const struct trial_setup *setup);

/* A second way to run trials of the same command in the same case. `opened` lives longer. */
void trial_setup_join(struct trial_setup *setup, const struct trial_setup *opened);

/* Opens the case for writing and settles where the trials' directories are; tells the user when
 * the program cannot be observed. */
int trial_setup_open(struct trial_setup *setup, const char *case_dir, struct case_store **ret,
		     struct err *err);

/* The seed as the user gave it, or a new one when `text` is NULL. */
int trial_seed(const char *text, uint64_t *ret, struct err *err);

/* What the series of this command is known by; points into `setup`. */
struct series_identity trial_setup_identity(const struct trial_setup *setup, const char *command);
void trial_setup_deinit(struct trial_setup *setup);
