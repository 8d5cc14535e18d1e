/*
 * --help, generated from the command tables.
 */
#include "base/command.h"

#include <string.h>

#define HELP_WIDTH 80
#define HELP_INDENT 8

/* Bytes that start a character; continuation bytes of UTF-8 take no column. */
static size_t columns(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static void wrap_paragraph(FILE *out, const char *text, size_t len, size_t indent)
{
	size_t column = 0;

	while (len > 0) {
		size_t word = strcspn(text, " \n");

		if (word > len)
			word = len;
		if (word > 0) {
			if (column > 0 && column + 1 + columns(text, word) > HELP_WIDTH) {
				(void)fputc('\n', out);
				column = 0;
			}
			if (column == 0)
				column = (size_t)fprintf(out, "%*s", (int)indent, "");
			else
				column += (size_t)fprintf(out, " ");
			(void)fwrite(text, 1, word, out);
			column += columns(text, word);
		}
		text += word;
		len -= word;
		if (len > 0) {
			text++;
			len--;
		}
	}
	(void)fputc('\n', out);
}

static void wrap(FILE *out, const char *text, size_t indent)
{
	for (;;) {
		const char *end = strstr(text, "\n\n");

		wrap_paragraph(out, text, end ? (size_t)(end - text) : strlen(text), indent);
		if (!end)
			return;
		(void)fputc('\n', out);
		text = end + 2;
	}
}

static void help_option(const struct option *option, FILE *out)
{
	if (option->letter != '\0')
		(void)fprintf(out, "  -%c, --%s", option->letter, option->name);
	else
		(void)fprintf(out, "      --%s", option->name);
	if (option->metavar)
		(void)fprintf(out, " %s", option->metavar);
	(void)fputc('\n', out);
	wrap(out, option->help, HELP_INDENT + 2);
}

static void help_subcommands(const struct program_info *info, const struct command *command,
			     FILE *out)
{
	(void)fprintf(out, "\nSub-commands:\n");
	for (const struct command *const *c = command->subcommands; *c; c++) {
		(void)fprintf(out, "  %s %s %s\n", info->name, (*c)->name, (*c)->usage);
		wrap(out, (*c)->summary, HELP_INDENT + 2);
	}
	(void)fprintf(out, "\n%s %s SUB-COMMAND --help tells about one of them.\n", info->name,
		      command->name);
}

void help_command(const struct program_info *info, const struct command *command, FILE *out)
{
	(void)fprintf(out, "Usage: %s %s %s\n\n", info->name, command->name, command->usage);
	(void)fprintf(out, "%s.\n\n", command->summary);
	wrap(out, command->description, 0);
	if (command->subcommands)
		help_subcommands(info, command, out);
	for (const struct option_group *group = command->groups; group && group->title; group++) {
		(void)fprintf(out, "\n%s:\n", group->title);
		for (const struct option *option = group->options; option->name; option++)
			help_option(option, out);
	}
	if (command->examples)
		(void)fprintf(out, "\nExamples:\n%s", command->examples);
	(void)fprintf(out, "\nExit status:\n%s",
		      command->exit_statuses ? command->exit_statuses : info->exit_statuses);
}

void help_program(const struct program_info *info, FILE *out)
{
	(void)fprintf(out, "Usage: %s COMMAND [options] -- PROGRAM ARGS…\n\n%s.\n\nCommands:\n",
		      info->name, info->summary);
	for (const struct command *const *c = info->commands; *c; c++)
		(void)fprintf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
	(void)fprintf(out,
		      "\n%s COMMAND --help tells about one command; --version tells the version.\n",
		      info->name);
	(void)fprintf(out, "\nExit status:\n%s", info->exit_statuses);
}
