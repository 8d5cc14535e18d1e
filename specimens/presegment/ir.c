#include "ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int diag_set(struct diag *diag, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(diag->text, sizeof(diag->text), format, args);
	va_end(args);
	return error;
}

static void require(bool fits, const struct fusion *f, const char *what)
{
	if (fits)
		return;
	fprintf(stderr, "fusion '%s': %s\n", f->name, what);
	exit(2);
}

struct fusion *fusion_new(const char *name)
{
	struct fusion *f = calloc(1, sizeof(*f));

	if (!f || !(f->name = strdup(name)))
		abort();
	return f;
}

void fusion_free(struct fusion *f)
{
	if (!f)
		return;
	free(f->ops);
	free(f->name);
	free(f);
}

int64_t shape_elements(const struct shape *s)
{
	int64_t n = 1;

	for (int i = 0; i < s->rank; i++)
		n *= s->extent[i];
	return n;
}

const char *op_kind_name(enum op_kind kind)
{
	static const char *const names[] = {
		[OP_INPUT] = "input",	[OP_CAST] = "cast",	[OP_NEG] = "neg",
		[OP_EXP] = "exp",	[OP_RSQRT] = "rsqrt",	[OP_SCALE] = "scale",
		[OP_OFFSET] = "offset", [OP_ADD] = "add",	[OP_SUB] = "sub",
		[OP_MUL] = "mul",	[OP_SLICE] = "slice",	[OP_PAD] = "pad",
		[OP_REPEAT] = "repeat", [OP_EXPAND] = "expand", [OP_RESHAPE] = "reshape",
		[OP_SUM] = "sum",	[OP_MAX] = "max",
	};

	return names[kind];
}

size_t dtype_bytes(enum dtype dtype)
{
	static const size_t bytes[] = { [DT_BF16] = 2, [DT_F32] = 4, [DT_F64] = 8 };

	return bytes[dtype];
}

/* A new operation with the type and shape of operand a (if any); returns its index. The array may
 * move: pointers to operations end here. */
static int add_op(struct fusion *f, enum op_kind kind, int a, int b)
{
	struct op *op;

	require(a < f->nops && b < f->nops, f, "operand does not exist");
	if (f->nops == f->capacity) {
		f->capacity = f->capacity ? 2 * f->capacity : 16;
		f->ops = realloc(f->ops, (size_t)f->capacity * sizeof(*f->ops));
		if (!f->ops)
			abort();
	}
	op = &f->ops[f->nops];
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->in[0] = a;
	op->in[1] = b;
	if (a >= 0) {
		op->dtype = f->ops[a].dtype;
		op->shape = f->ops[a].shape;
	}
	return f->nops++;
}

int fusion_input(struct fusion *f, enum dtype dtype, int rank, const int64_t *extents)
{
	int id = add_op(f, OP_INPUT, -1, -1);

	require(rank > 0 && rank <= RANK_MAX, f, "input has a bad rank");
	f->ops[id].dtype = dtype;
	f->ops[id].shape.rank = rank;
	for (int i = 0; i < rank; i++) {
		require(extents[i] > 0, f, "input has an empty axis");
		f->ops[id].shape.extent[i] = extents[i];
	}
	return id;
}

int fusion_cast(struct fusion *f, int x, enum dtype dtype)
{
	int id = add_op(f, OP_CAST, x, -1);

	f->ops[id].dtype = dtype;
	return id;
}

int fusion_unary(struct fusion *f, enum op_kind kind, int x)
{
	return add_op(f, kind, x, -1);
}

int fusion_scalar(struct fusion *f, enum op_kind kind, int x, double scalar)
{
	int id = add_op(f, kind, x, -1);

	f->ops[id].scalar = scalar;
	return id;
}

int fusion_binary(struct fusion *f, enum op_kind kind, int a, int b)
{
	int id = add_op(f, kind, a, b);
	struct shape *s = &f->ops[id].shape;
	const struct shape *other = &f->ops[b].shape;

	require(s->rank == other->rank, f, "operands differ in rank");
	for (int i = 0; i < s->rank; i++) {
		if (s->extent[i] == 1)
			s->extent[i] = other->extent[i];
		require(other->extent[i] == 1 || other->extent[i] == s->extent[i], f,
			"operands differ in extent");
	}
	if (f->ops[b].dtype > f->ops[id].dtype)
		f->ops[id].dtype = f->ops[b].dtype;
	return id;
}

int fusion_slice(struct fusion *f, int x, int axis, int64_t lo, int64_t hi)
{
	int id = add_op(f, OP_SLICE, x, -1);
	struct op *op = &f->ops[id];

	require(axis >= 0 && axis < op->shape.rank, f, "slice of an axis that is not there");
	require(lo >= 0 && lo < hi && hi <= op->shape.extent[axis], f, "slice out of range");
	op->axis = axis;
	op->lo = lo;
	op->hi = hi;
	op->shape.extent[axis] = hi - lo;
	return id;
}

