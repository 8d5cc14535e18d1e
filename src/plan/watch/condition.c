#include "plan/watch/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/strbuf.h"

#define NESTING_MAX 24

struct compiler {
	const char *text, *at;
	struct when *out;
	struct err *err;
	unsigned int nesting;
	bool broken; /* `err` is set; everything after it is skipped */
};

static void expression(struct compiler *c, int level);

__attribute__((format(printf, 3, 4))) static void err_set_here(struct compiler *c, const char *at,
							       const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf what = { 0 };
	va_list args;

	if (c->broken)
		return;
	c->broken = true;
	va_start(args, fmt);
	strbuf_vaddf(&what, fmt, args);
	va_end(args);
	(void)err_set(c->err, -EINVAL, "--when '%s': %s\n  %s\n  %*s^", c->text, strbuf_str(&what),
		      c->text, (int)(at - c->text), "");
}

static void skip_blanks(struct compiler *c)
{
	while (isspace((unsigned char)*c->at))
		c->at++;
}

static bool take(struct compiler *c, const char *token)
{
	size_t len = strlen(token);

	skip_blanks(c);
	if (c->broken || strncmp(c->at, token, len) != 0)
		return false;
	c->at += len;
	return true;
}

static struct plan_step *emit(struct compiler *c, enum plan_step_op op, uint64_t value)
{
	static struct plan_step nowhere;

	if (c->out->count == PLAN_STEPS_MAX) {
		err_set_here(c, c->at, "it is too long");
		return &nowhere;
	}
	c->out->steps[c->out->count] = (struct plan_step){ .op = (uint8_t)op, .value = value };
	return &c->out->steps[c->out->count++];
}

static uint64_t bit_argument(struct compiler *c)
{
	char *end;
	unsigned long long bit;

	if (!take(c, "(")) {
		err_set_here(c, c->at, "'(' and a bit's number are missing");
		return 0;
	}
	skip_blanks(c);
	bit = strtoull(c->at, &end, 0);
	if (end == c->at || bit > 63) {
		err_set_here(c, c->at, "a bit's number, 0 to 63, is missing");
		return 0;
	}
	c->at = end;
	if (!take(c, ")"))
		err_set_here(c, c->at, "')' is missing");
	return 1ull << bit;
}

/* (old & bit) && !(new & bit), or the other way round. */
static void bit_change(struct compiler *c, enum plan_step_op had, enum plan_step_op lost)
{
	uint64_t bit = bit_argument(c);

	(void)emit(c, had, 0);
	(void)emit(c, PLAN_STEP_PUSH, bit);
	(void)emit(c, PLAN_STEP_AND, 0);
	(void)emit(c, lost, 0);
	(void)emit(c, PLAN_STEP_PUSH, bit);
	(void)emit(c, PLAN_STEP_AND, 0);
	(void)emit(c, PLAN_STEP_NOT, 0);
	(void)emit(c, PLAN_STEP_BOTH, 0);
}

static void writer(struct compiler *c)
{
	bool differs = take(c, "!=");
	struct when_name name = { .step = c->out->count };
	const char *end;

	if (!differs && !take(c, "==")) {
		err_set_here(c, c->at, "'writer' is compared with a name: writer == NAME");
		return;
	}
	skip_blanks(c);
	name.at = (size_t)(c->at - c->text);
	if (*c->at == '"' || *c->at == '\'') {
		end = strchr(c->at + 1, *c->at);
		if (!end) {
			err_set_here(c, c->at, "the quote is not closed");
			return;
		}
		name.name = mem_strndup(c->at + 1, (size_t)(end - c->at - 1));
		c->at = end + 1;
	} else {
		for (end = c->at;
		     isalnum((unsigned char)*end) || (*end && strchr("_.:~/-+", *end));)
			end++;
		if (end == c->at) {
			err_set_here(c, c->at, "a function's or a module's name is missing");
			return;
		}
		name.name = mem_strndup(c->at, (size_t)(end - c->at));
		c->at = end;
	}
	VEC_PUSH(&c->out->names, name);
	(void)emit(c, PLAN_STEP_WRITER, 0);
	if (differs)
		(void)emit(c, PLAN_STEP_NOT, 0);
}

static void push_old(struct compiler *c)
{
	(void)emit(c, PLAN_STEP_OLD, 0);
}
static void push_new(struct compiler *c)
{
	(void)emit(c, PLAN_STEP_NEW, 0);
}
static void push_size(struct compiler *c)
{
	(void)emit(c, PLAN_STEP_SIZE, 0);
}
static void push_tid(struct compiler *c)
{
	(void)emit(c, PLAN_STEP_TID, 0);
}
static void push_age(struct compiler *c)
{
	(void)emit(c, PLAN_STEP_AGE, 0);
}
static void clears(struct compiler *c)
{
	bit_change(c, PLAN_STEP_OLD, PLAN_STEP_NEW);
}
static void sets(struct compiler *c)
{
	bit_change(c, PLAN_STEP_NEW, PLAN_STEP_OLD);
}

