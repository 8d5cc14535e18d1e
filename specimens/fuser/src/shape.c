/* Types and extents: what comes out of an operation, given what goes in. */
#include <string.h>

#include "ir.h"

static void set_extents(struct ir_val *out, int rank, const int64_t *extent)
{
	out->is_tensor = true;
	out->rank = rank;
	for (int d = 0; d < rank; d++)
		out->extent[d] = extent[d];
}

static bool merge_extent(int64_t a, int64_t b, int64_t *out)
{
	if (a == b || b == 1)
		*out = a;
	else if (a == 1)
		*out = b;
	else if (a == IR_DYNAMIC)
		*out = b;
	else if (b == IR_DYNAMIC)
		*out = a;
	else
		return false;
	return true;
}

static bool infer_pointwise(const struct ir_expr *e, struct ir_val *out)
{
	for (int i = 0; i < e->ninputs; i++) {
		const struct ir_val *in = e->inputs[i];
		int64_t merged[IR_MAX_DIMS];
		int rank = in->rank > out->rank ? in->rank : out->rank;

		if (!in->is_tensor)
			continue;
		for (int d = 0; d < rank; d++) {
			int a = d - (rank - out->rank), b = d - (rank - in->rank);

			if (!merge_extent(a < 0 ? 1 : out->extent[a], b < 0 ? 1 : in->extent[b],
					  &merged[d]))
				return false;
		}
		set_extents(out, rank, merged);
	}
	return true;
}

static enum ir_dtype promote(const struct ir_expr *e)
{
	enum ir_dtype tensor = IR_BOOL, scalar = IR_BOOL;
	bool any_tensor = false;

	for (int i = e->op == OP_WHERE ? 1 : 0; i < e->ninputs; i++) {
		const struct ir_val *in = e->inputs[i];
		enum ir_dtype *best = in->is_tensor ? &tensor : &scalar;

		any_tensor |= in->is_tensor;
		if (in->dtype > *best)
			*best = in->dtype;
	}
	/* A scalar widens a tensor only from integers to floating point. */
	if (!any_tensor)
		return scalar;
	return tensor < IR_HALF && scalar >= IR_HALF ? IR_FLOAT : tensor;
}

static bool infer_reduction(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	bool keep = e->attrs[1] != 0;
	int64_t extent[IR_MAX_DIMS];
	int rank = 0;

	if (!in->is_tensor || e->nattrs < 2 || e->attrs[0] >> in->rank)
		return false;
	for (int d = 0; d < in->rank; d++) {
		if (!(e->attrs[0] >> d & 1))
			extent[rank++] = in->extent[d];
		else if (keep)
			extent[rank++] = 1;
	}
	set_extents(out, rank, extent);
	return true;
}

static bool infer_reshape(const struct ir_expr *e, struct ir_val *out)
{
	int64_t total = ir_val_elements(e->inputs[0]);
	int64_t extent[IR_MAX_DIMS], known = 1;
	int open = -1;

	if (e->nattrs > IR_MAX_DIMS)
		return false;
	for (int d = 0; d < e->nattrs; d++) {
		extent[d] = e->attrs[d];
		if (extent[d] != IR_DYNAMIC)
			known *= extent[d];
		else if (open >= 0)
			return false;
		else
			open = d;
	}
	if (total != IR_DYNAMIC) {
		if (open >= 0 && known && total % known == 0)
			extent[open] = total / known;
		else if (open >= 0 || known != total)
			return false;
	}
	set_extents(out, e->nattrs, extent);
	return true;
}

static bool infer_permute(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	int64_t extent[IR_MAX_DIMS];
	unsigned seen = 0;

	if (e->nattrs != in->rank)
		return false;
	for (int d = 0; d < in->rank; d++) {
		if (e->attrs[d] < 0 || e->attrs[d] >= in->rank || (seen >> e->attrs[d] & 1))
			return false;
		seen |= 1u << e->attrs[d];
		extent[d] = in->extent[e->attrs[d]];
	}
	set_extents(out, in->rank, extent);
	return true;
}

/* attrs: the result's extents, then a mask of the result's dimensions that the
 * operand's own dimensions become. */
static bool infer_broadcast(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	int rank = e->nattrs - 1, from = 0;
	int64_t extent[IR_MAX_DIMS];

	if (rank < in->rank || rank > IR_MAX_DIMS)
		return false;
	for (int d = 0; d < rank; d++) {
		extent[d] = e->attrs[d];
		if (!(e->attrs[rank] >> d & 1))
			continue;
		if (from == in->rank || !merge_extent(in->extent[from++], extent[d], &extent[d]))
			return false;
	}
	set_extents(out, rank, extent);
	return from == in->rank;
}

static bool infer_expand(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	int64_t extent[IR_MAX_DIMS];

	if (e->nattrs != in->rank)
		return false;
	for (int d = 0; d < in->rank; d++) {
		if (in->extent[d] == 1 || in->extent[d] == IR_DYNAMIC)
			extent[d] = e->attrs[d];
		else if (e->attrs[d] == in->extent[d] || e->attrs[d] == IR_DYNAMIC)
			extent[d] = in->extent[d];
		else
			return false;
	}
	set_extents(out, in->rank, extent);
	return true;
}

