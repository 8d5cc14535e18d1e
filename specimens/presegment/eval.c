#include "eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double round_to(enum dtype dtype, double x)
{
	float narrow = (float)x;
	uint32_t bits;

	if (dtype == DT_F64)
		return x;
	if (dtype == DT_F32)
		return narrow;
	memcpy(&bits, &narrow, sizeof(bits));
	bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
	memcpy(&narrow, &bits, sizeof(narrow));
	return narrow;
}

/* Moves `index` to the next element of shape s in row-major order. */
static void advance(const struct shape *s, int64_t *index)
{
	for (int k = s->rank - 1; k >= 0; k--) {
		if (++index[k] < s->extent[k])
			return;
		index[k] = 0;
	}
}

/* Where `index` lies in a dense tensor of shape s; an axis of extent 1 is broadcast. */
static int64_t position(const struct shape *s, const int64_t *index)
{
	int64_t at = 0;

	for (int k = 0; k < s->rank; k++)
		at = at * s->extent[k] + (s->extent[k] == 1 ? 0 : index[k]);
	return at;
}

static void eval_input(const struct op *op, int id, struct tensor *t)
{
	int64_t n = shape_elements(&op->shape);
	uint32_t state = 2463534242u + 7919u * (uint32_t)id;

	for (int64_t i = 0; i < n; i++) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		t->data[i] = round_to(op->dtype, (double)state / 2147483648.0 - 1.0);
	}
}

static double unary(const struct op *op, double x)
{
	switch (op->kind) {
	case OP_NEG:
		return -x;
	case OP_EXP:
		return exp(x);
	case OP_RSQRT:
		return 1.0 / sqrt(x);
	case OP_SCALE:
		return x * op->scalar;
	case OP_OFFSET:
		return x + op->scalar;
	default:
		return x;
	}
}

static double binary(enum op_kind kind, double a, double b)
{
	if (kind == OP_ADD)
		return a + b;
	return kind == OP_SUB ? a - b : a * b;
}

static void eval_reduce(const struct op *op, const struct tensor *x, struct tensor *t)
{
	int64_t inner = x->shape.extent[x->shape.rank - 1], rows = shape_elements(&op->shape);

	for (int64_t r = 0; r < rows; r++) {
		const double *row = x->data + r * inner;
		double acc = row[0];

		for (int64_t i = 1; i < inner; i++)
			acc = op->kind == OP_SUM ? acc + row[i] : fmax(acc, row[i]);
		t->data[r] = round_to(op->dtype, acc);
	}
}

/* Slice, pad and repeat: each element comes from another place of x, or is a padding zero. */
static void eval_resize(const struct op *op, const struct tensor *x, struct tensor *t)
{
	int64_t n = shape_elements(&op->shape), index[RANK_MAX] = { 0 };

	for (int64_t i = 0; i < n; i++, advance(&op->shape, index)) {
		int64_t from[RANK_MAX];
		int64_t *moved = &from[op->axis];

		memcpy(from, index, sizeof(from));
		if (op->kind == OP_REPEAT)
			from[0] %= x->shape.extent[0];
		else
			*moved += op->kind == OP_SLICE ? op->lo : -op->lo;
		if (*moved < 0 || *moved >= x->shape.extent[op->axis])
			t->data[i] = 0.0;
		else
			t->data[i] = x->data[position(&x->shape, from)];
	}
}

static void eval_op(const struct fusion *f, int id, struct tensor *values)
{
	const struct op *op = &f->ops[id];
	const struct tensor *x = op->in[0] >= 0 ? &values[op->in[0]] : NULL;
	const struct tensor *y = op->in[1] >= 0 ? &values[op->in[1]] : NULL;
	struct tensor *t = &values[id];
	int64_t n = shape_elements(&op->shape), index[RANK_MAX] = { 0 };

	t->shape = op->shape;
	t->data = malloc((size_t)n * sizeof(*t->data));
	if (!t->data)
		abort();
	switch (op->kind) {
	case OP_INPUT:
		eval_input(op, id, t);
		break;
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
		for (int64_t i = 0; i < n; i++, advance(&op->shape, index))
			t->data[i] = round_to(op->dtype,
					      binary(op->kind, x->data[position(&x->shape, index)],
						     y->data[position(&y->shape, index)]));
		break;
	case OP_SLICE:
	case OP_PAD:
	case OP_REPEAT:
		eval_resize(op, x, t);
		break;
	case OP_EXPAND:
		for (int64_t i = 0, inner = n / op->lo; i < n; i++)
			t->data[i] = x->data[i % inner];
		break;
	case OP_RESHAPE:
		memcpy(t->data, x->data, (size_t)n * sizeof(*t->data));
		break;
	case OP_SUM:
	case OP_MAX:
		eval_reduce(op, x, t);
		break;
	default:
		for (int64_t i = 0; i < n; i++)
			t->data[i] = round_to(op->dtype, unary(op, x->data[i]));
	}
}

void eval_fusion(const struct fusion *f, const int *order, int norder, struct result *ret)
{
	struct tensor *values = calloc((size_t)f->nops + 1, sizeof(*values));

	if (!values)
		abort();
	for (int i = 0; i < norder; i++)
		eval_op(f, order[i], values);
	ret->count = f->noutputs;
	for (int i = 0; i < f->noutputs; i++) {
		const struct tensor *v = &values[f->outputs[i]];
		size_t bytes = (size_t)shape_elements(&v->shape) * sizeof(*v->data);

		ret->out[i].shape = v->shape;
		ret->out[i].data = malloc(bytes);
		if (!ret->out[i].data)
			abort();
		memcpy(ret->out[i].data, v->data, bytes);
	}
	for (int i = 0; i < f->nops; i++)
		free(values[i].data);
	free(values);
}

void result_deinit(struct result *r)
{
	for (int i = 0; i < r->count; i++)
		free(r->out[i].data);
	r->count = 0;
}

bool result_equal(const struct result *a, const struct result *b, double tolerance)
{
	if (a->count != b->count)
		return false;
	for (int i = 0; i < a->count; i++) {
		const struct tensor *x = &a->out[i], *y = &b->out[i];
		int64_t n = shape_elements(&x->shape);

		if (n != shape_elements(&y->shape))
			return false;
		for (int64_t k = 0; k < n; k++) {
			double scale = fmax(1.0, fabs(x->data[k]));

			if (!(fabs(x->data[k] - y->data[k]) <= tolerance * scale))
				return false;
		}
	}
	return true;
}
