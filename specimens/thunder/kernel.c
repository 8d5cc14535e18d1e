#include "kernel.h"

#include <math.h>
#include <string.h>

static int same_layout(struct tensor *const *in)
{
	if (tensor_same_layout(in[0], in[1]))
		return 1;
	PyErr_SetString(PyExc_ValueError, "operands differ in shape or dtype");
	return 0;
}

/* Fills ret with zeroed gradients for `arity` operands. */
static int gradients_new(struct tensor *const *in, int arity, struct tensor **ret)
{
	for (int i = 0; i < arity; i++) {
		ret[i] = tensor_new_like(in[i]);
		if (!ret[i]) {
			while (i-- > 0)
				Py_DECREF(ret[i]);
			return -1;
		}
	}
	return 0;
}

static struct tensor *add_forward(struct tensor *const *in)
{
	struct tensor *out;

	if (!same_layout(in))
		return NULL;
	out = tensor_new_like(in[0]);
	for (Py_ssize_t i = 0; out && i < out->size; i++)
		tensor_set(out, i, in[0]->data[i] + in[1]->data[i]);
	return out;
}

static int add_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < cotangent->size; i++) {
		tensor_set(ret[0], i, cotangent->data[i]);
		tensor_set(ret[1], i, cotangent->data[i]);
	}
	return 0;
}

static struct tensor *sub_forward(struct tensor *const *in)
{
	struct tensor *out;

	if (!same_layout(in))
		return NULL;
	out = tensor_new_like(in[0]);
	for (Py_ssize_t i = 0; out && i < out->size; i++)
		tensor_set(out, i, in[0]->data[i] - in[1]->data[i]);
	return out;
}

static int sub_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < cotangent->size; i++) {
		tensor_set(ret[0], i, cotangent->data[i]);
		tensor_set(ret[1], i, -cotangent->data[i]);
	}
	return 0;
}

static struct tensor *mul_forward(struct tensor *const *in)
{
	struct tensor *out;

	if (!same_layout(in))
		return NULL;
	out = tensor_new_like(in[0]);
	for (Py_ssize_t i = 0; out && i < out->size; i++)
		tensor_set(out, i, in[0]->data[i] * in[1]->data[i]);
	return out;
}

static int mul_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < cotangent->size; i++) {
		tensor_set(ret[0], i, cotangent->data[i] * in[1]->data[i]);
		tensor_set(ret[1], i, cotangent->data[i] * in[0]->data[i]);
	}
	return 0;
}

static struct tensor *neg_forward(struct tensor *const *in)
{
	struct tensor *out = tensor_new_like(in[0]);

	for (Py_ssize_t i = 0; out && i < out->size; i++)
		tensor_set(out, i, -in[0]->data[i]);
	return out;
}

static int neg_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 1, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < cotangent->size; i++)
		tensor_set(ret[0], i, -cotangent->data[i]);
	return 0;
}

static struct tensor *exp_forward(struct tensor *const *in)
{
	struct tensor *out = tensor_new_like(in[0]);

	for (Py_ssize_t i = 0; out && i < out->size; i++)
		tensor_set(out, i, exp(in[0]->data[i]));
	return out;
}

static int exp_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	if (gradients_new(in, 1, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < cotangent->size; i++)
		tensor_set(ret[0], i, cotangent->data[i] * out->data[i]);
	return 0;
}

static struct tensor *sum_forward(struct tensor *const *in)
{
	struct tensor *out = tensor_new(in[0]->dtype, 0, NULL);
	double total = 0;

	if (!out)
		return NULL;
	for (Py_ssize_t i = 0; i < in[0]->size; i++)
		total += in[0]->data[i];
	tensor_set(out, 0, total);
	return out;
}

static int sum_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 1, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < in[0]->size; i++)
		tensor_set(ret[0], i, cotangent->data[0]);
	return 0;
}

static struct tensor *dot_forward(struct tensor *const *in)
{
	struct tensor *out;
	double total = 0;

	if (!same_layout(in))
		return NULL;
	out = tensor_new(in[0]->dtype, 0, NULL);
	if (!out)
		return NULL;
	for (Py_ssize_t i = 0; i < in[0]->size; i++)
		total += in[0]->data[i] * in[1]->data[i];
	tensor_set(out, 0, total);
	return out;
}

static int dot_pullback(struct tensor *const *in, struct tensor *out,
			const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < in[0]->size; i++) {
		tensor_set(ret[0], i, cotangent->data[0] * in[1]->data[i]);
		tensor_set(ret[1], i, cotangent->data[0] * in[0]->data[i]);
	}
	return 0;
}

/* One row of the batch: out[i][j] = a[i] * b[j]. */
static void outer_row(struct tensor *out, Py_ssize_t row, const double *a, Py_ssize_t rows,
		      const double *b, Py_ssize_t columns)
{
	for (Py_ssize_t i = 0; i < rows; i++) {
		for (Py_ssize_t j = 0; j < columns; j++)
			tensor_set(out, (row * rows + i) * columns + j, a[i] * b[j]);
	}
}