static bool infer_squeeze(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	int64_t extent[IR_MAX_DIMS];
	int rank = 0;

	if (e->attrs[0] < 0 || e->attrs[0] >= in->rank || in->extent[e->attrs[0]] > 1)
		return false;
	for (int d = 0; d < in->rank; d++)
		if (d != e->attrs[0])
			extent[rank++] = in->extent[d];
	set_extents(out, rank, extent);
	return true;
}

/* Slice has [start, end) for each dimension, pad (before, after). */
static bool infer_window(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0];
	int64_t extent[IR_MAX_DIMS];

	if (e->nattrs != 2 * in->rank)
		return false;
	for (int d = 0; d < in->rank; d++) {
		int64_t lo = e->attrs[2 * d], hi = e->attrs[2 * d + 1], n = in->extent[d];

		if (lo < 0 || hi < 0)
			return false;
		if (e->op == OP_SLICE) {
			if (hi < lo || (n != IR_DYNAMIC && hi > n))
				return false;
			extent[d] = hi - lo;
		} else {
			extent[d] = n == IR_DYNAMIC ? n : n + lo + hi;
		}
	}
	set_extents(out, in->rank, extent);
	return true;
}

static bool infer_cat(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *a = e->inputs[0], *b = e->inputs[1];
	int64_t extent[IR_MAX_DIMS];

	if (a->rank != b->rank || e->attrs[0] < 0 || e->attrs[0] >= a->rank)
		return false;
	for (int d = 0; d < a->rank; d++) {
		if (d == e->attrs[0])
			extent[d] = a->extent[d] == IR_DYNAMIC || b->extent[d] == IR_DYNAMIC
					    ? IR_DYNAMIC
					    : a->extent[d] + b->extent[d];
		else if (!merge_extent(a->extent[d], b->extent[d], &extent[d]))
			return false;
	}
	set_extents(out, a->rank, extent);
	return true;
}

static bool infer_index(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *in = e->inputs[0], *index = e->inputs[1];
	int64_t dim = e->attrs[0];
	int64_t extent[IR_MAX_DIMS];

	if (dim < 0 || dim >= in->rank || index->dtype != IR_INT)
		return false;
	if (e->op == OP_GATHER) {
		if (index->rank != in->rank)
			return false;
		set_extents(out, in->rank, index->extent);
		return true;
	}
	if (index->rank > 1)
		return false;
	memcpy(extent, in->extent, sizeof(extent));
	extent[dim] = index->rank ? index->extent[0] : 1;
	set_extents(out, in->rank, extent);
	return true;
}

static bool infer_matmul(const struct ir_expr *e, struct ir_val *out)
{
	const struct ir_val *a = e->inputs[0], *b = e->inputs[1];

	if (a->rank != 2 || b->rank != 2)
		return false;
	if (a->extent[1] != b->extent[0] && a->extent[1] != IR_DYNAMIC &&
	    b->extent[0] != IR_DYNAMIC)
		return false;
	set_extents(out, 2, (const int64_t[]){ a->extent[0], b->extent[1] });
	return true;
}

static bool infer_extents(const struct ir_expr *e, struct ir_val *out)
{
	switch (e->op) {
	case OP_RESHAPE:
		return infer_reshape(e, out);
	case OP_PERMUTE:
		return infer_permute(e, out);
	case OP_BROADCAST:
		return infer_broadcast(e, out);
	case OP_EXPAND:
		return infer_expand(e, out);
	case OP_SQUEEZE:
		return infer_squeeze(e, out);
	case OP_SLICE:
	case OP_PAD:
		return infer_window(e, out);
	case OP_CAT:
		return infer_cat(e, out);
	case OP_INDEX_SELECT:
	case OP_GATHER:
		return infer_index(e, out);
	case OP_IOTA:
		set_extents(out, 1, e->attrs);
		return e->nattrs == 3 && e->attrs[0] >= 0;
	case OP_FULL:
		set_extents(out, e->nattrs, e->attrs);
		return e->nattrs <= IR_MAX_DIMS && !e->inputs[0]->is_tensor;
	case OP_MATMUL:
		return infer_matmul(e, out);
	default:
		break;
	}
	if (op_info(e->op)->class == OPC_REDUCTION)
		return infer_reduction(e, out);
	return infer_pointwise(e, out);
}

bool ir_expr_infer(struct ir_expr *e)
{
	struct ir_val out = { 0 };

	if (!infer_extents(e, &out))
		return false;
	if (op_info(e->op)->predicate)
		out.dtype = IR_BOOL;
	else if (e->op == OP_IOTA)
		out.dtype = IR_INT;
	else if (e->op == OP_CAST)
		out.dtype = (enum ir_dtype)e->attrs[0];
	else if (op_info(e->op)->class == OPC_INDEX)
		out.dtype = e->inputs[0]->dtype;
	else
		out.dtype = promote(e);
	/* Sums of booleans count, and a mean is never an integer. */
	if (e->op == OP_SUM && out.dtype == IR_BOOL)
		out.dtype = IR_INT;
	if ((e->op == OP_MEAN || e->op == OP_VAR) && out.dtype < IR_HALF)
		out.dtype = IR_FLOAT;

	e->output->dtype = out.dtype;
	e->output->is_tensor = out.is_tensor;
	e->output->rank = out.rank;
	memcpy(e->output->extent, out.extent, sizeof(out.extent));
	return true;
}
