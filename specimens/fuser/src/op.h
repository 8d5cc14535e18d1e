/* The operations an expression can have, and what they do to one element. */
#ifndef FUSER_OP_H
#define FUSER_OP_H

#include <stdbool.h>

enum ir_dtype { IR_BOOL, IR_INT, IR_HALF, IR_FLOAT, IR_DOUBLE, IR_DTYPES };

enum op_class {
	OPC_UNARY,
	OPC_BINARY,
	OPC_TERNARY,
	OPC_REDUCTION,
	OPC_VIEW,    /* moves elements, computes none */
	OPC_INDEX,   /* reads positions that another tensor names */
	OPC_FACTORY, /* no tensor goes in */
	OPC_MATMUL,
};

enum ir_op {
	OP_SET,
	OP_CAST,
	OP_NEG,
	OP_ABS,
	OP_EXP,
	OP_LOG,
	OP_SQRT,
	OP_RSQRT,
	OP_SIN,
	OP_COS,
	OP_TANH,
	OP_SIGMOID,
	OP_ERF,
	OP_RELU,
	OP_FLOOR,
	OP_CEIL,
	OP_SIGN,
	OP_ISFINITE,
	OP_SIGNBIT,
	OP_NOT,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
	OP_POW,
	OP_MAXIMUM,
	OP_MINIMUM,
	OP_GCD,
	OP_NEXTAFTER,
	OP_EQ,
	OP_LT,
	OP_GT,
	OP_AND,
	OP_OR,
	OP_WHERE,
	OP_CLAMP,
	OP_LERP,
	OP_SUM,
	OP_PROD,
	OP_AMAX,
	OP_AMIN,
	OP_MEAN,
	OP_VAR,
	OP_RESHAPE,
	OP_PERMUTE,
	OP_BROADCAST,
	OP_EXPAND,
	OP_SQUEEZE,
	OP_SLICE,
	OP_PAD,
	OP_CAT,
	OP_INDEX_SELECT,
	OP_GATHER,
	OP_IOTA,
	OP_FULL,
	OP_MATMUL,
	OP_COUNT,
};

struct op_info {
	const char *name;
	enum op_class class;
	int arity;
	bool predicate;				       /* the result is IR_BOOL whatever goes in */
	double (*apply)(double a, double b, double c); /* element by element; else NULL */
};

const struct op_info *op_info(enum ir_op op);

/* The value as it reads back after being stored with that type. */
double dtype_round(enum ir_dtype dtype, double v);

#endif
