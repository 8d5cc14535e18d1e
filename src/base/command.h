#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/*
 * Commands and their options, declared once.
 *
 * A command is a row: name, summary, option groups, run(). From that row come
 * the parser, --help, the man page and the shell completions; nothing about an
 * option is written in a second place. Groups exist so that options shared by
 * several commands are declared once, too: a group says at which offset of the
 * command's own options struct its values live.
 */
enum option_kind {
	OPTION_FLAG,	 /* bool */
	OPTION_COUNT,	 /* uint64_t within [min, max] */
	OPTION_SHARE,	 /* double in (0, 1), also written as a percentage */
	OPTION_SIZE,	 /* uint64_t bytes: 64K, 1M, 2G */
	OPTION_DURATION, /* uint64_t nanoseconds: 250ms, 30 (seconds), 5m, 1h */
	OPTION_TEXT,	 /* const char * */
	OPTION_LIST,	 /* struct option_list; may be given more than once */
	OPTION_CHOICE,	 /* unsigned int, index into choices[] */
};

/* The values of an OPTION_LIST, pointing into argv. */
struct option_list {
	const char **items;
	size_t count;
};

struct option {
	const char *name; /* without the dashes */
	char letter;	  /* '\0' when it has none */
	enum option_kind kind;
	const char *metavar;	    /* NULL for flags */
	const char *help;	    /* one or more sentences; no trailing full stop needed */
	size_t offset;		    /* of the value within the group's struct */
	uint64_t min, max;	    /* OPTION_COUNT; max 0 = no limit */
	const char *const *choices; /* OPTION_CHOICE, NULL-terminated */
	const char *bare; /* OPTION_TEXT: its value when none is given; NULL: one must be */
};

/* A row of a table of options: OPTION(TEXT, "cwd", "DIR", offsetof(…), "Run the program in DIR").
 * What else it has comes last, as in `.choices = names`. */
#define OPTION(type, option, value, place, text, ...)                                      \
	{                                                                                  \
		.name = (option), .kind = OPTION_##type, .metavar = (value), .help = text, \
		.offset = (place), ##__VA_ARGS__                                           \
	}

struct option_group {
	const char *title;
	const struct option *options;	 /* ends with a NULL name */
	size_t offset;			 /* of the group's struct within the command's */
	void (*defaults)(void *options); /* of the group's struct, before parsing; may be NULL */
};

/* Exit statuses of redhand itself; the words for them are in main.c. */
enum exit_status {
	EXIT_AS_EXPECTED = 0,
	EXIT_FOUND = 1,
	EXIT_TROUBLE = 2,
	EXIT_INTERRUPTED = 130,
};

enum command_program {
	PROGRAM_NONE, /* nothing may follow -- */
	PROGRAM_OPTIONAL,
	PROGRAM_REQUIRED,
};

struct command;

struct invocation {
	const struct command *command;
	const void *options; /* the command's options struct */
	char **args;	     /* what is no option, before -- */
	size_t arg_count;
	char **program; /* what followed --, NULL-terminated; NULL when nothing did */
};

struct command {
	const char *name;	 /* of a sub-command: in full, "case hypothesis add" */
	const char *summary;	 /* the question it answers, one line, no full stop */
	const char *usage;	 /* after the name: "[options] -- PROGRAM ARGS…" */
	const char *description; /* paragraphs separated by an empty line */
	const char *examples;	 /* pairs of lines: the command, what it does; empty line between */
	const struct option_group *groups; /* ends with a NULL title */
	size_t options_size;
	unsigned int args_min, args_max; /* plain arguments before -- */
	enum command_program program;
	/* Where its exit statuses are not those of redhand: the words, and the one for wrong usage.
	 */
	const char *exit_statuses;
	int trouble;
	void (*defaults)(void *options); /* after those of its groups; may be NULL */
	/* An exit status, or a negative error that is told in `err` and printed by the caller. */
	int (*run)(const struct invocation *invocation, struct err *err);

	/* Ends with NULL. A command that has them is only the head of its sub-commands: their
	 * names begin with its own, and it has no run(). NULL: it has none. */
	const struct command *const *subcommands;
};

struct program_info {
	const char *name, *version, *summary;
	const struct command *const *commands; /* ends with NULL */
	const char *exit_statuses;	       /* lines "STATUS  meaning" */
};

/* Parses argv (argv[0] is the command's name) into a new options struct.
 * -ECANCELED: --help was asked for. Other errors are the user's mistakes, told in `err`. */
int command_parse(const struct command *command, int argc, char **argv, struct invocation *ret,
		  struct err *err);
void invocation_deinit(struct invocation *invocation);

/* Looks a command up by name; NULL when there is none. */
const struct command *command_find(const struct program_info *info, const char *name);

/* The sub-command that the words after the command's own name (argv[0]) spell; argv is moved so
 * that argv[0] is the last word of its name. A command without sub-commands is its own answer.
 * -ECANCELED: --help was asked for before a sub-command was complete; *ret is the command then. */
int command_resolve(const struct command *command, int *argc, char ***argv,
		    const struct command **ret, struct err *err);

/* Calls fn for the command, or for each of its sub-commands when it has some. */
void command_each(const struct command *command, void (*fn)(const struct command *c, FILE *out),
		  FILE *out);

/* The known name nearest to a mistyped one, or NULL when none is near. */
const char *nearest_name(const char *typed, const char *const *names, size_t count);

/* Generated from the tables. */
void help_program(const struct program_info *info, FILE *out);
void help_command(const struct program_info *info, const struct command *command, FILE *out);
void man_program(const struct program_info *info, FILE *out);
void man_command(const struct program_info *info, const struct command *command, FILE *out);
void completion_bash(const struct program_info *info, FILE *out);
void completion_zsh(const struct program_info *info, FILE *out);

/* Calls fn for every option of the command, in order of declaration. */
#define COMMAND_FOREACH_OPTION(command, group, option)                                             \
	for (const struct option_group *group = (command)->groups; group && group->title; group++) \
		for (const struct option *option = group->options; option->name; option++)

/* The members of a command about its options, which are a struct and groups of rows. */
#define OPTION_GROUPS(type, ...)                                                   \
	.groups = (const struct option_group[]){ __VA_ARGS__, { .title = NULL } }, \
	.options_size = sizeof(type)
#define OWN_GROUP(name, table)                      \
	{                                           \
		.title = (name), .options = (table) \
	}
#define OPTIONS_END          \
	{                    \
		.name = NULL \
	}
