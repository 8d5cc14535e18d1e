/*
 * Shell completion, generated from the command tables.
 */
#include "base/command.h"

#include <string.h>

static void bash_words(const struct command *command, FILE *out)
{
	COMMAND_FOREACH_OPTION(command, group, option)
	{
		if (option->letter != '\0')
			(void)fprintf(out, " -%c", option->letter);
		(void)fprintf(out, " --%s", option->name);
	}
}

static void bash_choices(const struct command *command, FILE *out)
{
	COMMAND_FOREACH_OPTION(command, group, option)
	{
		if (option->kind != OPTION_CHOICE)
			continue;
		(void)fprintf(out, "\t%s:--%s) words='", command->name, option->name);
		for (size_t i = 0; option->choices[i]; i++)
			(void)fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
		(void)fputs("' ;;\n", out);
	}
}

void completion_bash(const struct program_info *info, FILE *out)
{
	(void)fprintf(out, "# bash completion for %s, generated from its option tables\n",
		      info->name);
	(void)fprintf(out, "_%s()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev= i words\n",
		      info->name);
	(void)fputs("\t((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD-1]}\n", out);
	(void)fputs("\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		    "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
		    "\t\t\tCOMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
		    "\t\t\treturn\n\t\tfi\n\tdone\n",
		    out);
	(void)fputs("\tif ((COMP_CWORD == 1)); then\n\t\twords='", out);
	for (const struct command *const *c = info->commands; *c; c++)
		(void)fprintf(out, "%s ", (*c)->name);
	(void)fputs("--help --version'\n"
		    "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\t\treturn\n\tfi\n",
		    out);
	(void)fputs("\twords=\n\tcase ${COMP_WORDS[1]}:$prev in\n", out);
	for (const struct command *const *c = info->commands; *c; c++)
		bash_choices(*c, out);
	(void)fputs("\t*:--case|*:--cwd) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n", out);
	(void)fputs("\tesac\n\tif [[ -z $words ]]; then\n\t\tcase ${COMP_WORDS[1]} in\n", out);
	for (const struct command *const *c = info->commands; *c; c++) {
		(void)fprintf(out, "\t\t%s) words='--help --", (*c)->name);
		bash_words(*c, out);
		(void)fputs("' ;;\n", out);
	}
	(void)fprintf(out,
		      "\t\tesac\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
		      "complete -F _%s %s\n",
		      info->name, info->name);
}

/* A description inside zsh's 'name[description]:metavar:' within single quotes. */
static void zsh_text(const char *text, size_t limit, FILE *out)
{
	for (size_t i = 0; text[i] != '\0' && text[i] != '\n' && i < limit; i++) {
		if (strchr("[]:\\", text[i]))
			(void)fputc('\\', out);
		if (text[i] == '\'')
			(void)fputs("'\\'", out);
		(void)fputc(text[i], out);
	}
}

static void zsh_option(const struct option *option, const char *spelling, FILE *out)
{
	bool glued = spelling[1] == '-' && option->metavar;

	(void)fprintf(out, "\t\t\t'%s%s%s[", option->kind == OPTION_LIST ? "*" : "", spelling,
		      glued ? "=" : "");
	zsh_text(option->help, strcspn(option->help, ";.\n"), out);
	(void)fputc(']', out);
	if (option->metavar) {
		(void)fputc(':', out);
		zsh_text(option->metavar, strlen(option->metavar), out);
		(void)fputc(':', out);
	}
	if (option->kind == OPTION_CHOICE) {
		(void)fputc('(', out);
		for (size_t i = 0; option->choices[i]; i++)
			(void)fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
		(void)fputc(')', out);
	} else if (option->metavar && strcmp(option->metavar, "DIR") == 0) {
		(void)fputs("_directories", out);
	} else if (option->metavar && strcmp(option->metavar, "FILE") == 0) {
		(void)fputs("_files", out);
	}
	(void)fputs("' \\\n", out);
}

static void zsh_command(const struct command *command, FILE *out)
{
	(void)fprintf(out,
		      "\t%s)\n\t\t_arguments -S \\\n\t\t\t'--help[tell about this command]' \\\n",
		      command->name);
	COMMAND_FOREACH_OPTION(command, group, option)
	{
		char spelling[72];

		(void)snprintf(spelling, sizeof(spelling), "--%s", option->name);
		zsh_option(option, spelling, out);
		if (option->letter != '\0') {
			(void)snprintf(spelling, sizeof(spelling), "-%c", option->letter);
			zsh_option(option, spelling, out);
		}
	}
	(void)fputs("\t\t\t'*::program:_normal'\n\t\t;;\n", out);
}

void completion_zsh(const struct program_info *info, FILE *out)
{
	(void)fprintf(out, "#compdef %s\n# generated from its option tables\n", info->name);
	(void)fprintf(out, "local -a commands\ncommands=(\n");
	for (const struct command *const *c = info->commands; *c; c++) {
		(void)fprintf(out, "\t'%s:", (*c)->name);
		zsh_text((*c)->summary, 200, out);
		(void)fputs("'\n", out);
	}
	(void)fputs(")\nif ((CURRENT == 2)); then\n\t_describe -t commands command commands\n"
		    "\treturn\nfi\nlocal name=$words[2]\nshift words\n((CURRENT--))\n"
		    "case $name in\n",
		    out);
	for (const struct command *const *c = info->commands; *c; c++)
		zsh_command(*c, out);
	(void)fputs("esac\n", out);
}
