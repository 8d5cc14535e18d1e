/* Views, broadcasts, layouts and extents that come late. */
#include "harness.h"

void test_alias_output_to_input(struct test *t)
{
	struct definition *d = definition_create();
	int in = def_tensor(d, IR_FLOAT, DIMS(2, 2));
	int state = def_tensor(d, IR_FLOAT, DIMS(2, 2));
	int turned = def_view(d, OP_PERMUTE, in, DIMS(1, 0));

	def_alias_output(d, turned, state);
	def_output(d, def_unary(d, OP_SET, in));
	for (int i = 0; i < 3; i++) {
		struct tensor *kept;

		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2), i, 1));
		kept = test_arg(t, tensor_create(IR_FLOAT, DIMS(2, 2)));
		CHECK(t, test_run(t, d));
		CHECK(t, tensor_close(kept, VALUES(i, i + 2.0, i + 1.0, i + 3.0)));
		CHECK(t, test_output_is(t, 1, DIMS(2, 2), VALUES(i, i + 1.0, i + 2.0, i + 3.0)));
	}
	definition_destroy(d);
}

void test_allocation_domain_concretization(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC, IR_DYNAMIC));
	int flat = def_view(d, OP_RESHAPE, def_unary(d, OP_NEG, x), DIMS(IR_DYNAMIC));
	int twice = def_binary(d, OP_ADD, flat, flat);

	def_stride_order(d, x, DIMS(1, 0));
	def_output(d, twice);
	for (int64_t n = 1; n <= 3; n++) {
		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(n, 2), 0, 1));
		CHECK(t, test_run(t, d));
		CHECK(t, test_output_is(t, 0, DIMS(2 * n), VALUES(0, -2, -4, -6, -8, -10)));
	}
	definition_destroy(d);
}

void test_bcast_squeeze(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3));
	int wide = def_view(d, OP_BROADCAST, x, DIMS(1, 3, 1u << 1));
	int back = def_view(d, OP_SQUEEZE, wide, DIMS(0));

	def_output(d, def_binary(d, OP_SUB, back, x));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(0, 0, 0)));
	definition_destroy(d);
}

void test_broadcast_and_stride_order(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int y = def_view(d, OP_BROADCAST, x, DIMS(2, 1, 3, 1u << 0 | 1u << 2));

	def_stride_order(d, y, DIMS(0, 2, 1));
	def_output(d, y);
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 1, 3), VALUES(0, 1, 2, 3, 4, 5)));
	CHECK(t, t->out[0]->stride_order[1] == 2);
	definition_destroy(d);
}

void test_broadcast_in_dim(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));
	int y = def_tensor(d, IR_FLOAT, DIMS(2, 2));
	int wide = def_view(d, OP_BROADCAST, x, DIMS(2, 2, 1u << 0));

	def_output(d, def_binary(d, OP_ADD, wide, y));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(10, 20)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(10, 11, 22, 23)));
	definition_destroy(d);
}

void test_broadcast_in_dim_with_dynamic_shapes(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC));
	int y = def_tensor(d, IR_FLOAT, DIMS(3, IR_DYNAMIC));
	int wide = def_view(d, OP_BROADCAST, x, DIMS(3, IR_DYNAMIC, 1u << 1));

	def_output(d, def_binary(d, OP_MUL, wide, y));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(2, 3)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3, 2), VALUES(2, 6, 6, 12, 10, 18)));
	definition_destroy(d);
}

void test_broadcast_mixing(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(3, 1));
	int b = def_tensor(d, IR_FLOAT, DIMS(2));

	def_output(d, def_binary(d, OP_SUB, a, b));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 1), 0, 10));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3, 2), VALUES(-1, -2, 9, 8, 19, 18)));
	definition_destroy(d);
}

void test_cat(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2, 1));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 2));

	def_output(d, def_cat(d, a, b, 1));
	def_output(d, def_cat(d, b, b, 0));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2, 1), VALUES(8, 9)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(8, 0, 1, 9, 2, 3)));
	CHECK(t, test_output_is(t, 1, DIMS(4, 2), VALUES(0, 1, 2, 3, 0, 1, 2, 3)));
	definition_destroy(d);
}

