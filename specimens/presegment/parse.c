#include "parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 8
#define NAMES_MAX 256

struct parser {
	struct fusion *fusion;
	const char *file;
	int line;
	char *names[NAMES_MAX]; /* of the operations, by index */
	char *words[WORDS_MAX];
	int nwords;
	struct diag *diag;
};

static int wrong(struct parser *p, const char *what)
{
	return diag_set(p->diag, -EINVAL, "%s:%d: %s", p->file, p->line, what);
}

static void split(struct parser *p, char *text)
{
	char *save, *hash = strchr(text, '#');

	if (hash)
		*hash = '\0';
	p->nwords = 0;
	for (char *w = strtok_r(text, " \t\n", &save); w && p->nwords < WORDS_MAX;
	     w = strtok_r(NULL, " \t\n", &save))
		p->words[p->nwords++] = w;
}

static bool operand(const struct parser *p, int word, int *ret)
{
	for (int i = p->fusion->nops; word < p->nwords && i-- > 0;) {
		if (strcmp(p->names[i], p->words[word]) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static bool number(const struct parser *p, int word, double *ret)
{
	char *end;

	if (word >= p->nwords)
		return false;
	*ret = strtod(p->words[word], &end);
	return end != p->words[word] && *end == '\0' && *ret > -1e9 && *ret < 1e9;
}

static bool type(const struct parser *p, int word, enum dtype *ret)
{
	static const char *const names[] = { "bf16", "f32", "f64" };

	for (int i = 0; word < p->nwords && i < 3; i++) {
		if (strcmp(names[i], p->words[word]) == 0) {
			*ret = (enum dtype)i;
			return true;
		}
	}
	return false;
}

static int parse_input(struct parser *p)
{
	int64_t extents[RANK_MAX];
	enum dtype dtype;
	int rank = 0;
	double n;

	if (!type(p, 3, &dtype))
		return wrong(p, "an input needs a type: bf16, f32 or f64");
	while (rank < RANK_MAX && number(p, 4 + rank, &n) && n >= 1)
		extents[rank++] = (int64_t)n;
	if (rank == 0 || 4 + rank != p->nwords)
		return wrong(p, "an input needs one to four extents");
	return fusion_input(p->fusion, dtype, rank, extents);
}

/* The line "NAME = KIND OPERANDS..."; returns the new operation. */
static int parse_op(struct parser *p)
{
	static const struct {
		enum op_kind kind;
		int operands, numbers;
	} forms[] = {
		{ OP_NEG, 1, 0 },    { OP_EXP, 1, 0 }, { OP_RSQRT, 1, 0 },  { OP_SCALE, 1, 1 },
		{ OP_OFFSET, 1, 1 }, { OP_ADD, 2, 0 }, { OP_SUB, 2, 0 },    { OP_MUL, 2, 0 },
		{ OP_SLICE, 1, 3 },  { OP_PAD, 1, 3 }, { OP_REPEAT, 1, 1 }, { OP_SUM, 1, 0 },
		{ OP_MAX, 1, 0 },
	};
	struct fusion *f = p->fusion;
	int x[2] = { 0 };
	double n[3] = { 0 };
	enum dtype dtype;
	size_t i = 0;

	if (strcmp(p->words[2], "input") == 0)
		return parse_input(p);
	if (strcmp(p->words[2], "cast") == 0) {
		if (p->nwords != 5 || !operand(p, 3, &x[0]) || !type(p, 4, &dtype))
			return wrong(p, "a cast needs an operand and a type");
		return fusion_cast(f, x[0], dtype);
	}
	while (i < sizeof(forms) / sizeof(forms[0]) &&
	       strcmp(op_kind_name(forms[i].kind), p->words[2]) != 0)
		i++;
	if (i == sizeof(forms) / sizeof(forms[0]))
		return wrong(p, "no such operation");
	if (p->nwords != 3 + forms[i].operands + forms[i].numbers)
		return wrong(p, "wrong number of operands");
	for (int k = 0; k < forms[i].operands; k++) {
		if (!operand(p, 3 + k, &x[k]))
			return wrong(p, "an operand is not defined above");
	}
	for (int k = 0; k < forms[i].numbers; k++) {
		if (!number(p, 3 + forms[i].operands + k, &n[k]))
			return wrong(p, "a number was expected");
	}
	switch (forms[i].kind) {
	case OP_SCALE:
	case OP_OFFSET:
		return fusion_scalar(f, forms[i].kind, x[0], n[0]);
	case OP_SLICE:
		return fusion_slice(f, x[0], (int)n[0], (int64_t)n[1], (int64_t)n[2]);
	case OP_PAD:
		return fusion_pad(f, x[0], (int)n[0], (int64_t)n[1], (int64_t)n[2]);
	case OP_REPEAT:
		return fusion_repeat(f, x[0], (int64_t)n[0]);
	case OP_SUM:
	case OP_MAX:
		return fusion_reduce(f, forms[i].kind, x[0]);
	default:
		if (forms[i].operands == 2)
			return fusion_binary(f, forms[i].kind, x[0], x[1]);
		return fusion_unary(f, forms[i].kind, x[0]);
	}
}

static int parse_line(struct parser *p, char *text)
{
	int id;

	split(p, text);
	if (p->nwords == 0)
		return 0;
	if (p->nwords == 2 && strcmp(p->words[0], "output") == 0) {
		if (!operand(p, 1, &id))
			return wrong(p, "the output is not defined above");
		fusion_output(p->fusion, id);
		return 0;
	}
	if (p->nwords < 3 || strcmp(p->words[1], "=") != 0)
		return wrong(p, "expected 'NAME = OPERATION ...' or 'output NAME'");
	if (p->fusion->nops == NAMES_MAX)
		return wrong(p, "too many operations");
	id = parse_op(p);
	if (id < 0)
		return id;
	p->names[id] = strdup(p->words[0]);
	return p->names[id] ? 0 : -ENOMEM;
}

int fusion_parse(FILE *in, const char *name, struct fusion **ret, struct diag *diag)
{
	struct parser p = { .fusion = fusion_new(name), .file = name, .diag = diag };
	char *text = NULL;
	size_t size = 0;
	int r = 0;

	while (r == 0 && getline(&text, &size, in) >= 0) {
		p.line++;
		r = parse_line(&p, text);
	}
	if (r == 0 && p.fusion->noutputs == 0)
		r = wrong(&p, "the fusion has no output");
	free(text);
	for (int i = 0; i < p.fusion->nops; i++)
		free(p.names[i]);
	if (r < 0)
		fusion_free(p.fusion);
	else
		*ret = p.fusion;
	return r;
}