static void outer_row_pullback(struct tensor *const *in, const struct tensor *cotangent,
			       Py_ssize_t row, Py_ssize_t rows, Py_ssize_t columns,
			       struct tensor **ret)
{
	const double *a = in[0]->data + row * rows;
	const double *b = in[1]->data + row * columns;
	const double *seed = cotangent->data + row * rows * columns;

	for (Py_ssize_t i = 0; i < rows; i++) {
		double total = 0;

		for (Py_ssize_t j = 0; j < columns; j++)
			total += seed[i * columns + j] * b[j];
		tensor_set(ret[0], row * rows + i, total);
	}
	for (Py_ssize_t j = 0; j < columns; j++) {
		double total = 0;

		for (Py_ssize_t i = 0; i < rows; i++)
			total += seed[i * columns + j] * a[i];
		tensor_set(ret[1], row * columns + j, total);
	}
}

static struct tensor *outer_forward(struct tensor *const *in)
{
	Py_ssize_t shape[2] = { in[0]->shape[0], in[1]->shape[0] };
	struct tensor *out;

	if (in[0]->rank != 1 || in[1]->rank != 1) {
		PyErr_SetString(PyExc_ValueError, "outer wants two vectors");
		return NULL;
	}
	out = tensor_new(in[0]->dtype, 2, shape);
	if (out)
		outer_row(out, 0, in[0]->data, shape[0], in[1]->data, shape[1]);
	return out;
}

static int outer_pullback(struct tensor *const *in, struct tensor *out,
			  const struct tensor *cotangent, struct tensor **ret)
{
	(void)out;
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	outer_row_pullback(in, cotangent, 0, in[0]->shape[0], in[1]->shape[0], ret);
	return 0;
}

static struct tensor *outer_batch_forward(struct tensor *const *in)
{
	Py_ssize_t shape[3] = { in[0]->shape[0], in[0]->shape[1], in[1]->shape[1] };
	struct tensor *out;

	if (in[0]->rank == 1 && in[1]->rank == 1)
		return outer_forward(in);
	if (in[0]->rank != 2 || in[1]->rank != 2 || in[0]->shape[0] != in[1]->shape[0]) {
		PyErr_SetString(PyExc_ValueError,
				"batched outer wants two matrices of equal height");
		return NULL;
	}
	out = tensor_new(in[0]->dtype, 3, shape);
	for (Py_ssize_t n = 0; out && n < shape[0]; n++)
		outer_row(out, n, in[0]->data + n * shape[1], shape[1], in[1]->data + n * shape[2],
			  shape[2]);
	return out;
}

static int outer_batch_pullback(struct tensor *const *in, struct tensor *out,
				const struct tensor *cotangent, struct tensor **ret)
{
	if (in[0]->rank == 1)
		return outer_pullback(in, out, cotangent, ret);
	if (gradients_new(in, 2, ret) < 0)
		return -1;
	for (Py_ssize_t n = 0; n < in[0]->shape[0]; n++)
		outer_row_pullback(in, cotangent, n, in[0]->shape[1], in[1]->shape[1], ret);
	return 0;
}

#define ANY_RANK(op)                                                   \
	(const struct kernel[])                                        \
	{                                                              \
		{ #op, TENSOR_MAX_RANK, op##_forward, op##_pullback }, \
		{                                                      \
			NULL                                           \
		}                                                      \
	}

static const struct kernel outer_kernels[] = {
	{ "outer", 1, outer_forward, outer_pullback },
	{ "outer_batch", 2, outer_batch_forward, outer_batch_pullback },
	{ NULL },
};

static const struct op ops[OP_COUNT] = {
	[OP_ADD] = { "add", OP_ADD, 2, ANY_RANK(add) },
	[OP_SUB] = { "sub", OP_SUB, 2, ANY_RANK(sub) },
	[OP_MUL] = { "mul", OP_MUL, 2, ANY_RANK(mul) },
	[OP_NEG] = { "neg", OP_NEG, 1, ANY_RANK(neg) },
	[OP_EXP] = { "exp", OP_EXP, 1, ANY_RANK(exp) },
	[OP_SUM] = { "sum", OP_SUM, 1, ANY_RANK(sum) },
	[OP_DOT] = { "dot", OP_DOT, 2, ANY_RANK(dot) },
	[OP_OUTER] = { "outer", OP_OUTER, 2, outer_kernels },
};

const struct op *op_find(const char *name)
{
	for (int i = 0; i < OP_COUNT; i++) {
		if (strcmp(ops[i].name, name) == 0)
			return &ops[i];
	}
	PyErr_Format(PyExc_LookupError, "no operation named '%s'", name);
	return NULL;
}

const struct kernel *op_kernel(const struct op *op, int rank)
{
	for (const struct kernel *kernel = op->kernels; kernel->name; kernel++) {
		if (kernel->max_rank >= rank)
			return kernel;
	}
	PyErr_Format(PyExc_ValueError, "'%s' takes no operands of rank %d", op->name, rank);
	return NULL;
}

const char *op_name(enum op_id id)
{
	return ops[id].name;
}
