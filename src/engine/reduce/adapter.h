/*
 * An adapter: how one kind of test program lists its tests, runs some of them in
 * order in one process, and tells how far it came. One ops table each; the
 * minimiser never sees names, only indices into the list.
 *
 * To add one:
 *	1. reduce/adapter_NAME.c with its `const struct adapter_ops`, and a row in adapters[];
 *	2. tests with a real suite of that framework: ids with spaces, brackets and
 *	   unicode, thousands of them, order kept across files, a crash half-way;
 *	3. docs/howto-adapter.md: what its progress looks like.
 *
 * Rules that hold for all:
 *	- an id is opaque bytes without newline: never split, never re-quoted;
 *	- ids go into a file, never all on the command line;
 *	- after a run the ids that started must be a prefix of the wanted ones, or the run is
 *	  no information (the framework has sorted, dropped or repeated something);
 *	- a framework's own report file is not written when the process dies, so progress is
 *	  a stream that survives SIGKILL: a single write(2) per line, append only.
 */
#ifndef REDHAND_ENGINE_REDUCE_ADAPTER_H
#define REDHAND_ENGINE_REDUCE_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>

struct err;

/* What the user gave after `--`, and where the adapter may put its files. */
struct adapter_target {
	char *const *argv;
	const char *tests_file; /* --tests, or NULL */
	const char *dir;	/* private, exists, kept for the whole hunt */
};

struct adapter_list {
	char **ids; /* in execution order */
	size_t count;
};

/* A command ready to be run as one trial; all owned by the command. */
struct adapter_command {
	char **argv;
	char **env;	/* NAME=value to be added */
	char *cwd;	/* NULL: as it is */
	char *progress; /* the file its progress goes to; NULL: standard output */
};

enum adapter_event {
	ADAPTER_NOTHING, /* a line like any other */
	ADAPTER_START,	 /* `id` begins */
	ADAPTER_END,	 /* `id` came through */
	ADAPTER_FAIL,	 /* `id` failed by assertion: not the crash */
	ADAPTER_UNUSABLE /* no test will run: usage, collection or set-up error */
};

struct adapter_ops {
	const char *name;

	/* Is this command one of mine? For `--framework auto`; asked in table order. */
	bool (*recognises)(const struct adapter_target *target);

	/* The full list. -EINVAL with a sentence when the command has no place for tests,
	 * -ENOENT when the list is empty. */
	int (*list)(const struct adapter_target *target, struct adapter_list *ret, struct err *err);

	/* The command that runs exactly ids[0 .. count) in this order, in one process. `slot_dir`
	 * is that slot's own and empty. */
	int (*command)(const struct adapter_target *target, char *const *ids, size_t count,
		       const char *slot_dir, struct adapter_command *ret, struct err *err);

	/* One line of progress (without newline). `*ret_id` points into `line`. */
	enum adapter_event (*progress)(const char *line, const char **ret_id, size_t *ret_len);

	/* Exit statuses that say nothing about the tests (besides 125, which never does). */
	bool (*status_is_unusable)(int status);

	/* Can it run ids in another than the listed order? If not (googletest), the order
	 * check is left out and the result says so. */
	bool reorders;

	/* The result as people run it by hand, and the file the framework takes. */
	int (*reproducer)(const struct adapter_target *target, char *const *ids, size_t count,
			  char **ret_command, char **ret_file_text, struct err *err);
};

/* pytest, gtest, ctest, unittest, list; `list` is last and recognises only by option. */
extern const struct adapter_ops *const adapters[];
extern const size_t n_adapters;

#endif