int fusion_pad(struct fusion *f, int x, int axis, int64_t before, int64_t after)
{
	int id = add_op(f, OP_PAD, x, -1);
	struct op *op = &f->ops[id];

	require(axis >= 0 && axis < op->shape.rank, f, "pad of an axis that is not there");
	require(before >= 0 && after >= 0, f, "pad by a negative width");
	op->axis = axis;
	op->lo = before;
	op->hi = after;
	op->shape.extent[axis] += before + after;
	return id;
}

int fusion_repeat(struct fusion *f, int x, int64_t times)
{
	int id = add_op(f, OP_REPEAT, x, -1);

	require(times > 0, f, "repeat by less than one");
	f->ops[id].lo = times;
	f->ops[id].shape.extent[0] *= times;
	return id;
}

int fusion_expand(struct fusion *f, int x, int64_t times)
{
	int id = add_op(f, OP_EXPAND, x, -1);
	struct shape *s = &f->ops[id].shape;

	require(s->rank < RANK_MAX, f, "expand needs one axis more than there may be");
	memmove(&s->extent[1], &s->extent[0], (size_t)s->rank * sizeof(s->extent[0]));
	s->extent[0] = times;
	s->rank++;
	f->ops[id].lo = times;
	return id;
}

int fusion_reshape(struct fusion *f, int x, const struct shape *shape)
{
	int id = add_op(f, OP_RESHAPE, x, -1);

	require(shape_elements(shape) == shape_elements(&f->ops[x].shape), f,
		"reshape changes the number of elements");
	f->ops[id].shape = *shape;
	return id;
}

int fusion_reduce(struct fusion *f, enum op_kind kind, int x)
{
	int id = add_op(f, kind, x, -1);
	struct shape *s = &f->ops[id].shape;

	s->extent[s->rank - 1] = 1;
	return id;
}

void fusion_output(struct fusion *f, int x)
{
	require(f->noutputs < OUTPUTS_MAX, f, "too many outputs");
	f->outputs[f->noutputs++] = x;
}

void fusion_replace(struct fusion *f, int old, int new)
{
	for (int i = 0; i < f->nops; i++) {
		for (int k = 0; k < 2; k++) {
			if (f->ops[i].in[k] == old && i != new)
				f->ops[i].in[k] = new;
		}
	}
	for (int i = 0; i < f->noutputs; i++) {
		if (f->outputs[i] == old)
			f->outputs[i] = new;
	}
	f->ops[old].dead = true;
}

int fusion_count_uses(const struct fusion *f, int x)
{
	int uses = 0;

	for (int i = 0; i < f->nops; i++) {
		if (!f->ops[i].dead)
			uses += (f->ops[i].in[0] == x) + (f->ops[i].in[1] == x);
	}
	for (int i = 0; i < f->noutputs; i++)
		uses += f->outputs[i] == x;
	return uses;
}

static void visit(const struct fusion *f, int id, bool *seen, int *order, int *count)
{
	if (seen[id])
		return;
	seen[id] = true;
	for (int k = 0; k < 2; k++) {
		if (f->ops[id].in[k] >= 0)
			visit(f, f->ops[id].in[k], seen, order, count);
	}
	order[(*count)++] = id;
}

int fusion_order(const struct fusion *f, int *order)
{
	bool *seen = calloc((size_t)f->nops + 1, sizeof(*seen));
	int count = 0;

	if (!seen)
		abort();
	for (int i = 0; i < f->noutputs; i++)
		visit(f, f->outputs[i], seen, order, &count);
	free(seen);
	return count;
}

bool fusion_order_is_valid(const struct fusion *f, const int *order, int count)
{
	bool *seen = calloc((size_t)f->nops + 1, sizeof(*seen));
	bool valid = true;

	if (!seen)
		abort();
	for (int i = 0; i < count && valid; i++) {
		const struct op *op;

		valid = order[i] >= 0 && order[i] < f->nops && !seen[order[i]];
		if (!valid)
			break;
		op = &f->ops[order[i]];
		valid = !op->dead && (op->in[0] < 0 || seen[op->in[0]]) &&
			(op->in[1] < 0 || seen[op->in[1]]);
		seen[order[i]] = true;
	}
	for (int i = 0; i < f->noutputs; i++)
		valid = valid && seen[f->outputs[i]];
	free(seen);
	return valid;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15u;
	return h ^ (h >> 29);
}

uint64_t fusion_hash(const struct fusion *f)
{
	uint64_t h = 0x70726573;

	for (int i = 0; i < f->nops; i++) {
		const struct op *op = &f->ops[i];
		uint64_t scalar;

		memcpy(&scalar, &op->scalar, sizeof(scalar));
		h = mix(h, (uint64_t)op->kind << 8 | (uint64_t)op->dtype);
		h = mix(h, (uint64_t)(uint32_t)op->in[0] << 32 | (uint32_t)op->in[1]);
		h = mix(mix(h, (uint64_t)op->lo), (uint64_t)op->hi);
		h = mix(mix(h, (uint64_t)op->axis), scalar);
		for (int k = 0; k < op->shape.rank; k++)
			h = mix(h, (uint64_t)op->shape.extent[k]);
	}
	for (int i = 0; i < f->noutputs; i++)
		h = mix(h, (uint64_t)f->outputs[i]);
	return h;
}
