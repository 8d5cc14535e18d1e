/*
 * Shell completion, generated from the command tables.
 */
#include "base/command.h"

#include <string.h>

/* Does a name of several words begin with this one, and end after it? */
static bool name_continues(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 && name[len] == ' ';
}

/* Calls fn once for every beginning of sub-commands' names that is no command itself: "case",
 * "case hypothesis". */
static void each_prefix(const struct program_info *info,
			void (*fn)(const struct command *head, const char *prefix, FILE *out),
			FILE *out)
{
	char prefix[64], before[64];

	for (const struct command *const *c = info->commands; *c; c++) {
		if (!(*c)->subcommands)
			continue;
		fn(*c, (*c)->name, out);
		before[0] = '\0';
		for (const struct command *const *s = (*c)->subcommands; *s; s++) {
			const char *last = strrchr((*s)->name, ' ');

			(void)snprintf(prefix, sizeof(prefix), "%.*s", (int)(last - (*s)->name),
				       (*s)->name);
			/* Sub-commands with the same beginning stand together. */
			if (strcmp(prefix, (*c)->name) != 0 && strcmp(prefix, before) != 0)
				fn(*c, prefix, out);
			(void)strcpy(before, prefix);
		}
	}
}

/* The words that may follow a beginning, each once. */
static void next_words(const struct command *head, const char *prefix, FILE *out)
{
	const char *before = "";
	size_t before_len = 0;

	for (const struct command *const *s = head->subcommands; *s; s++) {
		const char *word = (*s)->name + strlen(prefix) + 1;
		size_t len;

		if (!name_continues((*s)->name, prefix))
			continue;
		len = strcspn(word, " ");
		if (len != before_len || strncmp(word, before, len) != 0)
			(void)fprintf(out, " %.*s", (int)len, word);
		before = word;
		before_len = len;
	}
}

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
		(void)fprintf(out, "\t\"%s\":--%s) words='", command->name, option->name);
		for (size_t i = 0; option->choices[i]; i++)
			(void)fprintf(out, "%s%s", i > 0 ? " " : "", option->choices[i]);
		(void)fputs("' ;;\n", out);
	}
}

static void bash_options(const struct command *command, FILE *out)
{
	bool several = strchr(command->name, ' ') != NULL;

	(void)fprintf(out, "\t\t%s%s%s) words='--help --", several ? "\"" : "", command->name,
		      several ? "\"" : "");
	bash_words(command, out);
	(void)fputs("' ;;\n", out);
}

static void bash_prefix(const struct command *head, const char *prefix, FILE *out)
{
	(void)fprintf(out, "\t\t\"%s\") words='--help", prefix);
	next_words(head, prefix, out);
	(void)fputs("' ;;\n", out);
}

static void bash_longer(const struct command *command, FILE *out)
{
	(void)fprintf(out, "\t\t\"%s\"|\\\n", command->name);
}

static void bash_longer_prefix(const struct command *head, const char *prefix, FILE *out)
{
	if (strchr(prefix, ' '))
		(void)fprintf(out, "\t\t\"%s\"|\\\n", prefix);
}

/* Sets $name to the command with as many words of a sub-command as are there. */
static void bash_name(const struct program_info *info, FILE *out)
{
	(void)fputs("\tname=${COMP_WORDS[1]}\n"
		    "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		    "\t\tcase \"$name ${COMP_WORDS[i]}\" in\n",
		    out);
	for (const struct command *const *c = info->commands; *c; c++)
		if ((*c)->subcommands)
			command_each(*c, bash_longer, out);
	each_prefix(info, bash_longer_prefix, out);
	(void)fputs("\t\t-) name+=\" ${COMP_WORDS[i]}\" ;;\n\t\t*) break ;;\n\t\tesac\n\tdone\n",
		    out);
}

void completion_bash(const struct program_info *info, FILE *out)
{
	(void)fprintf(out, "# bash completion for %s, generated from its option tables\n",
		      info->name);
	(void)fprintf(out, "_%s()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev= i name words\n",
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
	bash_name(info, out);
	(void)fputs("\twords=\n\tcase $name:$prev in\n", out);
	for (const struct command *const *c = info->commands; *c; c++)
		command_each(*c, bash_choices, out);
	(void)fputs("\t*:--case|*:--cwd|*:--dir|*:--root) COMPREPLY=($(compgen -d -- \"$cur\")); "
		    "return ;;\n",
		    out);
	(void)fputs("\tesac\n\tif [[ -z $words ]]; then\n\t\tcase $name in\n", out);
	each_prefix(info, bash_prefix, out);
	for (const struct command *const *c = info->commands; *c; c++)
		command_each(*c, bash_options, out);
	(void)fprintf(out,
		      "\t\tesac\n\tfi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
		      "complete -o default -F _%s %s\n",
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
	bool several = strchr(command->name, ' ') != NULL;

	(void)fprintf(out,
		      "\t%s%s%s)\n\t\t_arguments -S \\\n\t\t\t'--help[tell about this command]' "
		      "\\\n",
		      several ? "\"" : "", command->name, several ? "\"" : "");
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

static void zsh_prefix(const struct command *head, const char *prefix, FILE *out)
{
	(void)fprintf(out, "\t\"%s\")\n\t\tcompadd -- --help", prefix);
	next_words(head, prefix, out);
	(void)fputs("\n\t\t;;\n", out);
}

static void zsh_longer(const struct command *command, FILE *out)
{
	(void)fprintf(out, "\t\"%s\"|\\\n", command->name);
}

static void zsh_longer_prefix(const struct command *head, const char *prefix, FILE *out)
{
	if (strchr(prefix, ' '))
		(void)fprintf(out, "\t\"%s\"|\\\n", prefix);
}

/* As bash_name(), with the words of the name shifted away. */
static void zsh_name(const struct program_info *info, FILE *out)
{
	(void)fputs("while ((CURRENT > 2)); do\n\tcase \"$name $words[2]\" in\n", out);
	for (const struct command *const *c = info->commands; *c; c++)
		if ((*c)->subcommands)
			command_each(*c, zsh_longer, out);
	each_prefix(info, zsh_longer_prefix, out);
	(void)fputs("\t-) name=\"$name $words[2]\"; shift words; ((CURRENT--)) ;;\n"
		    "\t*) break ;;\n\tesac\ndone\n",
		    out);
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
		    "\treturn\nfi\nlocal name=$words[2]\nshift words\n((CURRENT--))\n",
		    out);
	zsh_name(info, out);
	(void)fputs("case $name in\n", out);
	each_prefix(info, zsh_prefix, out);
	for (const struct command *const *c = info->commands; *c; c++)
		command_each(*c, zsh_command, out);
	(void)fputs("esac\n", out);
}
