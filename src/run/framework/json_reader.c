#include "run/framework/json_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

/* Deeper than any real document; hostile ones must not use up our stack. */
#define DEPTH_MAX 64

struct reader {
	const char *at;
	unsigned int depth;
};

static bool read_value(struct reader *r, struct json_value *ret);

static void skip_space(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
}

static bool take(struct reader *r, const char *word)
{
	size_t len = strlen(word);

	skip_space(r);
	if (strncmp(r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

static void add_utf8(struct strbuf *sb, unsigned long code)
{
	if (code < 0x80) {
		strbuf_addc(sb, (char)code);
	} else if (code < 0x800) {
		strbuf_addc(sb, (char)(0xc0 | code >> 6));
		strbuf_addc(sb, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		strbuf_addc(sb, (char)(0xe0 | code >> 12));
		strbuf_addc(sb, (char)(0x80 | (code >> 6 & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | (code & 0x3f)));
	} else {
		strbuf_addc(sb, (char)(0xf0 | code >> 18));
		strbuf_addc(sb, (char)(0x80 | (code >> 12 & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | (code >> 6 & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | (code & 0x3f)));
	}
}

static bool read_hex(struct reader *r, unsigned long *ret)
{
	char digits[5] = { 0 };
	char *end;

	for (int i = 0; i < 4; i++) {
		if (r->at[i] == '\0')
			return false;
		digits[i] = r->at[i];
	}
	*ret = strtoul(digits, &end, 16);
	r->at += 4;
	return end == digits + 4;
}

static bool read_escape(struct reader *r, struct strbuf *sb)
{
	static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
	unsigned long code, low;
	const char *letter;
	char c = *r->at++;

	if (c == '\0')
		return false;
	if (c != 'u') {
		letter = strchr(letters, c);
		if (letter)
			c = values[letter - letters];
		strbuf_addc(sb, c);
		return true;
	}
	if (!read_hex(r, &code) || code == 0)
		return false;
	/* A surrogate pair: RFC 8259, section 7. */
	if (code >= 0xd800 && code < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u') {
		r->at += 2;
		if (!read_hex(r, &low))
			return false;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	add_utf8(sb, code);
	return true;
}

static bool read_string(struct reader *r, char **ret)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (!take(r, "\""))
		return false;
	while (*r->at != '"') {
		if (*r->at == '\0')
			return false;
		if (*r->at != '\\')
			strbuf_addc(&sb, *r->at++);
		else if (r->at++, !read_escape(r, &sb))
			return false;
	}
	r->at++;
	*ret = strbuf_take(&sb);
	return true;
}

static bool read_items(struct reader *r, struct json_value *ret, const char *close)
{
	if (take(r, close))
		return true;
	do {
		struct json_value item = { 0 };
		char *key = NULL;
		bool ok = ret->kind != JSON_TABLE || (read_string(r, &key) && take(r, ":"));

		ok = ok && read_value(r, &item);
		item.key = key;
		VEC_PUSH(&ret->items, item);
		if (!ok)
			return false;
	} while (take(r, ","));
	return take(r, close);
}

static bool read_nested(struct reader *r, struct json_value *ret, enum json_kind kind,
			const char *close)
{
	bool ok;

	ret->kind = kind;
	if (++r->depth > DEPTH_MAX)
		return false;
	ok = read_items(r, ret, close);
	r->depth--;
	return ok;
}

static bool read_value(struct reader *r, struct json_value *ret)
{
	size_t len;

	if (take(r, "{"))
		return read_nested(r, ret, JSON_TABLE, "}");
	if (take(r, "["))
		return read_nested(r, ret, JSON_LIST, "]");
	if (*r->at == '"') {
		ret->kind = JSON_TEXT;
		return read_string(r, &ret->text);
	}
	if (take(r, "true") || take(r, "false")) {
		ret->kind = JSON_TRUTH;
		ret->truth = r->at[-2] == 'u';
		return true;
	}
	if (take(r, "null"))
		return true;
	len = strspn(r->at, "+-.0123456789eE");
	if (len == 0)
		return false;
	ret->kind = JSON_TEXT;
	ret->text = mem_strndup(r->at, len);
	r->at += len;
	return true;
}

int json_read(const char *text, struct json_value *ret, struct err *err)
{
	struct reader r = { .at = text };

	*ret = (struct json_value){ 0 };
	if (read_value(&r, ret))
		return 0;
	json_value_deinit(ret);
	return err_set(err, -EINVAL, "that is not JSON, from character %zu on",
		       (size_t)(r.at - text));
}

void json_value_deinit(struct json_value *value)
{
	VEC_FREE(&value->items, item, json_value_deinit(item));
	mem_free(value->text);
	mem_free(value->key);
	*value = (struct json_value){ 0 };
}

const struct json_value *json_get(const struct json_value *table, const char *key)
{
	if (table)
		VEC_FOREACH (&table->items, item)
			if (item->key && strcmp(item->key, key) == 0)
				return item;
	return NULL;
}

const char *json_get_text(const struct json_value *table, const char *key)
{
	const struct json_value *value = json_get(table, key);

	return value ? value->text : NULL;
}
