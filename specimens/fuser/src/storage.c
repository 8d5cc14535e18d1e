/* What a container holds: the statements and the lists over them. */
#include <stdlib.h>

#include "alloc.h"
#include "cloner.h"
#include "ir.h"

struct ir_storage *ir_storage_create(struct ir_container *parent, enum ir_kind kind)
{
	struct ir_storage *s = fz_alloc(sizeof(*s));

	s->parent = parent;
	s->kind = kind;
	return s;
}

void ir_storage_clear(struct ir_storage *s)
{
	for (size_t i = 0; i < s->exprs.count; i++)
		free(s->exprs.at[i]);
	for (size_t i = 0; i < s->vals.count; i++)
		free(s->vals.at[i]);
	s->vals.count = 0;
	s->exprs.count = 0;
	s->inputs.count = 0;
	s->outputs.count = 0;
	s->aliases.count = 0;
	s->next_val = 0;
	s->next_expr = 0;
}

void ir_storage_destroy(struct ir_storage *s)
{
	if (!s)
		return;
	ir_storage_clear(s);
	free(s->vals.at);
	free(s->exprs.at);
	free(s->inputs.at);
	free(s->outputs.at);
	free(s->aliases.at);
	free(s);
}

void ir_storage_copy(const struct ir_storage *src, struct ir_storage *dst)
{
	struct ir_cloner cl;

	ir_storage_clear(dst);
	ir_cloner_init(&cl, dst->parent);
	for (size_t i = 0; i < src->vals.count; i++)
		ir_cloner_val(&cl, src->vals.at[i]);
	for (size_t i = 0; i < src->exprs.count; i++)
		ir_cloner_expr(&cl, src->exprs.at[i]);
	ir_cloner_interface(&cl, src);
	ir_cloner_deinit(&cl);
}

#define SWAP(a, b)                       \
	do {                             \
		__typeof__(a) tmp = (a); \
		(a) = (b);               \
		(b) = tmp;               \
	} while (0)

void ir_storage_swap(struct ir_storage *a, struct ir_storage *b)
{
	SWAP(a->kind, b->kind);
	SWAP(a->next_val, b->next_val);
	SWAP(a->next_expr, b->next_expr);
	SWAP(a->vals, b->vals);
	SWAP(a->exprs, b->exprs);
	SWAP(a->inputs, b->inputs);
	SWAP(a->outputs, b->outputs);
	SWAP(a->aliases, b->aliases);
}

void ir_vals_push(struct ir_vals *vals, struct ir_val *v)
{
	vals->at = fz_grow(vals->at, &vals->capacity, vals->count + 1, sizeof(*vals->at));
	vals->at[vals->count++] = v;
}

void ir_aliases_push(struct ir_aliases *aliases, struct ir_alias alias)
{
	aliases->at =
		fz_grow(aliases->at, &aliases->capacity, aliases->count + 1, sizeof(*aliases->at));
	aliases->at[aliases->count++] = alias;
}

void ir_storage_add_val(struct ir_storage *s, struct ir_val *v)
{
	ir_vals_push(&s->vals, v);
	if (v->stmt.name >= s->next_val)
		s->next_val = v->stmt.name + 1;
}

void ir_storage_add_expr(struct ir_storage *s, struct ir_expr *e)
{
	struct ir_exprs *list = &s->exprs;

	list->at = fz_grow(list->at, &list->capacity, list->count + 1, sizeof(*list->at));
	list->at[list->count++] = e;
	if (e->stmt.name >= s->next_expr)
		s->next_expr = e->stmt.name + 1;
}