static void changes(struct compiler *c)
{
	push_old(c);
	push_new(c);
	(void)emit(c, PLAN_STEP_NE, 0);
}

static const struct {
	const char *name;
	void (*compile)(struct compiler *c);
} words[] = {
	{ "old", push_old },  { "new", push_new }, { "size", push_size },
	{ "tid", push_tid },  { "age", push_age }, { "writer", writer },
	{ "clears", clears }, { "sets", sets },	   { "changes", changes },
};

static void word(struct compiler *c)
{
	const char *names[sizeof(words) / sizeof(words[0])], *near;
	const char *from = c->at;
	AUTO(mem_freep) char *text = NULL;

	while (isalnum((unsigned char)*c->at) || *c->at == '_')
		c->at++;
	text = mem_strndup(from, (size_t)(c->at - from));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		names[i] = words[i].name;
		if (strcmp(text, words[i].name) == 0) {
			words[i].compile(c);
			return;
		}
	}
	near = nearest_name(text, names, sizeof(names) / sizeof(names[0]));
	if (near)
		err_set_here(c, from, "there is no '%s'; did you mean '%s'?", text, near);
	else
		err_set_here(c, from,
			     "there is no '%s': old, new, size, tid, age, writer, changes, "
			     "clears(BIT), sets(BIT)",
			     text);
}

/* By binding, the loosest first; within a level the longer ones first. */
static const struct {
	int level;
	const char *token;
	enum plan_step_op op;
} operators[] = {
	{ 0, "||", PLAN_STEP_EITHER }, { 1, "&&", PLAN_STEP_BOTH }, { 2, "|", PLAN_STEP_OR },
	{ 3, "^", PLAN_STEP_XOR },     { 4, "&", PLAN_STEP_AND },   { 5, "==", PLAN_STEP_EQ },
	{ 5, "!=", PLAN_STEP_NE },     { 6, "<=", PLAN_STEP_LE },   { 6, ">=", PLAN_STEP_GE },
	{ 6, "<", PLAN_STEP_LT },      { 6, ">", PLAN_STEP_GT },    { 7, "<<", PLAN_STEP_SHL },
	{ 7, ">>", PLAN_STEP_SHR },    { 8, "+", PLAN_STEP_ADD },   { 8, "-", PLAN_STEP_SUB },
};

#define LEVEL_UNARY 9

/* Is the operator here, and not a longer one that begins the same? */
static bool here(const struct compiler *c, const char *token)
{
	size_t len = strlen(token);

	if (strncmp(c->at, token, len) != 0)
		return false;
	if (len == 1 && strchr("|&", token[0]) && c->at[1] == token[0])
		return false;
	return !(len == 1 && strchr("<>", token[0]) && (c->at[1] == token[0] || c->at[1] == '='));
}

static void unary(struct compiler *c)
{
	char *end;
	uint64_t value;

	if (c->nesting == NESTING_MAX) {
		err_set_here(c, c->at, "it is nested too deeply");
		return;
	}
	c->nesting++;
	skip_blanks(c);
	if (*c->at == '!' && c->at[1] != '=') {
		c->at++;
		unary(c);
		(void)emit(c, PLAN_STEP_NOT, 0);
	} else if (take(c, "~")) {
		unary(c);
		(void)emit(c, PLAN_STEP_INVERT, 0);
	} else if (take(c, "(")) {
		expression(c, 0);
		if (!take(c, ")"))
			err_set_here(c, c->at, "')' is missing");
	} else if (isdigit((unsigned char)*c->at)) {
		errno = 0;
		value = strtoull(c->at, &end, 0);
		if (errno != 0 || isalnum((unsigned char)*end))
			err_set_here(c, c->at, "this is no number");
		c->at = end;
		(void)emit(c, PLAN_STEP_PUSH, value);
	} else if (isalpha((unsigned char)*c->at)) {
		word(c);
	} else {
		err_set_here(c, c->at, "a value is missing");
	}
	c->nesting--;
}

static void expression(struct compiler *c, int level)
{
	bool again = true;

	if (level == LEVEL_UNARY) {
		unary(c);
		return;
	}
	expression(c, level + 1);
	while (again && !c->broken) {
		again = false;
		skip_blanks(c);
		for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
			if (operators[i].level != level || !here(c, operators[i].token))
				continue;
			c->at += strlen(operators[i].token);
			expression(c, level + 1);
			(void)emit(c, operators[i].op, 0);
			again = true;
			break;
		}
	}
}

int when_compile(const char *text, struct when *ret, struct err *err)
{
	struct compiler c = { .text = text, .at = text, .out = ret, .err = err };

	expression(&c, 0);
	skip_blanks(&c);
	if (!c.broken && *c.at != '\0')
		err_set_here(&c, c.at, "this does not belong here");
	if (c.broken)
		when_deinit(ret);
	return c.broken ? -EINVAL : 0;
}

void when_deinit(struct when *when)
{
	VEC_FREE(&when->names, name, mem_free(name->name));
}
