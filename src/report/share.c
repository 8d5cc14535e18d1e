#include "report/share.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "report/json.h"

#define LEFT_OUT "…"

/* Offsets in code and in objects are shorter; addresses and values of whole words are not. */
#define DIGITS_SHOWN 4u

/* Members of documents that hold memory. */
static const char *const memory_members[] = { "address", "old",	       "new",
					      "value",	 "values",     "registers",
					      "memory",	 "bytes_seen", "stack_words" };

static bool continues_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

/* 0x and more digits than an offset has. How much of the text it is; 0: none. */
static size_t number_len(const char *text)
{
	size_t len;

	if (text[0] != '0' || text[1] != 'x')
		return 0;
	len = strspn(text + 2, "0123456789abcdef");
	return len > DIGITS_SHOWN ? len + 2 : 0;
}

/* NAME=VALUE, as variables are written: how much of it stands before the value; 0: none. */
static size_t variable_len(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	return len > 1 && !isdigit((unsigned char)text[0]) && text[len] == '=' ? len + 1 : 0;
}

/* A word of a shell, quotes and all. */
static size_t value_len(const char *text)
{
	size_t i = 0;

	while (text[i] != '\0' && !strchr(" \n`\"),;", text[i])) {
		const char *end = text[i] == '\'' ? strchr(text + i + 1, '\'') : NULL;

		i = end ? (size_t)(end - text) + 1 : i + 1;
	}
	return i;
}

/* Adds `by` when `word` stands at `text`; how much of the text that was. */
static size_t replaced(struct strbuf *sb, const char *text, const char *word, const char *by)
{
	size_t len = word ? strlen(word) : 0;

	if (len < 2 || strncmp(text, word, len) != 0 || isalnum((unsigned char)text[len]))
		return 0;
	strbuf_adds(sb, by);
	return len;
}

/* The project's place in front of a path is left out whole. */
static size_t root_replaced(struct strbuf *sb, const char *text, const char *root)
{
	size_t len = root ? strlen(root) : 0;

	if (len < 2 || strncmp(text, root, len) != 0 || continues_word(text[len]))
		return 0;
	if (text[len] == '/')
		return len + 1;
	strbuf_addc(sb, '.');
	return len;
}

static size_t left_out(const struct share *share, const char *text, bool starts, struct strbuf *sb)
{
	size_t len = number_len(text);

	if (len > 0) {
		strbuf_adds(sb, "0x" LEFT_OUT);
		return len;
	}
	len = root_replaced(sb, text, share->root);
	if (len == 0)
		len = replaced(sb, text, share->home, "~");
	if (len == 0 && starts)
		len = replaced(sb, text, share->host, "HOST");
	if (len > 0 || !starts)
		return len;
	len = variable_len(text);
	if (len == 0)
		return 0;
	strbuf_add(sb, text, len);
	strbuf_adds(sb, LEFT_OUT);
	return len + value_len(text + len);
}

char *share_text(const struct share *share, const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	bool starts = true; /* a word */

	while (*text != '\0') {
		size_t len = left_out(share, text, starts, &sb);

		if (len == 0) {
			strbuf_addc(&sb, *text);
			len = 1;
		}
		starts = !continues_word(text[len - 1]);
		text += len;
	}
	return sb.len > 0 ? strbuf_take(&sb) : mem_strdup("");
}

static bool holds_memory(const char *name)
{
	for (size_t i = 0; i < sizeof(memory_members) / sizeof(memory_members[0]); i++)
		if (strcmp(memory_members[i], name) == 0)
			return true;
	return false;
}

static void walk(const struct share *share, json_t *value)
{
	const char *name;
	json_t *member;
	size_t i;
	void *next;

	if (json_is_string(value)) {
		AUTO(mem_freep) char *text = share_text(share, json_string_value(value));

		(void)json_string_set(value, text);
	}
	json_array_foreach(value, i, member) walk(share, member);
	json_object_foreach_safe(value, next, name, member)
	{
		if (holds_memory(name))
			(void)json_object_set_new(value, name, json_null());
		else
			walk(share, member);
	}
}

char *share_json(const struct share *share, const char *text, bool mark)
{
	json_t *document = json_loads(text, 0, NULL);
	char *ret, *copy;

	if (!document)
		return NULL;
	walk(share, document);
	if (mark)
		(void)json_object_set_new(document, "shared", json_true());
	ret = json_dumps(document, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	json_decref(document);
	copy = ret ? mem_printf("%s\n", ret) : NULL;
	free(ret);
	return copy;
}
