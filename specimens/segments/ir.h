/*
 * The program that is segmented: values, and expressions that compute them.
 *
 * A fusion owns its values and expressions. Names are interned and live as long as the process.
 */
#ifndef SEGMENTS_IR_H
#define SEGMENTS_IR_H

#include <stdbool.h>

#define EXPR_MAX_INPUTS 3

enum val_kind { VAL_TENSOR, VAL_SCALAR };

enum expr_kind {
	EXPR_SCALAR_ADD, /* scalars only */
	EXPR_SCALAR_MUL, /* scalars only */
	EXPR_POINTWISE,	 /* tensors of one extent and scalars */
	EXPR_REDUCE,	 /* tensor to extent 1 */
	EXPR_SLICE,	 /* tensor, first, last */
	EXPR_PAD,	 /* tensor, amount */
};

struct expr;

struct val {
	enum val_kind kind;
	const char *name;
	struct expr *definition; /* NULL for an input of the fusion */
	long extent;		 /* of an input tensor, or the value of an input scalar */
	struct val *next;
};

struct expr {
	enum expr_kind kind;
	struct val *inputs[EXPR_MAX_INPUTS];
	int input_count;
	struct val *output;
	struct expr *next;
};

struct fusion {
	const char *name;
	struct val *vals;
	struct expr *exprs; /* in the order in which they were made */
	struct expr **exprs_end;
	int expr_count;
};

/* A name that can be compared by address. */
const char *name_intern(const char *text);

struct fusion *fusion_new(const char *name);
void fusion_free(struct fusion *self);

/* Inputs of the fusion. */
struct val *fusion_tensor(struct fusion *self, const char *name, long extent);
struct val *fusion_scalar(struct fusion *self, const char *name, long value);

/* Adds an expression and returns its output. Unused inputs are NULL. */
struct val *fusion_apply(struct fusion *self, enum expr_kind kind, const char *name, struct val *a,
			 struct val *b, struct val *c);

/* Whether the expression works on scalars alone. */
bool expr_is_scalar(const struct expr *self);

/* malloc that ends the program when memory is exhausted. */
void *xcalloc(unsigned long count, unsigned long size);

#endif
