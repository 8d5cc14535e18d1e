#pragma once

#include "base/command.h"
#include "case/case.h"

/*
 * The options that every command takes. A command's options struct starts with
 * `struct common_options common;` and COMMON_GROUP(struct …) is one of its groups.
 */
struct common_options {
	const char *case_dir;
	bool json;
	bool quiet;
	bool verbose;
};

extern const struct option common_option_table[];

void common_defaults(void *common);

#define COMMON_GROUP(type)                                                    \
	{                                                                     \
		.title = "Common options", .options = common_option_table,    \
		.offset = offsetof(type, common), .defaults = common_defaults \
	}

/* OPTION_GROUPS() of a command that takes these alone; its own first; its own behind them. */
#define COMMON_OPTIONS(type) OPTION_GROUPS(type, COMMON_GROUP(type))
#define OWN_OPTIONS(type, title, table) \
	OPTION_GROUPS(type, OWN_GROUP(title, table), COMMON_GROUP(type))
#define MORE_OPTIONS(type, title, table) \
	OPTION_GROUPS(type, COMMON_GROUP(type), OWN_GROUP(title, table))

#define CASE_DIR_DEFAULT "redhand-case"

/* Of a command that has sub-commands: no more than every one of them takes. */
struct common_only {
	struct common_options common;
};

/* Runs a command as it was called: applies -q and -v, prints its error. Returns an exit status. */
int common_run(const struct invocation *inv);

/* The status of a command that looked for something. */
int common_exit(bool interrupted, bool found);

/* An error unless the case is there: for what only a case can have, before one is made. */
int common_need_case(const struct common_options *common, struct err *err);

/* Opens a case that is there, for writing; unlike case_open(), a mistyped name makes none. */
int common_open_case(const struct common_options *common, struct case_store **ret, struct err *err);

/* A note to the user, for parts of redhand that do not speak themselves. */
void common_say(const char *id);

/* Is stdout a terminal that wants colour? */
bool common_colour(void);

/* The latest error as a document, unless one was printed. */
void common_error_json(void);

/* How wide stdout is; a usual width where it is no terminal. */
#define COLUMNS_DEFAULT 80
unsigned int common_columns(void);
