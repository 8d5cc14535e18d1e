/*
 * base/command.h: what people type, against the table of options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/command.h"
#include "base/mem.h"

struct shared {
	const char *dir;
	bool quiet;
};

struct options {
	uint64_t before; /* a canary: nothing may be stored here */
	uint64_t count;
	bool verbose, all;
	double share;
	uint64_t size, time_ns;
	const char *name;
	struct option_list env, tags;
	unsigned int keep;
	struct shared shared;
};

static const char *const keeps[] = { "failed", "all", "none", NULL };

static const struct option own[] = {
	{ .name = "count",
	  .letter = 'n',
	  .kind = OPTION_COUNT,
	  .metavar = "N",
	  .help = "runs",
	  .offset = offsetof(struct options, count),
	  .min = 1,
	  .max = 100 },
	{ .name = "verbose",
	  .letter = 'v',
	  .kind = OPTION_FLAG,
	  .help = "talk",
	  .offset = offsetof(struct options, verbose) },
	{ .name = "all",
	  .letter = 'a',
	  .kind = OPTION_FLAG,
	  .help = "all",
	  .offset = offsetof(struct options, all) },
	{ .name = "share",
	  .kind = OPTION_SHARE,
	  .metavar = "P",
	  .help = "share",
	  .offset = offsetof(struct options, share) },
	{ .name = "size",
	  .kind = OPTION_SIZE,
	  .metavar = "SIZE",
	  .help = "size",
	  .offset = offsetof(struct options, size) },
	{ .name = "timeout",
	  .letter = 't',
	  .kind = OPTION_DURATION,
	  .metavar = "TIME",
	  .help = "time",
	  .offset = offsetof(struct options, time_ns) },
	{ .name = "name",
	  .kind = OPTION_TEXT,
	  .metavar = "TEXT",
	  .help = "name",
	  .offset = offsetof(struct options, name) },
	{ .name = "env",
	  .letter = 'e',
	  .kind = OPTION_LIST,
	  .metavar = "NAME=VALUE",
	  .help = "env",
	  .offset = offsetof(struct options, env) },
	{ .name = "tag",
	  .kind = OPTION_LIST,
	  .metavar = "TAG",
	  .help = "tag",
	  .offset = offsetof(struct options, tags) },
	{ .name = "keep",
	  .kind = OPTION_CHOICE,
	  .metavar = "WHAT",
	  .help = "keep",
	  .choices = keeps,
	  .offset = offsetof(struct options, keep) },
	OPTIONS_END,
};

static const struct option common[] = {
	{ .name = "case",
	  .kind = OPTION_TEXT,
	  .metavar = "DIR",
	  .help = "case",
	  .offset = offsetof(struct shared, dir) },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "hush",
	  .offset = offsetof(struct shared, quiet) },
	OPTIONS_END,
};

static const struct option_group groups[] = {
	{ .title = "Own", .options = own },
	{ .title = "Common", .options = common, .offset = offsetof(struct options, shared) },
	{ .title = NULL },
};

static void defaults(void *options)
{
	*(struct options *)options = (struct options){ .before = 0xabcdef, .count = 20, .keep = 0 };
}

#define COMMAND(which)                                                                      \
	{                                                                                   \
		.name = "run", .summary = "runs it", .usage = "[options] -- PROGRAM ARGS",  \
		.groups = groups, .options_size = sizeof(struct options), .program = which, \
		.defaults = defaults                                                        \
	}

static const struct command required = COMMAND(PROGRAM_REQUIRED);
static const struct command optional = COMMAND(PROGRAM_OPTIONAL);
static const struct command none = COMMAND(PROGRAM_NONE);

