/*
 * Man pages, generated from the command tables (man(7) macros).
 */
#include "base/command.h"

#include <string.h>

/* Text for roff: backslashes and hyphens escaped, a leading control character defused. */
static void roff(FILE *out, const char *text, size_t len)
{
	bool line_start = true;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (line_start && (c == '.' || c == '\''))
			(void)fputs("\\&", out);
		if (c == '\\')
			(void)fputs("\\e", out);
		else if (c == '-')
			(void)fputs("\\-", out);
		else
			(void)fputc(c, out);
		line_start = c == '\n';
	}
}

static void roffs(FILE *out, const char *text)
{
	roff(out, text, strlen(text));
}

static void paragraphs(FILE *out, const char *text)
{
	for (;;) {
		const char *end = strstr(text, "\n\n");

		roff(out, text, end ? (size_t)(end - text) : strlen(text));
		(void)fputc('\n', out);
		if (!end)
			return;
		(void)fputs(".PP\n", out);
		text = end + 2;
	}
}

static void verbatim(FILE *out, const char *text)
{
	(void)fputs(".nf\n", out);
	roffs(out, text);
	(void)fputs(".fi\n", out);
}

static void man_head(const struct program_info *info, const char *page, const char *summary,
		     FILE *out)
{
	(void)fprintf(out, ".TH %s 1 \"\" \"%s %s\" \"%s\"\n.SH NAME\n", page, info->name,
		      info->version, "User Commands");
	roffs(out, page);
	(void)fputs(" \\- ", out);
	roffs(out, summary);
	(void)fputc('\n', out);
}

static void man_option(const struct option *option, FILE *out)
{
	(void)fputs(".TP\n", out);
	if (option->letter != '\0')
		(void)fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	(void)fputs("\\fB\\-\\-", out);
	roffs(out, option->name);
	(void)fputs("\\fR", out);
	if (option->metavar) {
		(void)fputs(" \\fI", out);
		roffs(out, option->metavar);
		(void)fputs("\\fR", out);
	}
	(void)fputc('\n', out);
	paragraphs(out, option->help);
}

static void man_usage(const struct program_info *info, const struct command *command, FILE *out)
{
	(void)fprintf(out, "\\fB%s ", info->name);
	roffs(out, command->name);
	(void)fputs("\\fR ", out);
	roffs(out, command->usage);
	(void)fputc('\n', out);
}

/* The options of a command, but not those of `head`, which stand in a place of their own. */
static void man_options(const struct command *command, const struct command *head, FILE *out)
{
	for (const struct option_group *group = command->groups; group && group->title; group++) {
		if (head && head->groups && group->options == head->groups->options)
			continue;
		if (!head) {
			(void)fputs(".SS ", out);
			roffs(out, group->title);
			(void)fputc('\n', out);
		}
		for (const struct option *option = group->options; option->name; option++)
			man_option(option, out);
	}
}

static void man_subcommand(const struct program_info *info, const struct command *command,
			   const struct command *head, FILE *out)
{
	(void)fputs(".SS ", out);
	roffs(out, command->name);
	(void)fputc('\n', out);
	man_usage(info, command, out);
	(void)fputs(".PP\n", out);
	paragraphs(out, command->description);
	man_options(command, head, out);
}

void man_command(const struct program_info *info, const struct command *command, FILE *out)
{
	char page[64];

	(void)snprintf(page, sizeof(page), "%s-%s", info->name, command->name);
	man_head(info, page, command->summary, out);
	(void)fputs(".SH SYNOPSIS\n", out);
	man_usage(info, command, out);
	(void)fputs(".SH DESCRIPTION\n", out);
	paragraphs(out, command->description);
	if (command->subcommands) {
		(void)fputs(".SH SUB\\-COMMANDS\n", out);
		for (const struct command *const *c = command->subcommands; *c; c++)
			man_subcommand(info, *c, command, out);
	}
	(void)fputs(".SH OPTIONS\n", out);
	man_options(command, NULL, out);
	(void)fputs(".SH EXIT STATUS\n", out);
	verbatim(out, command->exit_statuses ? command->exit_statuses : info->exit_statuses);
	if (command->examples) {
		(void)fputs(".SH EXAMPLES\n", out);
		verbatim(out, command->examples);
	}
	(void)fprintf(out, ".SH SEE ALSO\n\\fB%s\\fR(1)\n", info->name);
}

void man_program(const struct program_info *info, FILE *out)
{
	man_head(info, info->name, info->summary, out);
	(void)fprintf(out, ".SH SYNOPSIS\n\\fB%s\\fR COMMAND [options] \\-\\- PROGRAM ARGS…\n",
		      info->name);
	(void)fputs(".SH COMMANDS\n", out);
	for (const struct command *const *c = info->commands; *c; c++) {
		(void)fprintf(out, ".TP\n\\fB%s\\-", info->name);
		roffs(out, (*c)->name);
		(void)fputs("\\fR(1)\n", out);
		roffs(out, (*c)->summary);
		(void)fputc('\n', out);
	}
	(void)fputs(".SH EXIT STATUS\n", out);
	verbatim(out, info->exit_statuses);
}
