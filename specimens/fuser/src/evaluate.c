#include "evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "ptrmap.h"

/* The element that a result's position reads from an operand that may have
 * fewer dimensions, or ones of extent 1. */
static double read_broadcast(const struct tensor *t, const int64_t *at, int rank)
{
	int64_t offset = 0;

	for (int d = 0; d < t->rank; d++) {
		int64_t i = at[d + rank - t->rank];

		offset = offset * t->size[d] + (t->size[d] == 1 ? 0 : i);
	}
	return t->data[offset];
}

static void eval_pointwise(const struct ir_expr *e, struct tensor *const *in, struct tensor *out)
{
	double (*apply)(double, double, double) = op_info(e->op)->apply;
	int64_t at[IR_MAX_DIMS] = { 0 };
	double v[IR_MAX_INPUTS] = { 0 };

	for (int64_t i = 0; i < out->elements; i++) {
		tensor_position(out, i, at);
		for (int k = 0; k < e->ninputs; k++)
			v[k] = read_broadcast(in[k], at, out->rank);
		out->data[i] = apply(v[0], v[1], v[2]);
	}
}

static int64_t reduced_offset(const struct ir_expr *e, const struct tensor *out, const int64_t *at,
			      int rank)
{
	int64_t to[IR_MAX_DIMS] = { 0 };
	int n = 0;

	for (int d = 0; d < rank; d++) {
		if (!(e->attrs[0] >> d & 1))
			to[n++] = at[d];
		else if (e->attrs[1])
			to[n++] = 0;
	}
	return tensor_offset(out, to);
}

static void eval_reduction(const struct ir_expr *e, const struct tensor *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 };
	double count = out->elements ? (double)in->elements / (double)out->elements : 0;
	double correction = e->nattrs > 2 ? (double)e->attrs[2] : 0;
	double *mean = NULL;

	for (int64_t i = 0; i < out->elements; i++) {
		out->data[i] = e->op == OP_PROD	  ? 1
			       : e->op == OP_AMAX ? -INFINITY
			       : e->op == OP_AMIN ? INFINITY
						  : 0;
	}
	if (e->op == OP_VAR) {
		mean = fz_alloc((size_t)(out->elements + 1) * sizeof(*mean));
		for (int64_t i = 0; i < in->elements; i++) {
			tensor_position(in, i, at);
			mean[reduced_offset(e, out, at, in->rank)] += in->data[i] / count;
		}
	}
	for (int64_t i = 0; i < in->elements; i++) {
		int64_t k;
		double *acc, v = in->data[i];

		tensor_position(in, i, at);
		k = reduced_offset(e, out, at, in->rank);
		acc = &out->data[k];
		if (e->op == OP_SUM || e->op == OP_MEAN)
			*acc += v;
		else if (e->op == OP_PROD)
			*acc *= v;
		else if (e->op == OP_AMAX)
			*acc = v > *acc ? v : *acc;
		else if (e->op == OP_AMIN)
			*acc = v < *acc ? v : *acc;
		else
			*acc += (v - mean[k]) * (v - mean[k]);
	}
	for (int64_t i = 0; i < out->elements; i++) {
		if (e->op == OP_MEAN)
			out->data[i] /= count;
		else if (e->op == OP_VAR)
			out->data[i] /= count - correction;
	}
	free(mean);
}

static void eval_permute(const struct ir_expr *e, const struct tensor *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 }, from[IR_MAX_DIMS] = { 0 };

	for (int64_t i = 0; i < out->elements; i++) {
		tensor_position(out, i, at);
		for (int d = 0; d < out->rank; d++)
			from[e->attrs[d]] = at[d];
		out->data[i] = in->data[tensor_offset(in, from)];
	}
}

static void eval_broadcast(const struct ir_expr *e, const struct tensor *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 }, from[IR_MAX_DIMS] = { 0 };

	for (int64_t i = 0; i < out->elements; i++) {
		int n = 0;

		tensor_position(out, i, at);
		for (int d = 0; d < out->rank; d++) {
			if (!(e->attrs[out->rank] >> d & 1))
				continue;
			from[n] = in->size[n] == 1 ? 0 : at[d];
			n++;
		}
		out->data[i] = in->data[tensor_offset(in, from)];
	}
}

static void eval_expand(const struct tensor *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 };

	for (int64_t i = 0; i < out->elements; i++) {
		tensor_position(out, i, at);
		out->data[i] = read_broadcast(in, at, out->rank);
	}
}

static void eval_window(const struct ir_expr *e, struct tensor *const *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 };
	int64_t sign = e->op == OP_SLICE ? 1 : -1;

	for (int64_t i = 0; i < out->elements; i++) {
		bool inside = true;

		tensor_position(out, i, at);
		for (int d = 0; d < out->rank; d++) {
			at[d] += sign * e->attrs[2 * d];
			inside &= at[d] >= 0 && at[d] < in[0]->size[d];
		}
		out->data[i] = inside ? in[0]->data[tensor_offset(in[0], at)] : in[1]->data[0];
	}
}

