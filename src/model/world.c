#include "model/world.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Names told in a sentence; the rest is counted. */
#define NAMES_TOLD 8

void world_deinit(struct world *world)
{
	MEM_FREE(world->commit, world->branch, world->program, world->kernel, world->machine,
		 world->redhand, world->variables);
	*world = (struct world){ 0 };
}

/* These differ from one terminal, login or directory to the next and mean nothing. */
static bool passing(const char *name, size_t len)
{
	static const char *const names[] = { "_",
					     "SHLVL",
					     "PWD",
					     "OLDPWD",
					     "COLUMNS",
					     "LINES",
					     "WINDOWID",
					     "XDG_SESSION_ID",
					     "STY",
					     "TMUX",
					     "TMUX_PANE",
					     "GPG_TTY",
					     "TERM_SESSION_ID",
					     "INVOCATION_ID",
					     "JOURNAL_STREAM" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
			return true;
	return len > 4 && strncmp(name, "SSH_", 4) == 0;
}

/* Sixteen bits: enough to see a change, too few to find a value by trying. */
static unsigned int short_hash(const char *text)
{
	uint64_t h = hash_bytes(HASH_START, text, strlen(text));

	h ^= h >> 32;
	return (unsigned int)((h ^ h >> 16) & 0xffff);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void world_set_variables(struct world *world, char *const *environment)
{
	AUTO(strv_deinit) struct strv lines = { 0 };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };

	for (; *environment; environment++) {
		AUTO(strbuf_deinit) struct strbuf name = { 0 };
		size_t len = strcspn(*environment, "=");

		if ((*environment)[len] != '=' || len == 0 || passing(*environment, len))
			continue;
		strbuf_add_printable(&name, *environment, len);
		strv_take(&lines, mem_printf("%s %04x", strbuf_str(&name),
					     short_hash(*environment + len + 1)));
	}
	VEC_SORT(&lines, by_text);
	for (size_t i = 0; i < lines.count; i++)
		strbuf_addf(&text, "%s\n", lines.items[i]);
	mem_free(world->variables);
	world->variables = strbuf_take(&text);
}

static void changed(const char *what, const char *then, const char *now, struct said_list *ret)
{
	if (then && now && strcmp(then, now) != 0)
		SAY_TOO(ret, "world:differs", said_text(what), said_text(then), said_text(now));
}

/* The lines of variables, as sorted by world_set_variables(). */
static void split_lines(const char *text, struct strv *ret)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		strv_take(ret, mem_strndup(text, len));
		text += len + (text[len] == '\n');
	}
}

static size_t name_len(const char *line)
{
	const char *space = strrchr(line, ' ');

	return space ? (size_t)(space - line) : strlen(line);
}

static bool same_name(const char *a, const char *b)
{
	size_t len = name_len(a);

	return len == name_len(b) && memcmp(a, b, len) == 0;
}

struct variable_names {
	struct strbuf text;
	size_t count;
};

static void add_name(struct variable_names *names, const char *line)
{
	if (names->count++ < NAMES_TOLD)
		strbuf_addf(&names->text, "%s%.*s", names->text.len > 0 ? ", " : "",
			    (int)name_len(line), line);
}

static void tell_names(struct variable_names *names, const char *id, struct said_list *ret)
{
	size_t more = names->count > NAMES_TOLD ? names->count - NAMES_TOLD : 0;

	if (names->count > 0)
		SAY_TOO(ret, id, said_text(strbuf_str(&names->text)), said_count(more));
	strbuf_deinit(&names->text);
}

static const char *find_line(const struct strv *lines, const char *line)
{
	for (size_t i = 0; i < lines->count; i++)
		if (same_name(lines->items[i], line))
			return lines->items[i];
	return NULL;
}

static void compare_variables(const char *then, const char *now, struct said_list *ret)
{
	AUTO(strv_deinit) struct strv old = { 0 };
	AUTO(strv_deinit) struct strv new = { 0 };
	struct variable_names gone = { 0 }, added = { 0 }, differ = { 0 };

	if (!then || !now)
		return;
	split_lines(then, &old);
	split_lines(now, &new);
	for (size_t i = 0; i < old.count; i++) {
		const char *line = find_line(&new, old.items[i]);

		if (!line)
			add_name(&gone, old.items[i]);
		else if (strcmp(line, old.items[i]) != 0)
			add_name(&differ, line);
	}
	for (size_t i = 0; i < new.count; i++)
		if (!find_line(&old, new.items[i]))
			add_name(&added, new.items[i]);
	tell_names(&differ, "world:variables-differ", ret);
	tell_names(&added, "world:variables-new", ret);
	tell_names(&gone, "world:variables-gone", ret);
}

void world_changes(const struct world *then, const struct world *now, struct said_list *ret)
{
	changed("commit", then->commit, now->commit, ret);
	changed("program", then->program, now->program, ret);
	changed("kernel", then->kernel, now->kernel, ret);
	changed("machine", then->machine, now->machine, ret);
	compare_variables(then->variables, now->variables, ret);
	changed("redhand", then->redhand, now->redhand, ret);
}
