#include "cloner.h"

void ir_cloner_init(struct ir_cloner *cl, struct ir_container *target)
{
	cl->target = target;
	ptrmap_init(&cl->copies);
}

void ir_cloner_deinit(struct ir_cloner *cl)
{
	ptrmap_deinit(&cl->copies);
}

void ir_cloner_bind(struct ir_cloner *cl, const void *src, void *copy)
{
	ptrmap_put(&cl->copies, src, copy);
}

struct ir_val *ir_cloner_val(struct ir_cloner *cl, const struct ir_val *src)
{
	struct ir_val *copy;

	if (!src)
		return NULL;
	copy = ptrmap_get(&cl->copies, src);
	if (!copy) {
		copy = ir_val_clone(src, cl);
		ir_cloner_bind(cl, src, copy);
	}
	return copy;
}

struct ir_expr *ir_cloner_expr(struct ir_cloner *cl, const struct ir_expr *src)
{
	struct ir_expr *copy = ptrmap_get(&cl->copies, src);

	if (!copy) {
		copy = ir_expr_clone(src, cl);
		ir_cloner_bind(cl, src, copy);
	}
	return copy;
}

void ir_cloner_interface(struct ir_cloner *cl, const struct ir_storage *src)
{
	struct ir_storage *dst = cl->target->storage;

	for (size_t i = 0; i < src->inputs.count; i++)
		ir_vals_push(&dst->inputs, ir_cloner_val(cl, src->inputs.at[i]));
	for (size_t i = 0; i < src->outputs.count; i++)
		ir_vals_push(&dst->outputs, ir_cloner_val(cl, src->outputs.at[i]));
	for (size_t i = 0; i < src->aliases.count; i++) {
		struct ir_alias alias = {
			.output = ir_cloner_val(cl, src->aliases.at[i].output),
			.input = ir_cloner_val(cl, src->aliases.at[i].input),
		};

		ir_aliases_push(&dst->aliases, alias);
	}
}
