/*
 * The IR: a fusion is a graph of tensor operations.
 *
 * Operations live in one array and name each other by index. The array is not in execution order:
 * passes append to it freely, and whoever needs an order asks fusion_order(). An operation that a
 * pass has made superfluous stays in the array, marked dead.
 */
#ifndef PRESEGMENT_IR_H
#define PRESEGMENT_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANK_MAX 4
#define OUTPUTS_MAX 4

enum dtype {
	DT_BF16,
	DT_F32,
	DT_F64,
};

enum op_kind {
	OP_INPUT,
	OP_CAST,
	OP_NEG,
	OP_EXP,
	OP_RSQRT,
	OP_SCALE,  /* times `scalar` */
	OP_OFFSET, /* plus `scalar` */
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_SLICE,  /* [lo, hi) of `axis` */
	OP_PAD,	   /* lo zeros before and hi after, on `axis` */
	OP_REPEAT, /* axis 0, lo times */
	OP_EXPAND, /* a new axis 0 of extent lo, stride 0 */
	OP_RESHAPE,
	OP_SUM, /* over the last axis, which stays with extent 1 */
	OP_MAX,
};

struct shape {
	int rank;
	int64_t extent[RANK_MAX];
};

struct op {
	enum op_kind kind;
	enum dtype dtype;
	int in[2]; /* -1 where unused */
	struct shape shape;
	int axis;
	int64_t lo, hi;
	double scalar;
	bool dead;
	bool alias;	 /* shares the storage of in[0] */
	bool contiguous; /* laid out densely, in the order of its axes */
};

struct fusion {
	char *name;
	struct op *ops;
	int nops, capacity;
	int outputs[OUTPUTS_MAX];
	int noutputs;
};

/* A sentence for the user, filled in by whatever fails. */
struct diag {
	char text[256];
};

int diag_set(struct diag *diag, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct fusion *fusion_new(const char *name);
void fusion_free(struct fusion *f);

/* Builders. Each returns the index of the new operation; an operand that does not fit is a mistake
 * of the caller and ends the program. */
int fusion_input(struct fusion *f, enum dtype dtype, int rank, const int64_t *extents);
int fusion_cast(struct fusion *f, int x, enum dtype dtype);
int fusion_unary(struct fusion *f, enum op_kind kind, int x);
int fusion_scalar(struct fusion *f, enum op_kind kind, int x, double scalar);
int fusion_binary(struct fusion *f, enum op_kind kind, int a, int b);
int fusion_slice(struct fusion *f, int x, int axis, int64_t lo, int64_t hi);
int fusion_pad(struct fusion *f, int x, int axis, int64_t before, int64_t after);
int fusion_repeat(struct fusion *f, int x, int64_t times);
int fusion_expand(struct fusion *f, int x, int64_t times);
int fusion_reshape(struct fusion *f, int x, const struct shape *shape);
int fusion_reduce(struct fusion *f, enum op_kind kind, int x);
void fusion_output(struct fusion *f, int x);

/* Makes every user of `old`, outputs included, use `new` instead, and marks `old` dead. */
void fusion_replace(struct fusion *f, int old, int new);
int fusion_count_uses(const struct fusion *f, int x);

/* Writes the live operations that the outputs need, operands first, to order[nops]; returns how
 * many. */
int fusion_order(const struct fusion *f, int *order);
/* True when order[count] is such an order, complete and without repetition. */
bool fusion_order_is_valid(const struct fusion *f, const int *order, int count);

/* Equal for fusions that compile to the same thing. */
uint64_t fusion_hash(const struct fusion *f);

int64_t shape_elements(const struct shape *s);
const char *op_kind_name(enum op_kind kind);
size_t dtype_bytes(enum dtype dtype);

#endif