/* Parses the words after the command's name. */
static int parse(const struct command *command, struct invocation *ret, struct err *err, ...)
{
	static char *argv[32]; /* the invocation's program points into it */
	int argc = 0;
	va_list args;

	*err = (struct err){ 0 };
	*ret = (struct invocation){ 0 };
	argv[argc++] = (char *)(uintptr_t)command->name;
	va_start(args, err);
	while ((argv[argc] = va_arg(args, char *)) != NULL)
		argc++;
	va_end(args);
	return command_parse(command, argc, argv, ret, err);
}

#define PARSE(command, ...) parse(command, &inv, &err, __VA_ARGS__, NULL)

/* Accepts, checks, frees. */
#define TAKES(check, ...)                                     \
	do {                                                  \
		struct invocation inv;                        \
		struct err err;                               \
		const struct options *o;                      \
		if (PARSE(&optional, __VA_ARGS__) != 0)       \
			fail_msg("refused: %s", err.message); \
		o = inv.options;                              \
		assert_int_equal(o->before, 0xabcdef);        \
		assert_true(check);                           \
		invocation_deinit(&inv);                      \
	} while (0)

#define REFUSES(command, sentence, ...)                                            \
	do {                                                                       \
		struct invocation inv;                                             \
		struct err err;                                                    \
		assert_int_equal(PARSE(command, __VA_ARGS__), -EINVAL);            \
		assert_int_equal(err.code, -EINVAL);                               \
		if (!strstr(err.message, sentence))                                \
			fail_msg("'%s' does not say '%s'", err.message, sentence); \
		assert_null(inv.options);                                          \
	} while (0)

static void long_options(void **state)
{
	TAKES(o->count == 7, "--count", "7");
	TAKES(o->count == 7, "--count=7");
	TAKES(o->count == 9, "--count=7", "--count", "9");
	TAKES(o->verbose && !o->all, "--verbose");
	TAKES(o->share > 0.049 && o->share < 0.051, "--share", "5%");
	TAKES(o->size == 65536, "--size=64K");
	TAKES(o->time_ns == 250000000, "--timeout=250ms");
	TAKES(strcmp(o->name, "a=b") == 0, "--name=a=b");
	TAKES(strcmp(o->name, "") == 0, "--name=");
	TAKES(strcmp(o->name, "-v") == 0 && !o->verbose, "--name", "-v");
	TAKES(o->count == 20 && o->keep == 0, "--all"); /* defaults stay */
	TAKES(strcmp(o->shared.dir, "d") == 0 && o->shared.quiet, "--case", "d", "--quiet");
}

static void short_options(void **state)
{
	TAKES(o->count == 7, "-n", "7");
	TAKES(o->count == 7, "-n7");
	TAKES(o->verbose && o->all && o->shared.quiet, "-vaq");
	TAKES(o->verbose && o->count == 12 && !o->all, "-vn12");
	TAKES(o->verbose && o->count == 12, "-vn", "12");
	TAKES(o->env.count == 1 && strcmp(o->env.items[0], "A=1") == 0, "-eA=1");
}

static void lists_and_choices(void **state)
{
	TAKES(o->env.count == 0 && !o->env.items, "-v");
	TAKES(o->env.count == 3 && strcmp(o->env.items[2], "C=3") == 0 && o->tags.count == 1, "-e",
	      "A=1", "--env=B=2", "--tag", "x", "--env", "C=3");
	TAKES(o->keep == 0, "--keep=failed");
	TAKES(o->keep == 1, "--keep", "all");
	TAKES(o->keep == 2, "--keep=none");
	REFUSES(&optional, "--keep: wants one of failed, all, none, not 'some'", "--keep=some");
	REFUSES(&optional, "not 'al'", "--keep=al");
	/* A list that was begun is freed when a later option is wrong. */
	REFUSES(&optional, "unknown option", "-eA=1", "--tag=t", "--nonsense");
}

