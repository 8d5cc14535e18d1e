/* Vals and exprs: making them, and copying them with a cloner. */
#include <string.h>

#include "alloc.h"
#include "cloner.h"
#include "ir.h"

static struct ir_val *val_create(struct ir_container *c, enum ir_dtype dtype)
{
	struct ir_val *v = fz_alloc(sizeof(*v));

	v->stmt.type = IR_STMT_VAL;
	v->stmt.name = c->storage->next_val;
	v->stmt.container = c;
	v->dtype = dtype;
	ir_storage_add_val(c->storage, v);
	c->counters.created++;
	return v;
}

struct ir_val *ir_scalar_create(struct ir_container *c, enum ir_dtype dtype)
{
	return val_create(c, dtype);
}

struct ir_val *ir_constant_create(struct ir_container *c, enum ir_dtype dtype, double value)
{
	struct ir_val *v = val_create(c, dtype);

	v->role = IR_ROLE_CONSTANT;
	v->value = dtype_round(dtype, value);
	return v;
}

struct ir_val *ir_tensor_create(struct ir_container *c, enum ir_dtype dtype, int rank,
				const int64_t *extent)
{
	struct ir_val *v = val_create(c, dtype);

	v->is_tensor = true;
	v->rank = rank;
	for (int d = 0; d < rank; d++)
		v->extent[d] = extent[d];
	return v;
}

struct ir_expr *ir_expr_create(struct ir_container *c, enum ir_op op, int ninputs,
			       struct ir_val *const *inputs, int nattrs, const int64_t *attrs)
{
	struct ir_val result = { 0 };
	struct ir_expr draft = { .op = op, .output = &result };
	struct ir_expr *e;

	if (ninputs != op_info(op)->arity || nattrs > IR_MAX_ATTRS)
		return NULL;
	draft.ninputs = ninputs;
	for (int i = 0; i < ninputs; i++)
		draft.inputs[i] = inputs[i];
	draft.nattrs = nattrs;
	for (int i = 0; i < nattrs; i++)
		draft.attrs[i] = attrs[i];
	if (!ir_expr_infer(&draft))
		return NULL;

	e = fz_alloc(sizeof(*e));
	*e = draft;
	e->stmt.type = IR_STMT_EXPR;
	e->stmt.name = c->storage->next_expr;
	e->stmt.container = c;
	ir_storage_add_expr(c->storage, e);
	e->output = val_create(c, result.dtype);
	e->output->is_tensor = result.is_tensor;
	e->output->rank = result.rank;
	memcpy(e->output->extent, result.extent, sizeof(result.extent));
	e->output->definition = e;
	return e;
}

struct ir_val *ir_val_clone(const struct ir_val *src, struct ir_cloner *cloner)
{
	struct ir_container *target = cloner->target;
	struct ir_val *v = fz_alloc(sizeof(*v));

	*v = *src;
	v->stmt.container = target;
	v->definition = NULL;
	if (target->storage->kind == IR_KIND_FUSION)
		v->stmt.name = target->storage->next_val;
	ir_storage_add_val(target->storage, v);
	target->counters.cloned++;
	return v;
}

struct ir_expr *ir_expr_clone(const struct ir_expr *src, struct ir_cloner *cloner)
{
	const struct ir_container *home = src->stmt.container;
	struct ir_container *target = cloner->target;
	struct ir_expr *e;
	bool keep_name = target->storage->kind == IR_KIND_KERNEL;

	if (home->storage->kind == IR_KIND_KERNEL && (home->flags & IR_KEEP_NAMES))
		keep_name = true;

	e = fz_alloc(sizeof(*e));
	*e = *src;
	e->stmt.container = target;
	if (!keep_name)
		e->stmt.name = target->storage->next_expr;
	for (int i = 0; i < src->ninputs; i++)
		e->inputs[i] = ir_cloner_val(cloner, src->inputs[i]);
	e->output = ir_cloner_val(cloner, src->output);
	e->output->definition = e;
	ir_storage_add_expr(target->storage, e);
	target->counters.cloned++;
	return e;
}

bool ir_val_is_dynamic(const struct ir_val *v)
{
	for (int d = 0; d < v->rank; d++)
		if (v->extent[d] == IR_DYNAMIC)
			return true;
	return false;
}

int64_t ir_val_elements(const struct ir_val *v)
{
	int64_t n = 1;

	for (int d = 0; d < v->rank; d++) {
		if (v->extent[d] == IR_DYNAMIC)
			return IR_DYNAMIC;
		n *= v->extent[d];
	}
	return n;
}
