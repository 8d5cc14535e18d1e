#include "pass.h"

#include <string.h>

#include "cloner.h"

static void mark_needed(struct ptrmap *needed, struct ir_val *v)
{
	struct ir_expr *e = v->definition;

	if (ptrmap_get(needed, v))
		return;
	ptrmap_put(needed, v, v);
	if (!e)
		return;
	ptrmap_put(needed, e, e);
	for (int i = 0; i < e->ninputs; i++)
		mark_needed(needed, e->inputs[i]);
}

static struct ir_expr *find_equal(struct ir_cloner *cl, const struct ir_expr *e)
{
	const struct ir_exprs *done = &cl->target->storage->exprs;

	for (size_t i = 0; i < done->count; i++) {
		struct ir_expr *d = done->at[i];
		bool same = d->op == e->op && d->ninputs == e->ninputs && d->nattrs == e->nattrs &&
			    memcmp(d->attrs, e->attrs, sizeof(e->attrs)) == 0;

		for (int k = 0; same && k < e->ninputs; k++)
			same = d->inputs[k] == ir_cloner_val(cl, e->inputs[k]);
		if (same)
			return d;
	}
	return NULL;
}

static bool rebuild(struct ir_cloner *cl, const struct ir_storage *src, const struct ptrmap *needed)
{
	for (size_t i = 0; i < src->inputs.count; i++)
		ir_cloner_val(cl, src->inputs.at[i]);

	for (size_t i = 0; i < src->exprs.count; i++) {
		const struct ir_expr *e = src->exprs.at[i];
		struct ir_expr *twin;

		if (!ptrmap_get(needed, e))
			continue;
		if (ir_val_is_dynamic(e->output))
			return false;
		twin = find_equal(cl, e);
		if (twin)
			ir_cloner_bind(cl, e->output, twin->output);
		else
			ir_cloner_expr(cl, e);
	}
	ir_cloner_interface(cl, src);
	return true;
}

bool pass_compact(const struct ir_container *src, struct ir_container *dst)
{
	const struct ir_storage *s = src->storage;
	struct ptrmap needed;
	struct ir_cloner cl;
	bool ok;

	ptrmap_init(&needed);
	for (size_t i = 0; i < s->outputs.count; i++)
		mark_needed(&needed, s->outputs.at[i]);
	ir_cloner_init(&cl, dst);
	ok = rebuild(&cl, s, &needed);
	ir_cloner_deinit(&cl);
	ptrmap_deinit(&needed);
	return ok;
}

bool pass_concretize(struct ir_container *fusion, const int64_t *sizes, size_t nsizes)
{
	struct ir_storage *s = fusion->storage;
	size_t next = 0;

	for (size_t i = 0; i < s->inputs.count; i++) {
		struct ir_val *v = s->inputs.at[i];

		for (int d = 0; d < v->rank; d++) {
			if (next == nsizes)
				return false;
			if (v->extent[d] != IR_DYNAMIC && v->extent[d] != sizes[next])
				return false;
			v->extent[d] = sizes[next++];
		}
	}
	for (size_t i = 0; i < s->exprs.count; i++)
		if (!ir_expr_infer(s->exprs.at[i]))
			return false;
	return next == nsizes && !ir_container_is_dynamic(fusion);
}
