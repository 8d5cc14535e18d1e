#include "definition.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"

#define DEFINITION_MAX_RECORDS 4096

struct definition *definition_create(void)
{
	return fz_alloc(sizeof(struct definition));
}

void definition_destroy(struct definition *d)
{
	if (!d)
		return;
	free(d->records);
	free(d);
}

static struct record *append(struct definition *d, enum record_type type)
{
	struct record *r;

	d->records = fz_grow(d->records, &d->capacity, d->count + 1, sizeof(*d->records));
	r = &d->records[d->count++];
	memset(r, 0, sizeof(*r));
	r->type = type;
	return r;
}

struct definition *definition_copy(const struct definition *src)
{
	struct definition *d = definition_create();

	for (size_t i = 0; i < src->count; i++)
		*append(d, src->records[i].type) = src->records[i];
	d->next = src->next;
	d->broken = src->broken;
	return d;
}

static bool defined(struct definition *d, int a)
{
	if (a >= 0 && a < d->next)
		return true;
	d->broken = true;
	return false;
}

int def_tensor(struct definition *d, enum ir_dtype dtype, int rank, const int64_t *extent)
{
	struct record *r;

	if (rank > IR_MAX_DIMS) {
		d->broken = true;
		return -1;
	}
	r = append(d, REC_TENSOR);
	r->dtype = dtype;
	r->nattrs = rank;
	for (int i = 0; i < rank; i++)
		r->attrs[i] = extent[i];
	return d->next++;
}

int def_scalar(struct definition *d, enum ir_dtype dtype)
{
	append(d, REC_SCALAR)->dtype = dtype;
	return d->next++;
}

int def_constant(struct definition *d, enum ir_dtype dtype, double value)
{
	struct record *r = append(d, REC_CONSTANT);

	r->dtype = dtype;
	r->value = value;
	return d->next++;
}

static int def_op(struct definition *d, enum ir_op op, int nargs, const int *args, int nattrs,
		  const int64_t *attrs)
{
	struct record *r;

	for (int i = 0; i < nargs; i++)
		if (!defined(d, args[i]))
			return -1;
	if (nattrs > IR_MAX_ATTRS) {
		d->broken = true;
		return -1;
	}
	r = append(d, REC_OP);
	r->op = op;
	r->nargs = nargs;
	for (int i = 0; i < nargs; i++)
		r->args[i] = args[i];
	r->nattrs = nattrs;
	for (int i = 0; i < nattrs; i++)
		r->attrs[i] = attrs[i];
	return d->next++;
}

int def_unary(struct definition *d, enum ir_op op, int a)
{
	return def_op(d, op, 1, &a, 0, NULL);
}

int def_binary(struct definition *d, enum ir_op op, int a, int b)
{
	return def_op(d, op, 2, (const int[]){ a, b }, 0, NULL);
}

int def_ternary(struct definition *d, enum ir_op op, int a, int b, int c)
{
	return def_op(d, op, 3, (const int[]){ a, b, c }, 0, NULL);
}

int def_cast(struct definition *d, int a, enum ir_dtype dtype)
{
	return def_op(d, OP_CAST, 1, &a, 1, (const int64_t[]){ dtype });
}

int def_reduce(struct definition *d, enum ir_op op, int a, unsigned axes, bool keepdim)
{
	return def_op(d, op, 1, &a, 2, (const int64_t[]){ axes, keepdim });
}

int def_var(struct definition *d, int a, unsigned axes, bool keepdim, int correction)
{
	return def_op(d, OP_VAR, 1, &a, 3, (const int64_t[]){ axes, keepdim, correction });
}

int def_view(struct definition *d, enum ir_op op, int a, int nattrs, const int64_t *attrs)
{
	return def_op(d, op, 1, &a, nattrs, attrs);
}

int def_pad(struct definition *d, int a, int fill, int nattrs, const int64_t *attrs)
{
	return def_op(d, OP_PAD, 2, (const int[]){ a, fill }, nattrs, attrs);
}

int def_cat(struct definition *d, int a, int b, int dim)
{
	return def_op(d, OP_CAT, 2, (const int[]){ a, b }, 1, (const int64_t[]){ dim });
}

int def_index(struct definition *d, enum ir_op op, int a, int index, int dim)
{
	return def_op(d, op, 2, (const int[]){ a, index }, 1, (const int64_t[]){ dim });
}

int def_iota(struct definition *d, int64_t n, int64_t start, int64_t step)
{
	return def_op(d, OP_IOTA, 0, NULL, 3, (const int64_t[]){ n, start, step });
}

int def_full(struct definition *d, int value, int rank, const int64_t *extent)
{
	return def_op(d, OP_FULL, 1, &value, rank, extent);
}

void def_output(struct definition *d, int a)
{
	struct record *r;

	if (!defined(d, a))
		return;
	r = append(d, REC_OUTPUT);
	r->nargs = 1;
	r->args[0] = a;
}

void def_alias_output(struct definition *d, int a, int input)
{
	struct record *r;

	if (!defined(d, a) || !defined(d, input))
		return;
	r = append(d, REC_ALIAS);
	r->nargs = 2;
	r->args[0] = a;
	r->args[1] = input;
}

void def_stride_order(struct definition *d, int a, int rank, const int64_t *order)
{
	struct record *r;

	if (!defined(d, a) || rank > IR_MAX_DIMS)
		return;
	r = append(d, REC_STRIDE_ORDER);
	r->nargs = 1;
	r->args[0] = a;
	r->nattrs = rank;
	for (int i = 0; i < rank; i++)
		r->attrs[i] = order[i];
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	for (int i = 0; i < 8; i++) {
		h ^= v >> (8 * i) & 0xff;
		h *= 0x100000001b3ULL;
	}
	return h;
}

