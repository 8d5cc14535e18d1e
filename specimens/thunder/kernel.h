/*
 * Operations and the kernels that carry them out.
 *
 * An operation has one kernel per rank class: most are written for any shape, `outer`
 * has one for vectors and one that treats the first dimension as a batch. A kernel for
 * a higher rank also serves the lower ones.
 */
#ifndef THUNDER_KERNEL_H
#define THUNDER_KERNEL_H

#include "tensor.h"

#define OP_MAX_ARITY 2

struct kernel {
	const char *name;
	int max_rank; /* of the operands */
	/* The result, or NULL with an exception set. */
	struct tensor *(*forward)(struct tensor *const *in);
	/* Fills one new tensor per operand; on failure none. */
	int (*pullback)(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret);
};

enum op_id {
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_NEG,
	OP_EXP,
	OP_SUM,
	OP_DOT,
	OP_OUTER,
	OP_COUNT,
};

struct op {
	const char *name;
	enum op_id id;
	int arity;
	const struct kernel *kernels; /* narrowest first, ends with an entry without name */
};

/* The operation of that name, or NULL with an exception set. */
const struct op *op_find(const char *name);

/* The narrowest kernel that takes operands of `rank`, or NULL with an exception set. */
const struct kernel *op_kernel(const struct op *op, int rank);

/* All names, for the module. */
const char *op_name(enum op_id id);

#endif
