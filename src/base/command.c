#include "base/command.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/value.h"

struct parser {
	const struct command *command;
	char *options;
	char **args;
	size_t arg_count;
	int argc;
	char **argv;
	int next; /* first argument not yet used */
	struct err *err;
};

const struct command *command_find(const struct program_info *info, const char *name)
{
	for (const struct command *const *c = info->commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

/* How many of the words in argv, from the second on, spell the rest of `name` behind the name of
 * its head; 0 when another word is there. *ret_missing: they end before the name does. */
static int words_of_name(const struct command *head, const char *name, int argc, char **argv,
			 bool *ret_missing)
{
	const char *at = name + strlen(head->name);
	int used = 0;

	*ret_missing = false;
	while (*at == ' ') {
		size_t len = strcspn(++at, " ");

		if (used + 1 >= argc) {
			*ret_missing = true;
			return used;
		}
		if (strlen(argv[used + 1]) != len || strncmp(argv[used + 1], at, len) != 0)
			return 0;
		at += len;
		used++;
	}
	return used;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int no_subcommand(const struct command *command, int argc, char **argv, struct err *err)
{
	char all[512] = "";

	for (const struct command *const *c = command->subcommands; *c; c++)
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			       all[0] != '\0' ? ", " : "", (*c)->name + strlen(command->name) + 1);
	if (argc > 1)
		(void)err_set(err, -EINVAL, "%s has no '%s%s%s', only: %s", command->name, argv[1],
			      argc > 2 && argv[2][0] != '-' ? " " : "",
			      argc > 2 && argv[2][0] != '-' ? argv[2] : "", all);
	else
		(void)err_set(err, -EINVAL, "%s wants one of: %s", command->name, all);
	return err_set_remedy(err, "redhand %s --help", command->name);
}

int command_resolve(const struct command *command, int *argc, char ***argv,
		    const struct command **ret, struct err *err)
{
	*ret = command;
	if (!command->subcommands)
		return 0;
	for (const struct command *const *c = command->subcommands; *c; c++) {
		bool missing;
		int used = words_of_name(command, (*c)->name, *argc, *argv, &missing);

		if (used > 0 && !missing) {
			*ret = *c;
			*argc -= used;
			*argv += used;
			return 0;
		}
	}
	for (int i = 1; i < *argc; i++)
		if (asks_for_help((*argv)[i]))
			return -ECANCELED;
	return no_subcommand(command, *argc, *argv, err);
}

void command_each(const struct command *command, void (*fn)(const struct command *c, FILE *out),
		  FILE *out)
{
	if (!command->subcommands) {
		fn(command, out);
		return;
	}
	for (const struct command *const *c = command->subcommands; *c; c++)
		fn(*c, out);
}

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein distance of short names; longer ones are simply far away. */
static size_t name_distance(const char *a, const char *b)
{
	size_t row[64], la = strlen(a), lb = strlen(b);

	if (la >= 64 || lb >= 64)
		return 64;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t above = row[j];

			row[j] = smallest(above + 1, row[j - 1] + 1,
					  corner + (a[i - 1] != b[j - 1]));
			corner = above;
		}
	}
	return row[lb];
}

const char *nearest_name(const char *typed, const char *const *names, size_t count)
{
	const char *best = NULL;
	size_t best_distance = strlen(typed) / 2 + 1;

	for (size_t i = 0; i < count; i++) {
		size_t distance = strncmp(names[i], typed, strlen(typed)) == 0
					  ? 1
					  : name_distance(typed, names[i]);

		if (distance < best_distance) {
			best = names[i];
			best_distance = distance;
		}
	}
	return best;
}

static int unknown_option(struct parser *p, const char *typed)
{
	const char *names[128], *near = NULL;
	size_t count = 0;

	COMMAND_FOREACH_OPTION(p->command, group, option)
	if (count < ARRAY_SIZE(names))
		names[count++] = option->name;
	(void)err_set(p->err, -EINVAL, "%s: unknown option '%s'", p->command->name, typed);
	if (typed[0] == '-' && typed[1] == '-') {
		/* In --naem=value only the name can be mistyped. */
		AUTO(mem_freep) char *name = mem_strndup(typed + 2, strcspn(typed + 2, "="));

		near = nearest_name(name, names, count);
	}
	if (near)
		return err_set_remedy(p->err, "--%s (all options: redhand %s --help)", near,
				      p->command->name);
	return err_set_remedy(p->err, "redhand %s --help", p->command->name);
}

static int store_choice(const struct option *option, const char *text, unsigned int *ret,
			struct err *err)
{
	char all[256] = "";

	for (unsigned int i = 0; option->choices[i]; i++) {
		if (strcmp(option->choices[i], text) == 0) {
			*ret = i;
			return 0;
		}
		(void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			       i > 0 ? ", " : "", option->choices[i]);
	}
	return err_set(err, -EINVAL, "wants one of %s, not '%s'", all, text);
}

static void store_list(struct option_list *list, const char *text)
{
	list->items = mem_resize(list->items, list->count + 1, sizeof(list->items[0]));
	list->items[list->count++] = text;
}

static int store(struct parser *p, const struct option_group *group, const struct option *option,
		 const char *text)
{
	void *slot = p->options + group->offset + option->offset;
	int r = 0;

	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)slot = true;
		break;
	case OPTION_COUNT:
		r = value_count(text, option->min, option->max, slot, p->err);
		break;
	case OPTION_SHARE:
		r = value_share(text, slot, p->err);
		break;
	case OPTION_SIZE:
		r = value_size(text, slot, p->err);
		break;
	case OPTION_DURATION:
		r = value_duration(text, slot, p->err);
		break;
	case OPTION_TEXT:
		*(const char **)slot = text;
		break;
	case OPTION_LIST:
		store_list(slot, text);
		break;
	case OPTION_CHOICE:
		r = store_choice(option, text, slot, p->err);
		break;
	}
	if (r < 0 && option->letter != '\0')
		return err_set_prefix(p->err, "-%c (--%s)", option->letter, option->name);
	if (r < 0)
		return err_set_prefix(p->err, "--%s", option->name);
	return 0;
}