uint64_t definition_hash(const struct definition *d)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < d->count; i++) {
		const struct record *r = &d->records[i];
		uint64_t bits;

		h = mix(h, (uint64_t)r->type << 32 | (uint64_t)r->dtype << 16 | (uint64_t)r->op);
		for (int k = 0; k < r->nargs; k++)
			h = mix(h, (uint64_t)r->args[k]);
		for (int k = 0; k < r->nattrs; k++)
			h = mix(h, (uint64_t)r->attrs[k]);
		memcpy(&bits, &r->value, sizeof(bits));
		h = mix(h, bits);
	}
	return h;
}

bool definition_equal(const struct definition *a, const struct definition *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (memcmp(&a->records[i], &b->records[i], sizeof(struct record)) != 0)
			return false;
	return true;
}

static bool replay_record(struct ir_container *c, const struct record *r, struct ir_val **vals,
			  int *next)
{
	struct ir_val *args[IR_MAX_INPUTS] = { NULL };
	struct ir_expr *e;

	for (int i = 0; i < r->nargs; i++) {
		if (r->args[i] < 0 || r->args[i] >= *next)
			return false;
		args[i] = vals[r->args[i]];
	}
	switch (r->type) {
	case REC_TENSOR:
		vals[*next] = ir_tensor_create(c, r->dtype, r->nattrs, r->attrs);
		ir_container_add_input(c, vals[(*next)++]);
		return true;
	case REC_SCALAR:
		vals[*next] = ir_scalar_create(c, r->dtype);
		ir_container_add_input(c, vals[(*next)++]);
		return true;
	case REC_CONSTANT:
		vals[(*next)++] = ir_constant_create(c, r->dtype, r->value);
		return true;
	case REC_OP:
		e = ir_expr_create(c, r->op, r->nargs, args, r->nattrs, r->attrs);
		if (!e)
			return false;
		vals[(*next)++] = e->output;
		return true;
	case REC_OUTPUT:
		ir_container_add_output(c, args[0]);
		return true;
	case REC_ALIAS:
		if (args[1]->role != IR_ROLE_INPUT || args[1]->rank != args[0]->rank)
			return false;
		ir_container_add_output(c, args[0]);
		ir_container_add_alias(c, args[0], args[1]);
		return true;
	case REC_STRIDE_ORDER:
		if (r->nattrs != args[0]->rank)
			return false;
		for (int d = 0; d < r->nattrs; d++)
			args[0]->stride_order[d] = (int8_t)r->attrs[d];
		return true;
	default:
		return false;
	}
}

struct ir_container *definition_replay(const struct definition *d, const char *label)
{
	struct ir_container *c;
	struct ir_val **vals;
	bool ok = !d->broken;
	int next = 0;

	c = ir_container_create(IR_KIND_FUSION, label);
	vals = fz_alloc((d->count + 1) * sizeof(*vals));
	for (size_t i = 0; ok && i < d->count; i++)
		ok = replay_record(c, &d->records[i], vals, &next);
	free(vals);
	if (!ok || c->storage->outputs.count == 0) {
		ir_container_destroy(c);
		return NULL;
	}
	c->definition_hash = definition_hash(d);
	return c;
}

void definition_write(const struct definition *d, struct buffer *out)
{
	buffer_put_u32(out, (uint32_t)d->count);
	for (size_t i = 0; i < d->count; i++) {
		const struct record *r = &d->records[i];

		buffer_put_u8(out, (uint8_t)r->type);
		buffer_put_u8(out, (uint8_t)r->dtype);
		buffer_put_u8(out, (uint8_t)r->op);
		buffer_put_u8(out, (uint8_t)r->nargs);
		for (int k = 0; k < r->nargs; k++)
			buffer_put_u32(out, (uint32_t)r->args[k]);
		buffer_put_u8(out, (uint8_t)r->nattrs);
		for (int k = 0; k < r->nattrs; k++)
			buffer_put_i64(out, r->attrs[k]);
		buffer_put_f64(out, r->value);
	}
}

static bool read_record(struct buffer *in, struct definition *d)
{
	struct record *r = append(d, buffer_get_u8(in));

	r->dtype = buffer_get_u8(in);
	r->op = buffer_get_u8(in);
	r->nargs = buffer_get_u8(in);
	if (r->type >= REC_TYPES || r->dtype >= IR_DTYPES || r->op >= OP_COUNT ||
	    r->nargs > IR_MAX_INPUTS)
		return false;
	for (int k = 0; k < r->nargs; k++) {
		r->args[k] = (int)buffer_get_u32(in);
		if (r->args[k] < 0 || r->args[k] >= d->next)
			return false;
	}
	r->nattrs = buffer_get_u8(in);
	if (r->nattrs > IR_MAX_ATTRS)
		return false;
	for (int k = 0; k < r->nattrs; k++)
		r->attrs[k] = buffer_get_i64(in);
	r->value = buffer_get_f64(in);
	if (r->type <= REC_OP)
		d->next++;
	return !in->short_read;
}

struct definition *definition_read(struct buffer *in)
{
	struct definition *d = definition_create();
	uint32_t count = buffer_get_u32(in);

	if (count > DEFINITION_MAX_RECORDS)
		in->short_read = true;
	for (uint32_t i = 0; i < count && !in->short_read; i++) {
		if (!read_record(in, d)) {
			definition_destroy(d);
			return NULL;
		}
	}
	if (in->short_read) {
		definition_destroy(d);
		return NULL;
	}
	return d;
}