static void wrong_values(void **state)
{
	REFUSES(&optional, "-n (--count): wants a whole number from 1 to 100, not '0'", "-n", "0");
	REFUSES(&optional, "-n (--count)", "--count=101");
	REFUSES(&optional, "not 'x'", "-nx");
	REFUSES(&optional, "--share: wants a share", "--share=2");
	REFUSES(&optional, "--size: wants a size", "--size=big");
	REFUSES(&optional, "-t (--timeout): wants a time", "-t", "soon");
	REFUSES(&optional, "--verbose takes no value", "--verbose=yes");
	REFUSES(&optional, "--count wants a value (N)", "--count");
	REFUSES(&optional, "--count wants a value (N)", "-n");
	REFUSES(&optional, "--count wants a value (N)", "-vn");
	REFUSES(&optional, "--name wants a value (TEXT)", "--name");
}

static void suggests(const char *typed, const char *want)
{
	struct invocation inv;
	struct err err;

	assert_int_equal(PARSE(&optional, typed), -EINVAL);
	assert_non_null(strstr(err.message, "unknown option"));
	if (want && strncmp(err.remedy, want, strlen(want)) != 0)
		fail_msg("%s: '%s' is not '%s'", typed, err.remedy, want);
	assert_non_null(strstr(err.remedy, "redhand run --help"));
	if (!want)
		assert_int_equal(strncmp(err.remedy, "redhand", 7), 0);
}

static void unknown_options_get_a_suggestion(void **state)
{
	suggests("--cuont", "--count ");
	suggests("--coun", "--count ");
	suggests("--time-out", "--timeout ");
	suggests("--quite", "--quiet ");
	suggests("--cuont=5", "--count ");
	suggests("--cuont=1000000000000", "--count "); /* the value says nothing about the name */
	suggests("--zzzzzzzz", NULL);
	suggests("-z", NULL);
	suggests("-vz", NULL);
	suggests("--=", NULL);
	suggests("---", NULL);
	suggests("--countt-very-long-name-that-goes-on-and-on-and-on-and-on-and-on-and-on", NULL);
}

static void program_after_dashes(void **state)
{
	struct invocation inv;
	struct err err;
	const struct options *o;

	assert_int_equal(PARSE(&required, "-n", "3", "--", "prog", "-n", "5", "--", "--help"), 0);
	o = inv.options;
	assert_int_equal(o->count, 3);
	assert_string_equal(inv.program[0], "prog");
	assert_string_equal(inv.program[1], "-n");
	assert_string_equal(inv.program[3], "--");
	assert_string_equal(inv.program[4], "--help");
	assert_null(inv.program[5]);
	assert_ptr_equal(inv.command, &required);
	invocation_deinit(&inv);
	invocation_deinit(&inv); /* a second time is harmless */
}

static void program_required(void **state)
{
	REFUSES(&required, "no program to run", "-n3");
	REFUSES(&required, "no program to run", "-n3", "--");
	REFUSES(&required, "'prog' is not an option", "prog");
	REFUSES(&required, "'-' is not an option", "-", "--", "prog");
	{
		struct invocation inv;
		struct err err;

		assert_int_equal(PARSE(&required, "-n3", "prog"), -EINVAL);
		assert_non_null(strstr(err.remedy, "put -- before the program"));
		assert_int_equal(PARSE(&required, "-v"), -EINVAL);
		assert_non_null(strstr(err.remedy, "redhand run [options] -- PROGRAM ARGS"));
	}
}

static void program_refused(void **state)
{
	REFUSES(&none, "takes no program", "--", "prog");
	REFUSES(&none, "is not an option", "prog");
}

static void program_none_and_optional(void **state)
{
	struct invocation inv;
	struct err err;

	assert_int_equal(PARSE(&none, "--"), 0);
	assert_null(inv.program);
	invocation_deinit(&inv);
	assert_int_equal(PARSE(&optional, "-v"), 0);
	assert_null(inv.program);
	invocation_deinit(&inv);
	assert_int_equal(PARSE(&optional, "--", "prog"), 0);
	assert_string_equal(inv.program[0], "prog");
	invocation_deinit(&inv);
}

