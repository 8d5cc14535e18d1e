/* Containers: life, copy, swap and the interface of a fusion. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "ir.h"

static uint64_t next_serial;

struct ir_container *ir_container_create(enum ir_kind kind, const char *label)
{
	struct ir_container *c = fz_alloc(sizeof(*c));

	c->serial = ++next_serial;
	c->flags = kind == IR_KIND_KERNEL ? IR_KEEP_NAMES : 0;
	c->launch.index_bits = 32;
	snprintf(c->label, sizeof(c->label), "%s", label);
	c->storage = ir_storage_create(c, kind);
	return c;
}

void ir_container_destroy(struct ir_container *c)
{
	if (!c)
		return;
	ir_storage_destroy(c->storage);
	free(c);
}

void ir_container_clear(struct ir_container *c)
{
	ir_storage_clear(c->storage);
	c->counters.cleared++;
}

static struct ir_container *copy_as(const struct ir_container *src, enum ir_kind kind)
{
	struct ir_container *c = ir_container_create(kind, src->label);

	c->launch = src->launch;
	c->definition_hash = src->definition_hash;
	c->max_elements = src->max_elements;
	ir_storage_copy(src->storage, c->storage);
	return c;
}

struct ir_container *ir_container_copy(const struct ir_container *src)
{
	return copy_as(src, src->storage->kind);
}

struct ir_container *ir_container_lower(const struct ir_container *fusion)
{
	struct ir_container *kernel = copy_as(fusion, IR_KIND_KERNEL);

	kernel->launch.grid[0] = (fusion->max_elements + 127) / 128;
	kernel->launch.block[0] = 128;
	return kernel;
}

static void rehome(struct ir_container *c)
{
	struct ir_storage *s = c->storage;

	for (size_t i = 0; i < s->vals.count; i++)
		s->vals.at[i]->stmt.container = c;
	for (size_t i = 0; i < s->exprs.count; i++)
		s->exprs.at[i]->stmt.container = c;
}

void ir_container_swap(struct ir_container *a, struct ir_container *b)
{
	ir_storage_swap(a->storage, b->storage);
	rehome(a);
	rehome(b);
	a->counters.swapped++;
	b->counters.swapped++;
}

void ir_container_restore(struct ir_container *a, struct ir_container *b)
{
	ir_storage_swap(a->storage, b->storage);
	a->counters.swapped--;
	b->counters.swapped--;
}

void ir_container_add_input(struct ir_container *c, struct ir_val *v)
{
	v->role = IR_ROLE_INPUT;
	ir_vals_push(&c->storage->inputs, v);
}

void ir_container_add_output(struct ir_container *c, struct ir_val *v)
{
	int64_t elements = ir_val_elements(v);

	ir_vals_push(&c->storage->outputs, v);
	if (elements > c->max_elements)
		c->max_elements = elements;
}

void ir_container_add_alias(struct ir_container *c, struct ir_val *out, struct ir_val *in)
{
	ir_aliases_push(&c->storage->aliases, (struct ir_alias){ .output = out, .input = in });
}

bool ir_container_is_dynamic(const struct ir_container *c)
{
	for (size_t i = 0; i < c->storage->vals.count; i++)
		if (ir_val_is_dynamic(c->storage->vals.at[i]))
			return true;
	return false;
}

size_t ir_container_print(const struct ir_container *c, char *text, size_t size)
{
	const struct ir_storage *s = c->storage;
	size_t len = 0;

#define EMIT(...) (len += (size_t)snprintf(text + len, len < size ? size - len : 0, __VA_ARGS__))
	EMIT("%s %s\n", s->kind == IR_KIND_KERNEL ? "kernel" : "fusion", c->label);
	for (size_t i = 0; i < s->exprs.count && len < size; i++) {
		const struct ir_expr *e = s->exprs.at[i];

		EMIT("  %%%u = %s(", e->output->stmt.name, op_info(e->op)->name);
		for (int k = 0; k < e->ninputs && len < size; k++)
			EMIT("%s%%%u", k ? ", " : "", e->inputs[k]->stmt.name);
		if (len < size)
			EMIT(")\n");
	}
#undef EMIT
	return len;
}
