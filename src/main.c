/*
 * redhand: the command table, the exit codes; nothing else.
 *
 * A new command needs: a row here, a file cmd/cmd_NAME.c with its options and
 * its run(), an entry in docs/json.md for what --json prints, a test in
 * tests/e2e/. Help, man page and completion come from its row by themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/talk.h"
#include "cmd/commands.h"
#include "cmd/common.h"

static const struct command *const commands[] = {
	&cmd_hunt,  &cmd_repro,	 &cmd_show,	   &cmd_compare, &cmd_minimize, &cmd_watch,
	&cmd_chase, &cmd_bisect, &cmd_bisect_step, &cmd_heap,	 &cmd_scan,	&cmd_sentinel,
	&cmd_case,  &cmd_report, &cmd_serve,	   &cmd_doctor,	 &cmd_debug,	&cmd_worker,
	NULL,
};

static const char exit_statuses[] =
	"  0    the question was answered: no failure, or all as expected\n"
	"  1    a failure was found, or the expectation was not met\n"
	"  2    wrong usage, or redhand itself could not work; a sentence says what to do\n"
	"  130  interrupted (Ctrl-C); everything seen so far is kept\n";

static const struct program_info info = {
	.name = "redhand",
	.version = REDHAND_VERSION,
	.summary = "Find the root cause of memory corruption that shows itself only now and then",
	.commands = commands,
	.exit_statuses = exit_statuses,
};

/* Descriptors 0 to 2 must be taken, or a file of ours would become the program's stdout. */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd > 2)
		(void)close(fd);
}

static void print_name(const struct command *command, FILE *out)
{
	(void)fprintf(out, "%s\n", command->name);
}

/* For the build: prints what is generated from the tables. */
static int generate(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	const struct command *command = argc > 3 ? command_find(&info, argv[3]) : NULL;

	if (strcmp(what, "names") == 0 && command) {
		command_each(command, print_name, stdout);
	} else if (strcmp(what, "names") == 0) {
		for (const struct command *const *c = commands; *c; c++)
			(void)printf("%s\n", (*c)->name);
	} else if (strcmp(what, "man") == 0 && command) {
		man_command(&info, command, stdout);
	} else if (strcmp(what, "man") == 0) {
		man_program(&info, stdout);
	} else if (strcmp(what, "bash") == 0) {
		completion_bash(&info, stdout);
	} else if (strcmp(what, "zsh") == 0) {
		completion_zsh(&info, stdout);
	} else {
		return EXIT_TROUBLE;
	}
	return EXIT_AS_EXPECTED;
}

static int unknown_command(const char *name)
{
	const char *names[64];
	const char *near;
	struct err err = { 0 };
	size_t count = 0;

	for (const struct command *const *c = commands; *c && count < 64; c++)
		names[count++] = (*c)->name;
	near = nearest_name(name, names, count);
	(void)err_set(&err, -EINVAL, "there is no command '%s'", name);
	if (near)
		(void)err_set_remedy(&err, "redhand %s (all commands: redhand --help)", near);
	else
		(void)err_set_remedy(&err, "redhand --help");
	log_err(&err);
	return EXIT_TROUBLE;
}

/* `redhand help COMMAND …`; the words of a sub-command may follow. */
static int help(int argc, char **argv)
{
	const struct command *command = command_find(&info, argv[0]);
	struct err ignored = { 0 };

	if (!command)
		return unknown_command(argv[0]);
	(void)command_resolve(command, &argc, &argv, &command, &ignored);
	help_command(&info, command, stdout);
	return EXIT_AS_EXPECTED;
}

static int run_command(const struct command *command, int argc, char **argv)
{
	struct invocation invocation;
	struct err err = { 0 };
	int status, r;

	r = command_resolve(command, &argc, &argv, &command, &err);
	if (r == 0)
		r = command_parse(command, argc, argv, &invocation, &err);
	if (r == -ECANCELED) {
		help_command(&info, command, stdout);
		return EXIT_AS_EXPECTED;
	}
	if (r < 0) {
		log_err(&err);
		return command->trouble > 0 ? command->trouble : EXIT_TROUBLE;
	}
	status = common_run(&invocation);
	invocation_deinit(&invocation);
	return status;
}

static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* Who reads documents gets one on every way out. */
static int document(int status, int argc, char **argv)
{
	if (status != EXIT_AS_EXPECTED && status != EXIT_FOUND && wants_json(argc, argv))
		common_error_json();
	return status;
}

/* A result that could not be written is no result. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	(void)fprintf(stderr, "redhand: cannot write the result: %s\n", strerror(errno));
	return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	open_standard_fds();
	if (argc < 2) {
		help_program(&info, stderr);
		return EXIT_TROUBLE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2)) {
		help_program(&info, stdout);
		return finish(EXIT_AS_EXPECTED);
	}
	if (strcmp(argv[1], "--version") == 0) {
		(void)printf("redhand %s\n", REDHAND_VERSION);
		return finish(EXIT_AS_EXPECTED);
	}
	if (strcmp(argv[1], "--generate") == 0)
		return finish(generate(argc, argv));
	if (strcmp(argv[1], "help") == 0)
		return finish(help(argc - 2, argv + 2));
	command = command_find(&info, argv[1]);
	if (!command)
		return finish(document(unknown_command(argv[1]), argc, argv));
	return finish(document(run_command(command, argc - 1, argv + 1), argc, argv));
}
