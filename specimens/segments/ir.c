#include "ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BUCKETS 32

struct name {
	struct name *next;
	char text[];
};

static struct name *names[NAME_BUCKETS];

void *xcalloc(unsigned long count, unsigned long size)
{
	void *memory = calloc(count, size);

	if (!memory) {
		fputs("segments: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

const char *name_intern(const char *text)
{
	struct name *name;
	unsigned hash = 5381;

	for (const char *c = text; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (name = names[hash % NAME_BUCKETS]; name; name = name->next) {
		if (strcmp(name->text, text) == 0)
			return name->text;
	}
	name = xcalloc(1, sizeof(*name) + strlen(text) + 1);
	strcpy(name->text, text);
	name->next = names[hash % NAME_BUCKETS];
	names[hash % NAME_BUCKETS] = name;
	return name->text;
}

struct fusion *fusion_new(const char *name)
{
	struct fusion *self = xcalloc(1, sizeof(*self));

	self->name = name_intern(name);
	self->exprs_end = &self->exprs;
	return self;
}

void fusion_free(struct fusion *self)
{
	if (!self)
		return;
	while (self->exprs) {
		struct expr *next = self->exprs->next;

		free(self->exprs);
		self->exprs = next;
	}
	while (self->vals) {
		struct val *next = self->vals->next;

		free(self->vals);
		self->vals = next;
	}
	free(self);
}

static struct val *fusion_val(struct fusion *self, enum val_kind kind, const char *name)
{
	struct val *val = xcalloc(1, sizeof(*val));

	val->kind = kind;
	val->name = name_intern(name);
	val->next = self->vals;
	self->vals = val;
	return val;
}

struct val *fusion_tensor(struct fusion *self, const char *name, long extent)
{
	struct val *val = fusion_val(self, VAL_TENSOR, name);

	val->extent = extent;
	return val;
}

struct val *fusion_scalar(struct fusion *self, const char *name, long value)
{
	struct val *val = fusion_val(self, VAL_SCALAR, name);

	val->extent = value;
	return val;
}

struct val *fusion_apply(struct fusion *self, enum expr_kind kind, const char *name, struct val *a,
			 struct val *b, struct val *c)
{
	struct expr *expr = xcalloc(1, sizeof(*expr));
	struct val *inputs[EXPR_MAX_INPUTS] = { a, b, c };

	expr->kind = kind;
	while (expr->input_count < EXPR_MAX_INPUTS && inputs[expr->input_count]) {
		expr->inputs[expr->input_count] = inputs[expr->input_count];
		expr->input_count++;
	}
	expr->output = fusion_val(self, expr_is_scalar(expr) ? VAL_SCALAR : VAL_TENSOR, name);
	expr->output->definition = expr;
	*self->exprs_end = expr;
	self->exprs_end = &expr->next;
	self->expr_count++;
	return expr->output;
}

bool expr_is_scalar(const struct expr *self)
{
	return self->kind == EXPR_SCALAR_ADD || self->kind == EXPR_SCALAR_MUL;
}
