/*
 * Executors and their rules.
 *
 * A rule is an operation prepared for one executor and dtype. The executor makes it when
 * the operation is first used and keeps it in its table: preparing is the costly part, so
 * it is done once per process. Executors themselves are never destroyed.
 */
#ifndef THUNDER_EXECUTOR_H
#define THUNDER_EXECUTOR_H

#include "kernel.h"

struct rule {
	PyObject ob_base;
	const struct kernel *kernel; /* serves every rank asked for so far */
};

struct executor {
	PyObject ob_base;
	PyObject *name;
	PyObject *accumulate;			   /* callable(x, y) -> x + y */
	struct rule *rules[OP_COUNT][DTYPE_COUNT]; /* owned; NULL until first used */
};

extern PyTypeObject rule_type;
extern PyTypeObject executor_type;

/* The executor's rule for an operation, made when it is missing. Borrowed. */
struct rule *executor_rule(struct executor *self, const struct op *op, enum dtype dtype);

/* Adds two cotangents of one value the way this executor does it. A new tensor. */
struct tensor *executor_accumulate(struct executor *self, struct tensor *x, struct tensor *y);

/* Runs a rule forward. A new tensor. */
struct tensor *rule_forward(const struct rule *self, struct tensor *const *in);

/* Runs a rule backward; fills one new tensor per operand. */
int rule_pullback(const struct rule *self, struct tensor *const *in, struct tensor *out,
		  const struct tensor *cotangent, struct tensor **ret);

/* executor(name) of the module: the one executor of that name. Borrowed. */
PyObject *executor_named(PyObject *name);

#endif