static void eval_cat(const struct ir_expr *e, struct tensor *const *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 };
	int64_t dim = e->attrs[0];

	for (int64_t i = 0; i < out->elements; i++) {
		const struct tensor *from = in[0];

		tensor_position(out, i, at);
		if (at[dim] >= from->size[dim]) {
			at[dim] -= from->size[dim];
			from = in[1];
		}
		out->data[i] = from->data[tensor_offset(from, at)];
	}
}

static bool eval_index(const struct ir_expr *e, struct tensor *const *in, struct tensor *out)
{
	int64_t at[IR_MAX_DIMS] = { 0 };
	int64_t dim = e->attrs[0];

	for (int64_t i = 0; i < out->elements; i++) {
		double index;

		tensor_position(out, i, at);
		if (e->op == OP_GATHER)
			index = in[1]->data[i];
		else
			index = in[1]->data[in[1]->rank ? at[dim] : 0];
		if (index < 0 || index >= (double)in[0]->size[dim])
			return false;
		at[dim] = (int64_t)index;
		out->data[i] = in[0]->data[tensor_offset(in[0], at)];
	}
	return true;
}

static void eval_matmul(const struct tensor *a, const struct tensor *b, struct tensor *out)
{
	int64_t m = a->size[0], k = a->size[1], n = b->size[1];

	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t x = 0; x < k; x++)
				out->data[i * n + j] += a->data[i * k + x] * b->data[x * n + j];
}

static bool eval_expr(const struct ir_expr *e, struct tensor *const *in, struct tensor *out)
{
	bool ok = true;

	switch (e->op) {
	case OP_RESHAPE:
	case OP_SQUEEZE:
		memcpy(out->data, in[0]->data, (size_t)out->elements * sizeof(*out->data));
		break;
	case OP_PERMUTE:
		eval_permute(e, in[0], out);
		break;
	case OP_BROADCAST:
		eval_broadcast(e, in[0], out);
		break;
	case OP_EXPAND:
		eval_expand(in[0], out);
		break;
	case OP_SLICE:
	case OP_PAD:
		eval_window(e, in, out);
		break;
	case OP_CAT:
		eval_cat(e, in, out);
		break;
	case OP_INDEX_SELECT:
	case OP_GATHER:
		ok = eval_index(e, in, out);
		break;
	case OP_IOTA:
		for (int64_t i = 0; i < out->elements; i++)
			out->data[i] = (double)(e->attrs[1] + i * e->attrs[2]);
		break;
	case OP_FULL:
		for (int64_t i = 0; i < out->elements; i++)
			out->data[i] = in[0]->data[0];
		break;
	case OP_MATMUL:
		eval_matmul(in[0], in[1], out);
		break;
	default:
		if (op_info(e->op)->class == OPC_REDUCTION)
			eval_reduction(e, in[0], out);
		else
			eval_pointwise(e, in, out);
	}
	for (int64_t i = 0; i < out->elements; i++)
		out->data[i] = dtype_round(out->dtype, out->data[i]);
	return ok;
}

static bool argument_fits(const struct ir_val *v, const struct tensor *t)
{
	if (t->dtype != v->dtype || t->rank != v->rank)
		return false;
	for (int d = 0; d < v->rank; d++)
		if (v->extent[d] != t->size[d])
			return false;
	return true;
}

static struct tensor *tensor_duplicate(const struct tensor *t)
{
	return tensor_from(t->dtype, t->rank, t->size, t->data);
}

bool evaluate(const struct ir_container *fusion, struct tensor *const *args, int nargs,
	      struct tensor **out)
{
	const struct ir_storage *s = fusion->storage;
	struct ptrmap values; /* val -> tensor */
	struct tensor **made = fz_alloc((s->vals.count + 1) * sizeof(*made));
	size_t nmade = 0;
	bool ok = (size_t)nargs == s->inputs.count;

	ptrmap_init(&values);
	for (size_t i = 0; ok && i < s->inputs.count; i++) {
		ok = argument_fits(s->inputs.at[i], args[i]);
		ptrmap_put(&values, s->inputs.at[i], args[i]);
	}
	for (size_t i = 0; ok && i < s->vals.count; i++) {
		const struct ir_val *v = s->vals.at[i];

		if (v->role != IR_ROLE_CONSTANT)
			continue;
		made[nmade] = tensor_scalar(v->dtype, v->value);
		ptrmap_put(&values, v, made[nmade++]);
	}
	for (size_t i = 0; ok && i < s->exprs.count; i++) {
		const struct ir_expr *e = s->exprs.at[i];
		struct tensor *in[IR_MAX_INPUTS] = { NULL };

		for (int k = 0; k < e->ninputs; k++)
			in[k] = ptrmap_get(&values, e->inputs[k]);
		made[nmade] = tensor_create(e->output->dtype, e->output->rank, e->output->extent);
		ptrmap_put(&values, e->output, made[nmade]);
		ok = eval_expr(e, in, made[nmade++]);
	}
	for (size_t i = 0; ok && i < s->outputs.count; i++) {
		const struct ir_val *v = s->outputs.at[i];

		out[i] = tensor_duplicate(ptrmap_get(&values, v));
		memcpy(out[i]->stride_order, v->stride_order, sizeof(v->stride_order));
	}
	for (size_t i = 0; i < nmade; i++)
		tensor_destroy(made[i]);
	free(made);
	ptrmap_deinit(&values);
	return ok;
}
