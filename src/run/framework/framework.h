#pragma once

#include "base/auto.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/said.h"
#include "run/job.h"

/*
 * Test frameworks: which tests there are, and how to run some of them in a given order.
 *
 * A framework is one row of `struct framework_ops` in a file of its own;
 * docs/howto-framework.md is the checklist for the next one. What can be shrunk besides
 * tests (environment variables, arguments, lines of a file) are rows of the same table.
 */
struct framework;

enum framework_flags {
	FRAMEWORK_TESTS = 1 << 0,   /* the items are tests: one of them is the victim */
	FRAMEWORK_ORDERED = 1 << 1, /* runs the items in any order it is given */
	FRAMEWORK_MARKS = 1 << 2,   /* tests are told through the marks (run/expected_tests.h) */
};

/* Some items of the full list, in the order in which they are to run. */
struct framework_list {
	const uint32_t *items;
	size_t count;
};

struct framework_ops {
	const char *name;
	const char *noun, *nouns; /* what an item is, for sentences */
#define FRAMEWORK_ITEM(word) .noun = (word), .nouns = word "s"
	unsigned int flags; /* enum framework_flags */

	/* Is this command one of this framework's? NULL: only when asked for by name. */
	bool (*recognises)(char *const *program, const char *cwd);

	/* Fills in f->items, and what build() needs to know. */
	int (*list)(struct framework *f, struct err *err);

	/* Adds argv, environment and files of a trial that runs this list. job->number and ->slot
	 * are set; `dir` is the trial's directory, where the files will be. */
	void (*build)(const struct framework *f, const struct framework_list *list, const char *dir,
		      struct trial_job *job);

	/* The command that does the same without redhand: `path` is where file() has been stored.
	 * NULL: what build() makes. */
	void (*plain)(const struct framework *f, const struct framework_list *list,
		      const char *path, struct strv *argv, struct strv *env);

	/* The list as a file that the framework takes. NULL: one item a line. */
	void (*file)(const struct framework *f, const struct framework_list *list,
		     struct strbuf *ret);

	/* Did the run say nothing about its tests (wrong usage, broken set-up)? May be NULL. */
	bool (*no_information)(const struct trial_end *end);

	/* Would the plain command run the list in another order than build() does? May be NULL. */
	bool (*plain_differs)(const struct framework *f, const struct framework_list *list);

	/* What else could be done about the test that fails. May be NULL. */
	void (*advise)(const struct framework *f, uint32_t victim, struct said *ret);

	/* Does the command start processes that share the tests out? Then each trial is dearer than
	 * it need be. May be NULL. */
	bool (*shares_out)(char *const *program);

	void (*deinit)(struct framework *f);
};

/* What the user said. */
struct framework_setup {
	const char *name;     /* auto, or one of the table */
	char *const *program; /* what followed -- */
	const char *cwd;      /* NULL: where redhand is */
	const char *stdin_path;
	const struct strv *env; /* NAME=VALUE with {slot} and {trial} */
	const char *tests_path; /* --tests; NULL when not given */
	const char *shrink;	/* env, args or a file's name; NULL: tests */
	uint64_t timeout_ns;	/* for the run that lists the tests; 0: none */
};

struct framework {
	const struct framework_ops *ops;
	struct framework_setup setup;
	struct strv items;     /* the full list, in order */
	struct strv command;   /* for build(): the program's words, as the adapter wants them */
	struct strv plain;     /* per item: how a plain command line names it; empty: as it is */
	struct strv extra;     /* environment that a plain command needs */
	void *own;	       /* the adapter's */
	const char *found_out; /* the option by which the program itself told its tests; NULL */
};

/* Chooses the adapter, lists the items. The setup's pointers must stay valid. */
int framework_init(struct framework *f, const struct framework_setup *setup, struct err *err);
void framework_deinit(struct framework *f);

/* The plain command and the file, for any adapter. */
void framework_plain(const struct framework *f, const struct framework_list *list, const char *path,
		     struct strv *argv, struct strv *env);
void framework_file(const struct framework *f, const struct framework_list *list,
		    struct strbuf *ret);

/* A command that is none until its tests stand in it ({tests}): with the whole list, and {slot} and
 * {trial} left as they are. False: the command is one as it is. */
bool framework_whole(const struct framework *f, struct strv *argv);

/* Does this file contain googletest? */
bool framework_is_gtest(const char *path);

/* For adapters. */
void framework_add_word(struct trial_job *job, const char *word); /* {slot} and {trial} replaced */
void framework_add_file(struct trial_job *job, const char *name, const char *content);

/* PYTHONPATH=`dir` followed by what the program would have there. */
void framework_python_path(const struct framework *f, const char *dir, struct strv *env);

/* What our own module of the framework needs in a trial: itself (`name`, `content`), the wanted
 * tests as numbered lines, and where to find both and where its marks go. */
void framework_python_trial(const struct framework *f, const struct framework_list *tests,
			    const char *dir, const char *name, const char *content,
			    struct trial_job *job);

extern const struct framework_ops framework_pytest, framework_gtest, framework_ctest,
	framework_unittest, framework_list_file, framework_usage;
extern const struct framework_ops framework_env, framework_args, framework_lines;
