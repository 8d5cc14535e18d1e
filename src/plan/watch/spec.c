#include "plan/watch/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/command.h"
#include "base/mem.h"
#include "base/strbuf.h"

struct spec_parser {
	const char *text;
	const char *at;
	struct err *err;
};

static const struct {
	const char *prefix;
	enum spec_kind kind;
} kinds[] = {
	{ "global:", SPEC_GLOBAL }, { "addr:", SPEC_ADDRESS }, { "alloc:", SPEC_ALLOC },
	{ "key:", SPEC_KEY },	    { "ret:", SPEC_RETURN },   { "pytype:", SPEC_PYTHON_TYPE },
	{ "struct ", SPEC_STRUCT }, { "class ", SPEC_STRUCT }, { "union ", SPEC_STRUCT },
	{ "arg", SPEC_ARGUMENT },
};

int err_set_in_spec(const char *text, size_t at, struct err *err, const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&sb, fmt, args);
	va_end(args);
	return err_set(err, -EINVAL, "--on '%s': %s\n  %s\n  %*s^", text, strbuf_str(&sb), text,
		       (int)at, "");
}

static int err_set_here(const struct spec_parser *p, const char *what)
{
	return err_set_in_spec(p->text, (size_t)(p->at - p->text), p->err, "%s", what);
}

static bool number(struct spec_parser *p, int base, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)*p->at))
		return false;
	errno = 0;
	*ret = strtoull(p->at, &end, base);
	if (end == p->at || errno != 0)
		return false;
	p->at = end;
	return true;
}

static int unknown_kind(const struct spec_parser *p)
{
	static const char *const names[] = { "global", "addr", "alloc",	 "key",
					     "ret",    "arg0", "pytype", "struct" };
	AUTO(mem_freep) char *word = mem_strndup(p->text, strcspn(p->text, ": "));
	const char *near = nearest_name(word, names, sizeof(names) / sizeof(names[0]));

	if (near)
		return err_set_in_spec(p->text, 0, p->err, "there is no '%s'; did you mean %s:…?",
				       word, near);
	return err_set_here(p,
			    "it begins with global:, addr:, alloc:, key:, ret:, argN:, pytype: or "
			    "'struct '");
}

static int parse_kind(struct spec_parser *p, struct spec *ret)
{
	uint64_t n;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(p->at, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
			continue;
		ret->kind = kinds[i].kind;
		p->at += strlen(kinds[i].prefix);
		if (ret->kind != SPEC_ARGUMENT)
			return 0;
		if (!isdigit((unsigned char)*p->at) || !number(p, 10, &n) || n > 5)
			return err_set_here(p, "the argument's number, 0 to 5, is missing");
		if (*p->at != ':')
			return err_set_here(p, "':' and the function's name are missing");
		p->at++;
		ret->argument = (unsigned int)n;
		return 0;
	}
	return unknown_kind(p);
}

/* A name ends where an offset, a field or an attribute begins. Scopes of C++ (::), template
 * arguments and files' dots do not end it, nor does anything in FILE of FILE!NAME. */
static size_t name_length(const char *at, bool file)
{
	const char *mark = strchr(at, '!');
	size_t i = mark ? (size_t)(mark - at) + 1 : 0, depth = 0;

	for (; at[i] != '\0'; i++) {
		if (at[i] == '<')
			depth++;
		else if (at[i] == '>' && depth > 0)
			depth--;
		if (depth > 0)
			continue;
		if ((at[i] == '+' || (at[i] == '-' && !file)) && isdigit((unsigned char)at[i + 1]))
			break;
		if (at[i] == ',')
			break;
		if (at[i] == '.' && !file)
			break;
	}
	return i;
}

/* Words of an object of Python's, wherever its version keeps them. */
static const char *const python_words[SPEC_PYTHON_WORDS] = {
	[SPEC_REFCNT] = "refcnt",
	[SPEC_TYPE] = "type",
	[SPEC_MANAGED_DICT] = "managed_dict",
	[SPEC_VALUES] = "values",
};

enum spec_python_word spec_python_word(const char *field)
{
	enum spec_python_word word = 0;

	while (word < SPEC_PYTHON_WORDS && strcmp(python_words[word], field) != 0)
		word++;
	return word;
}

/* NAME or MODULE.NAME; what comes after the last dot may be one of those words. */
static int parse_python(struct spec_parser *p, struct spec *ret)
{
	const char *end = p->at, *dot;

	while (isalnum((unsigned char)*end) || *end == '_' || *end == '.' ||
	       (unsigned char)*end >= 0x80)
		end++;
	if (end == p->at || isdigit((unsigned char)*p->at) || *p->at == '.')
		return err_set_here(p, "the name of a class is missing");
	ret->name_at = (size_t)(p->at - p->text);
	ret->name = mem_strndup(p->at, (size_t)(end - p->at));
	p->at = end;
	dot = strrchr(ret->name, '.');
	if (strncmp(end, " ", 1) == 0 && dot && strcmp(dot, ".struct") == 0) {
		p->at -= strlen(dot);
		ret->name[dot - ret->name] = '\0';
		return 0;
	}
	if (dot && dot[1] == '\0')
		return err_set_here(p, "a field's name is missing");
	if (dot && spec_python_word(dot + 1) < SPEC_PYTHON_WORDS) {
		p->at -= strlen(dot);
		ret->name[dot - ret->name] = '\0';
	}
	return 0;
}

/* FILE:LINE: a colon that is no part of '::', and digits after it. The one of +OFFSET:LEN comes
 * later. */