/* The option's own value if it was glued on, else the next argument. */
static int value_of(struct parser *p, const struct option *option, const char *glued,
		    const char **ret)
{
	if (!glued && option->bare && (p->next == p->argc || p->argv[p->next][0] == '-'))
		glued = option->bare;
	if (!glued && p->next < p->argc)
		glued = p->argv[p->next++];
	if (!glued)
		return err_set(p->err, -EINVAL, "--%s wants a value (%s)", option->name,
			       option->metavar);
	*ret = glued;
	return 0;
}

static int parse_long(struct parser *p, const char *arg)
{
	const char *name = arg + 2, *equals = strchr(name, '='), *value = NULL;
	size_t len = equals ? (size_t)(equals - name) : strlen(name);

	COMMAND_FOREACH_OPTION(p->command, group, option)
	{
		int r = 0;

		if (strncmp(option->name, name, len) != 0 || option->name[len] != '\0')
			continue;
		if (option->kind == OPTION_FLAG && equals)
			return err_set(p->err, -EINVAL, "--%s takes no value", option->name);
		if (option->kind != OPTION_FLAG)
			r = value_of(p, option, equals ? equals + 1 : NULL, &value);
		return r < 0 ? r : store(p, group, option, value);
	}
	return unknown_option(p, arg);
}

/* One letter of a bundle; *at is moved behind what was used. */
static int parse_letter(struct parser *p, const char *arg, const char **at)
{
	char letter = **at;
	const char *value = NULL;

	COMMAND_FOREACH_OPTION(p->command, group, option)
	{
		int r;

		if (option->letter != letter)
			continue;
		(*at)++;
		if (option->kind == OPTION_FLAG)
			return store(p, group, option, NULL);
		r = value_of(p, option, **at != '\0' ? *at : NULL, &value);
		*at = "";
		return r < 0 ? r : store(p, group, option, value);
	}
	return unknown_option(p, arg);
}

static int parse_one(struct parser *p, const char *arg)
{
	int r = 0;

	if (asks_for_help(arg))
		return -ECANCELED;
	if (strncmp(arg, "--", 2) == 0)
		return parse_long(p, arg);
	if (arg[0] == '-' && arg[1] != '\0') {
		for (const char *at = arg + 1; r == 0 && *at != '\0';)
			r = parse_letter(p, arg, &at);
		return r;
	}
	if (p->arg_count < p->command->args_max) {
		p->args[p->arg_count++] = (char *)arg;
		return 0;
	}
	(void)err_set(p->err, -EINVAL, "%s: '%s' is not an option%s", p->command->name, arg,
		      p->command->program == PROGRAM_NONE ? ", and nothing else can stand there"
							  : "");
	if (p->command->program == PROGRAM_NONE)
		return err_set_remedy(p->err, "redhand %s --help", p->command->name);
	return err_set_remedy(p->err, "put -- before the program: redhand %s [options] -- %s …",
			      p->command->name, arg);
}

static int parse_all(struct parser *p, char ***ret_program)
{
	while (p->next < p->argc) {
		char *arg = p->argv[p->next++];
		int r;

		if (strcmp(arg, "--") == 0) {
			if (p->next < p->argc)
				*ret_program = p->argv + p->next;
			break;
		}
		r = parse_one(p, arg);
		if (r < 0)
			return r;
	}
	if (p->arg_count < p->command->args_min) {
		(void)err_set(p->err, -EINVAL, "%s: something is missing", p->command->name);
		return err_set_remedy(p->err, "redhand %s %s", p->command->name, p->command->usage);
	}
	if (*ret_program && p->command->program == PROGRAM_NONE)
		return err_set(p->err, -EINVAL, "%s takes no program", p->command->name);
	if (!*ret_program && p->command->program == PROGRAM_REQUIRED) {
		(void)err_set(p->err, -EINVAL, "%s: no program to run", p->command->name);
		return err_set_remedy(p->err, "redhand %s %s", p->command->name, p->command->usage);
	}
	return 0;
}

int command_parse(const struct command *command, int argc, char **argv, struct invocation *ret,
		  struct err *err)
{
	struct parser p = {
		.command = command,
		.argc = argc,
		.argv = argv,
		.next = 1,
		.err = err,
		.options = mem_alloc(command->options_size),
	};
	struct invocation inv = { .command = command, .options = p.options };
	int r;

	for (const struct option_group *group = command->groups; group && group->title; group++)
		if (group->defaults)
			group->defaults((char *)p.options + group->offset);
	if (command->defaults)
		command->defaults(p.options);
	inv.args = p.args = mem_alloc((command->args_max + 1) * sizeof(char *));
	r = parse_all(&p, &inv.program);
	inv.arg_count = p.arg_count;
	if (r < 0) {
		invocation_deinit(&inv);
		return r;
	}
	*ret = inv;
	return 0;
}

void invocation_deinit(struct invocation *invocation)
{
	char *options = (char *)invocation->options;

	if (!options)
		return;
	COMMAND_FOREACH_OPTION(invocation->command, group, option)
	if (option->kind == OPTION_LIST)
		mem_free(((struct option_list *)(options + group->offset + option->offset))->items);
	mem_free(options);
	mem_free(invocation->args);
	invocation->options = NULL;
}
