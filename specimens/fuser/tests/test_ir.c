/* Containers and statements, without the front end's help. */
#include <string.h>

#include "evaluate.h"
#include "harness.h"
#include "pass.h"

static struct ir_val *unary(struct ir_container *c, enum ir_op op, struct ir_val *a)
{
	return ir_expr_create(c, op, 1, &a, 0, NULL)->output;
}

/* x -> op(x), over three elements. */
static struct ir_container *make_fusion(const char *label, enum ir_op op)
{
	struct ir_container *c = ir_container_create(IR_KIND_FUSION, label);
	struct ir_val *x = ir_tensor_create(c, IR_FLOAT, DIMS(3));

	ir_container_add_input(c, x);
	ir_container_add_output(c, unary(c, op, x));
	return c;
}

static bool computes(const struct ir_container *c, const double *expected)
{
	struct tensor *x = tensor_arange(IR_FLOAT, DIMS(3), -1, 1), *out = NULL;
	bool ok = evaluate(c, &x, 1, &out) && tensor_close(out, expected);

	tensor_destroy(x);
	tensor_destroy(out);
	return ok;
}

static bool all_at_home(const struct ir_container *c)
{
	const struct ir_storage *s = c->storage;

	for (size_t i = 0; i < s->vals.count; i++)
		if (s->vals.at[i]->stmt.container != c)
			return false;
	for (size_t i = 0; i < s->exprs.count; i++)
		if (s->exprs.at[i]->stmt.container != c)
			return false;
	return s->parent == c;
}

void test_clone_keeps_kernel_names(struct test *t)
{
	struct ir_container *c = make_fusion("names", OP_ABS), *kernel, *again;

	unary(c, OP_NEG, c->storage->inputs.at[0]);
	kernel = ir_container_lower(c);
	again = ir_container_copy(kernel);
	CHECK(t, again->storage->kind == IR_KIND_KERNEL && kernel->launch.block[0] == 128);
	for (size_t i = 0; i < c->storage->exprs.count; i++)
		CHECK(t,
		      again->storage->exprs.at[i]->stmt.name == c->storage->exprs.at[i]->stmt.name);
	ir_container_destroy(c);
	CHECK(t, all_at_home(kernel) && all_at_home(again));
	ir_container_destroy(kernel);
	ir_container_destroy(again);
}

void test_container_copy(struct test *t)
{
	struct ir_container *c = make_fusion("original", OP_NEG), *copy;

	copy = ir_container_copy(c);
	CHECK(t, all_at_home(copy));
	CHECK(t,
	      copy->storage->outputs.at[0]->definition->inputs[0] == copy->storage->inputs.at[0]);
	ir_container_destroy(c);
	CHECK(t, computes(copy, VALUES(1, 0, -1)));
	ir_container_destroy(copy);
}

void test_container_swap(struct test *t)
{
	struct ir_container *a = make_fusion("a", OP_NEG), *b = make_fusion("b", OP_ABS);

	unary(b, OP_EXP, b->storage->outputs.at[0]);
	ir_container_swap(a, b);
	CHECK(t, all_at_home(a) && all_at_home(b));
	CHECK(t, a->storage->exprs.count == 2 && b->storage->exprs.count == 1);
	ir_container_destroy(b);
	CHECK(t, computes(a, VALUES(1, 0, 1)));
	ir_container_destroy(a);
}

void test_container_swap_restore(struct test *t)
{
	struct ir_container *a = make_fusion("a", OP_NEG), *b = make_fusion("b", OP_ABS);

	ir_container_swap(a, b);
	CHECK(t, computes(a, VALUES(1, 0, 1)));
	ir_container_restore(a, b);
	CHECK(t, computes(a, VALUES(1, 0, -1)) && computes(b, VALUES(1, 0, 1)));
	CHECK(t, a->counters.swapped == 0 && b->counters.swapped == 0);
	ir_container_destroy(a);
	ir_container_destroy(b);
}

void test_dead_code(struct test *t)
{
	struct ir_container *c = make_fusion("dead", OP_ABS);
	struct ir_container *small = ir_container_create(IR_KIND_FUSION, "small");
	struct ir_val *x = c->storage->inputs.at[0];

	unary(c, OP_SIN, unary(c, OP_EXP, x));
	ir_container_add_output(c, unary(c, OP_ABS, x));
	CHECK(t, pass_compact(c, small));
	CHECK(t, small->storage->exprs.count == 1 && small->storage->outputs.count == 2);
	CHECK(t, small->storage->outputs.at[0] == small->storage->outputs.at[1]);
	CHECK(t, all_at_home(small));
	ir_container_destroy(c);
	ir_container_destroy(small);
}

void test_fusion_information(struct test *t)
{
	struct ir_container *c = make_fusion("info", OP_TANH);
	char text[128];

	CHECK(t, scheduler_for(c) == SCHED_POINTWISE);
	CHECK(t, strcmp(scheduler_name(scheduler_for(c)), "pointwise") == 0);
	CHECK(t, c->max_elements == 3 && !ir_container_is_dynamic(c));
	ir_container_print(c, text, sizeof(text));
	CHECK(t, strcmp(text, "fusion info\n  %1 = tanh(%0)\n") == 0);
	CHECK(t, ir_container_print(c, text, 8) > 8);
	ir_container_destroy(c);
}