void test_dynamic_reshape(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC, 2));

	def_output(d, def_view(d, OP_RESHAPE, x, DIMS(2, IR_DYNAMIC)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(0, 1, 2, 3, 4, 5)));
	test_reset(t);
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 3), 0, 1));
	CHECK(t, !test_run(t, d));
	definition_destroy(d);
}

void test_expand(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 1));

	def_output(d, def_view(d, OP_EXPAND, x, DIMS(2, 3)));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2, 1), VALUES(4, 5)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(4, 4, 4, 5, 5, 5)));
	definition_destroy(d);
}

void test_explicit_broadcast_input(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(1, 3));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 3));

	def_output(d, def_binary(d, OP_ADD, def_view(d, OP_EXPAND, a, DIMS(2, 3)), b));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(1, 3), 0, 1));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 10));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(0, 11, 22, 30, 41, 52)));
	definition_destroy(d);
}

void test_full(struct test *t)
{
	struct definition *d = definition_create();

	def_output(d, def_full(d, def_scalar(d, IR_FLOAT), DIMS(2, 2)));
	test_arg(t, tensor_scalar(IR_FLOAT, 0.5));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(0.5, 0.5, 0.5, 0.5)));
	definition_destroy(d);
}

void test_implicit_broadcast_input(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(3));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 3));

	def_output(d, def_binary(d, OP_MAXIMUM, a, b));
	def_output(d, def_binary(d, OP_MINIMUM, a, b));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(3), VALUES(1, 2, 3)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(1, 2, 3, 3, 4, 5)));
	CHECK(t, test_output_is(t, 1, DIMS(2, 3), VALUES(0, 1, 2, 1, 2, 3)));
	definition_destroy(d);
}

void test_iota(struct test *t)
{
	struct definition *d = definition_create();

	def_output(d, def_iota(d, 4, 3, -1));
	def_output(d, def_iota(d, 0, 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_INT);
	CHECK(t, test_output_is(t, 0, DIMS(4), VALUES(3, 2, 1, 0)));
	CHECK(t, t->out[1]->elements == 0);
	definition_destroy(d);
}

void test_output_stride_order(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int y = def_unary(d, OP_COS, x);

	def_stride_order(d, y, DIMS(1, 0));
	def_output(d, y);
	test_arg(t, tensor_create(IR_FLOAT, DIMS(2, 3)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->stride_order[0] == 1 && t->out[0]->stride_order[1] == 0);
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(1, 1, 1, 1, 1, 1)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_pad(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(1, 2));

	def_output(d, def_pad(d, x, def_constant(d, IR_DOUBLE, 7), DIMS(0, 1, 1, 0)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(1, 2), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(7, 1, 2, 7, 7, 7)));
	definition_destroy(d);
}

void test_permute(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(1, 2, 3));

	def_output(d, def_view(d, OP_PERMUTE, x, DIMS(2, 0, 1)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(1, 2, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3, 1, 2), VALUES(0, 3, 1, 4, 2, 5)));
	definition_destroy(d);

	d = definition_create();
	x = def_tensor(d, IR_FLOAT, DIMS(2, 2));
	def_output(d, def_view(d, OP_PERMUTE, x, DIMS(0, 0)));
	CHECK(t, !definition_replay(d, "bad permutation"));
	definition_destroy(d);
}

void test_slice(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3, 3));

	def_output(d, def_view(d, OP_SLICE, x, DIMS(1, 3, 0, 2)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(3, 4, 6, 7)));
	definition_destroy(d);
}

void test_squeeze(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 1, 2));

	def_output(d, def_view(d, OP_SQUEEZE, x, DIMS(1)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 1, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(0, 1, 2, 3)));
	definition_destroy(d);

	d = definition_create();
	x = def_tensor(d, IR_FLOAT, DIMS(2, 2));
	def_output(d, def_view(d, OP_SQUEEZE, x, DIMS(1)));
	CHECK(t, !definition_replay(d, "squeeze of two"));
	definition_destroy(d);
}

void test_zero_size_dim(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(0, 3));

	def_output(d, def_unary(d, OP_EXP, x));
	def_output(d, def_reduce(d, OP_SUM, x, 1u << 0, false));
	test_arg(t, tensor_create(IR_FLOAT, DIMS(0, 3)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->elements == 0);
	CHECK(t, test_output_is(t, 1, DIMS(3), VALUES(0, 0, 0)));
	definition_destroy(d);
}