static const char *line_colon(const char *at)
{
	const char *end = at + name_length(at, true);

	for (const char *c = strchr(at, ':'); c && c < end; c = strchr(c + 1, ':')) {
		if (c[1] == ':') {
			c++;
			continue;
		}
		if (c > at && isdigit((unsigned char)c[1]))
			return c;
	}
	return NULL;
}

static int parse_line(struct spec_parser *p, const char *colon, struct spec *ret)
{
	uint64_t line;

	ret->kind = SPEC_ALLOC_LINE;
	ret->name_at = (size_t)(p->at - p->text);
	ret->name = mem_strndup(p->at, (size_t)(colon - p->at));
	p->at = colon + 1;
	if (!number(p, 10, &line) || line == 0 || line > 100000000)
		return err_set_here(p, "a line number is missing");
	ret->line = (unsigned int)line;
	return 0;
}

static int parse_name(struct spec_parser *p, struct spec *ret)
{
	const char *colon = ret->kind == SPEC_ALLOC ? line_colon(p->at) : NULL;
	size_t len;

	if (colon)
		return parse_line(p, colon, ret);
	if (ret->kind == SPEC_PYTHON_TYPE)
		return parse_python(p, ret);
	len = name_length(p->at, false);
	if (len == 0)
		return err_set_here(p, "a name is missing");
	ret->name_at = (size_t)(p->at - p->text);
	ret->name = mem_strndup(p->at, len);
	p->at += len;
	return 0;
}

static int parse_key(struct spec_parser *p, struct spec *ret)
{
	uint64_t n;

	if (!number(p, 16, &ret->hash) || ret->hash == 0)
		return err_set_here(
			p, "a context (16 hexadecimal digits, from 'redhand show') is missing");
	if (*p->at == '@') {
		p->at++;
		if (!number(p, 10, &n) || n > UINT32_MAX)
			return err_set_here(p, "a thread's number is missing");
		ret->lane = (uint32_t)n;
		ret->lane_given = true;
	}
	if (*p->at != '#')
		return err_set_here(p, "'#' and the block's number in its context are missing");
	p->at++;
	if (!number(p, 10, &n) || n > UINT32_MAX)
		return err_set_here(p, "the block's number in its context is missing");
	ret->ordinal = (uint32_t)n;
	return 0;
}

static int parse_body(struct spec_parser *p, struct spec *ret)
{
	if (ret->kind == SPEC_KEY)
		return parse_key(p, ret);
	if (ret->kind != SPEC_ADDRESS)
		return parse_name(p, ret);
	if (!number(p, 0, &ret->address) || ret->address == 0)
		return err_set_here(p, "an address like 0x7ffff7a01234 is missing");
	return 0;
}

static int parse_attributes(struct spec_parser *p, struct spec *ret)
{
	while (*p->at == ',') {
		p->at++;
		if (strncmp(p->at, "size=", 5) != 0)
			return err_set_here(p, "only ',size=N' can stand here");
		if (ret->kind != SPEC_ALLOC && ret->kind != SPEC_ALLOC_LINE)
			return err_set_here(p, "a size is for alloc: only");
		p->at += 5;
		if (!number(p, 0, &ret->size) || ret->size == 0)
			return err_set_here(p, "the blocks' size in bytes is missing");
	}
	return 0;
}

/* A pointer that a function is given or returns may have something of its block before it, as an
 * object of Python's has. */
static bool is_pointed(enum spec_kind kind)
{
	return kind == SPEC_PYTHON_TYPE || kind == SPEC_RETURN || kind == SPEC_ARGUMENT;
}

static int parse_part(struct spec_parser *p, struct spec *ret)
{
	bool before;
	uint64_t n;

	if (*p->at == '.') {
		p->at++;
		ret->field_at = (size_t)(p->at - p->text);
		if (*p->at == '\0')
			return err_set_here(p, "a field's name is missing");
		ret->field = mem_strdup(p->at);
		p->at += strlen(p->at);
		return 0;
	}
	before = *p->at == '-' && is_pointed(ret->kind);
	if (*p->at != '+' && !before)
		return 0;
	p->at++;
	if (!number(p, 0, &n) || n > INT32_MAX)
		return err_set_here(p, "an offset in bytes (24, 0x18) is missing");
	ret->offset_given = true;
	ret->offset = before ? -(int64_t)n : (int64_t)n;
	if (*p->at != ':')
		return 0;
	p->at++;
	if (!number(p, 0, &ret->len) || ret->len == 0 || ret->len > 32)
		return err_set_here(p, "a length of 1 to 32 bytes is missing");
	return 0;
}

int spec_parse(const char *text, struct spec *ret, struct err *err)
{
	struct spec_parser p = { .text = text, .at = text, .err = err };
	int r = parse_kind(&p, ret);

	if (r == 0)
		r = parse_body(&p, ret);
	if (r == 0)
		r = parse_attributes(&p, ret);
	if (r == 0)
		r = parse_part(&p, ret);
	if (r == 0 && *p.at != '\0')
		r = err_set_here(
			&p, "this does not belong here; +OFFSET[:LEN] or .field may stand at the "
			    "end");
	if (r == 0 && ret->kind == SPEC_STRUCT && !ret->field)
		r = err_set_here(&p, "'.' and a field's name are missing");
	if (r < 0)
		spec_deinit(ret);
	return r;
}

void spec_deinit(struct spec *spec)
{
	mem_free(spec->name);
	mem_free(spec->field);
	*spec = (struct spec){ 0 };
}