static void help_is_asked_for(void **state)
{
	struct invocation inv;
	struct err err;

	assert_int_equal(PARSE(&required, "--help"), -ECANCELED);
	assert_int_equal(PARSE(&required, "-h"), -ECANCELED);
	assert_int_equal(PARSE(&required, "-eA=1", "-v", "--help"), -ECANCELED);
	assert_null(inv.options);
	/* A value, or the program's own. */
	assert_int_equal(PARSE(&required, "--name", "--help", "--", "p", "-h"), 0);
	invocation_deinit(&inv);
}

static void commands_are_found_by_name(void **state)
{
	static const struct command *const list[] = { &required, NULL };
	static const char *const names[] = { "repro", "compare", "doctor" };
	const struct program_info info = { .name = "redhand", .commands = list };

	assert_ptr_equal(command_find(&info, "run"), &required);
	assert_null(command_find(&info, "ru"));
	assert_null(command_find(&info, ""));
	assert_string_equal(nearest_name("repor", names, 3), "repro");
	assert_string_equal(nearest_name("comp", names, 3), "compare");
	assert_null(nearest_name("xyzzy", names, 3));
	assert_null(nearest_name("", names, 3));
	assert_null(nearest_name("repro", names, 0));
}

static const struct command sub_show = { .name = "head show" };
static const struct command sub_add = { .name = "head thing add" };
static const struct command sub_drop = { .name = "head thing drop" };
static const struct command *const subs[] = { &sub_show, &sub_add, &sub_drop, NULL };
static const struct command head = { .name = "head", .subcommands = subs };

/* Resolves "head WORDS…"; what is left of argv stands in *ret_left. */
static int resolve(const char *const *words, const struct command **ret, const char **ret_left,
		   struct err *err)
{
	char *argv[8] = { (char *)"head" }, **at = argv;
	int argc = 1, r;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	r = command_resolve(&head, &argc, &at, ret, err);
	*ret_left = argc > 1 ? at[1] : NULL;
	return r;
}

static void sub_commands_are_found_by_all_of_their_words(void **state)
{
	const struct command *found;
	const char *left;
	struct err err = { 0 };

	assert_int_equal(resolve((const char *[]){ "show", NULL }, &found, &left, &err), 0);
	assert_ptr_equal(found, &sub_show);
	assert_null(left);
	assert_int_equal(
		resolve((const char *[]){ "thing", "drop", "3", NULL }, &found, &left, &err), 0);
	assert_ptr_equal(found, &sub_drop);
	assert_string_equal(left, "3");
	assert_int_equal(resolve((const char *[]){ "thing", "--help", NULL }, &found, &left, &err),
			 -ECANCELED);
	assert_ptr_equal(found, &head);
}

static void what_is_no_sub_command_is_told(void **state)
{
	static const char *const bad[][3] = {
		{ NULL },	 { "thing", NULL },	     { "thing", "ad", NULL },
		{ "sho", NULL }, { "showy", NULL },	     { "", NULL },
		{ "add", NULL }, { "--json", "show", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct command *found;
		const char *left;
		struct err err = { 0 };

		assert_int_equal(resolve(bad[i], &found, &left, &err), -EINVAL);
		assert_non_null(strstr(err.message, "show, thing add, thing drop"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_options),
		cmocka_unit_test(short_options),
		cmocka_unit_test(lists_and_choices),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(unknown_options_get_a_suggestion),
		cmocka_unit_test(program_after_dashes),
		cmocka_unit_test(program_required),
		cmocka_unit_test(program_refused),
		cmocka_unit_test(program_none_and_optional),
		cmocka_unit_test(help_is_asked_for),
		cmocka_unit_test(commands_are_found_by_name),
		cmocka_unit_test(sub_commands_are_found_by_all_of_their_words),
		cmocka_unit_test(what_is_no_sub_command_is_told),
	};

	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
