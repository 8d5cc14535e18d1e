/*
 * A fusion definition: what the user said, as a list of records. Replaying the
 * records builds the IR; comparing them tells whether two definitions are the
 * same; they are what the serializer stores.
 *
 * Values are numbered in the order they are defined. A function that cannot
 * define anything (a bad operand, say) returns -1, and so does everything built
 * on that.
 */
#ifndef FUSER_DEFINITION_H
#define FUSER_DEFINITION_H

#include "buffer.h"
#include "ir.h"

enum record_type {
	REC_TENSOR,
	REC_SCALAR,
	REC_CONSTANT,
	REC_OP,
	REC_OUTPUT,
	REC_ALIAS,
	REC_STRIDE_ORDER,
	REC_TYPES,
};

struct record {
	enum record_type type;
	enum ir_dtype dtype;
	enum ir_op op;
	int nargs;
	int args[IR_MAX_INPUTS];
	int nattrs;
	int64_t attrs[IR_MAX_ATTRS];
	double value;
};

struct definition {
	struct record *records;
	size_t count;
	size_t capacity;
	int next; /* number of the next value */
	bool broken;
};

struct definition *definition_create(void);
struct definition *definition_copy(const struct definition *src);
void definition_destroy(struct definition *d);

int def_tensor(struct definition *d, enum ir_dtype dtype, int rank, const int64_t *extent);
int def_scalar(struct definition *d, enum ir_dtype dtype);
int def_constant(struct definition *d, enum ir_dtype dtype, double value);

int def_unary(struct definition *d, enum ir_op op, int a);
int def_binary(struct definition *d, enum ir_op op, int a, int b);
int def_ternary(struct definition *d, enum ir_op op, int a, int b, int c);
int def_cast(struct definition *d, int a, enum ir_dtype dtype);
int def_reduce(struct definition *d, enum ir_op op, int a, unsigned axes, bool keepdim);
int def_var(struct definition *d, int a, unsigned axes, bool keepdim, int correction);

/* The view operations: RESHAPE, PERMUTE, EXPAND, SQUEEZE, SLICE, BROADCAST. */
int def_view(struct definition *d, enum ir_op op, int a, int nattrs, const int64_t *attrs);
int def_pad(struct definition *d, int a, int fill, int nattrs, const int64_t *attrs);
int def_cat(struct definition *d, int a, int b, int dim);
int def_index(struct definition *d, enum ir_op op, int a, int index, int dim);
int def_iota(struct definition *d, int64_t n, int64_t start, int64_t step);
int def_full(struct definition *d, int value, int rank, const int64_t *extent);

void def_output(struct definition *d, int a);
void def_alias_output(struct definition *d, int a, int input);
void def_stride_order(struct definition *d, int a, int rank, const int64_t *order);

uint64_t definition_hash(const struct definition *d);
bool definition_equal(const struct definition *a, const struct definition *b);

/* A new fusion, or NULL when some record does not fit what came before it. */
struct ir_container *definition_replay(const struct definition *d, const char *label);

void definition_write(const struct definition *d, struct buffer *out);

/* NULL when the bytes are not a definition. */
struct definition *definition_read(struct buffer *in);

#endif
