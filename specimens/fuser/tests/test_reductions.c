/* Reductions, products, and reads by index. */
#include <math.h>

#include "harness.h"

void test_all_dim_var_mean(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 2, 2));

	def_output(d, def_var(d, x, 7, false, 1));
	def_output(d, def_reduce(d, OP_MEAN, x, 7, false));
	for (int i = 0; i < 3; i++) {
		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2, 2), i, 1));
		CHECK(t, test_run(t, d));
		CHECK(t, tensor_close(t->out[0], VALUES(6)));
		CHECK(t, tensor_close(t->out[1], VALUES(i + 3.5)));
	}
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_allocation_domain_index_select(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3, 2));
	int index = def_tensor(d, IR_INT, DIMS(2));
	int rows = def_index(d, OP_INDEX_SELECT, x, index, 0);

	def_stride_order(d, x, DIMS(1, 0));
	def_output(d, def_binary(d, OP_ADD, rows, rows));
	for (int i = 0; i < 3; i++) {
		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0, 1));
		test_arg(t, tensor_from(IR_INT, DIMS(2), VALUES(i, 0)));
		CHECK(t, test_run(t, d));
		CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(4.0 * i, 4.0 * i + 2, 0, 2)));
	}
	definition_destroy(d);
}

void test_empty_reduction(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(0));

	def_output(d, def_reduce(d, OP_PROD, x, 1, false));
	def_output(d, def_reduce(d, OP_AMAX, x, 1, false));
	test_arg(t, tensor_create(IR_FLOAT, DIMS(0)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->data[0] == 1);
	CHECK(t, isinf(t->out[1]->data[0]));
	definition_destroy(d);
}

void test_gather(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int index = def_tensor(d, IR_INT, DIMS(2, 2));

	def_output(d, def_index(d, OP_GATHER, x, index, 1));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	test_arg(t, tensor_from(IR_INT, DIMS(2, 2), VALUES(2, 0, 1, 1)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(2, 0, 4, 4)));
	definition_destroy(d);
}

void test_index_select(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int index = def_tensor(d, IR_INT, DIMS(4));

	def_output(d, def_index(d, OP_INDEX_SELECT, x, index, 1));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(0, 0, 2, 1)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 4), VALUES(0, 0, 2, 1, 3, 3, 5, 4)));
	t->args[1]->data[0] = 3;
	CHECK(t, !test_run(t, d));
	definition_destroy(d);
}

void test_index_select_scalar_indices(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3, 2));
	int index = def_scalar(d, IR_INT);

	def_output(d, def_index(d, OP_INDEX_SELECT, x, index, 0));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0, 1));
	test_arg(t, tensor_scalar(IR_INT, 2));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(1, 2), VALUES(4, 5)));
	definition_destroy(d);
}

void test_matmul(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int b = def_tensor(d, IR_FLOAT, DIMS(3, 2));

	def_output(d, def_binary(d, OP_MATMUL, a, b));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(10, 13, 28, 40)));
	definition_destroy(d);
}

void test_normalization(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 4));
	int mean = def_reduce(d, OP_MEAN, x, 1u << 1, true);
	int var = def_var(d, x, 1u << 1, true, 0);
	int eps = def_constant(d, IR_DOUBLE, 1e-12);
	int scale = def_unary(d, OP_RSQRT, def_binary(d, OP_ADD, var, eps));
	int y = def_binary(d, OP_MUL, def_binary(d, OP_SUB, x, mean), scale);

	def_output(d, y);
	def_output(d, def_reduce(d, OP_SUM, def_binary(d, OP_MUL, y, y), 3, false));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 4), -3, 2));
	CHECK(t, test_run(t, d));
	CHECK(t, fabs(t->out[1]->data[0] - 8) < 1e-4);
	definition_destroy(d);
}

void test_prod(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));

	def_output(d, def_reduce(d, OP_PROD, x, 1u << 0, false));
	def_output(d, def_reduce(d, OP_AMIN, x, 3, false));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(4, 10, 18)));
	CHECK(t, tensor_close(t->out[1], VALUES(1)));
	definition_destroy(d);
}

void test_reduction_keepdim(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_INT, DIMS(2, 3));

	def_output(d, def_reduce(d, OP_SUM, x, 1u << 1, true));
	def_output(d, def_reduce(d, OP_AMAX, x, 1u << 0, true));
	test_arg(t, tensor_arange(IR_INT, DIMS(2, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_INT);
	CHECK(t, test_output_is(t, 0, DIMS(2, 1), VALUES(3, 12)));
	CHECK(t, test_output_is(t, 1, DIMS(1, 3), VALUES(3, 4, 5)));
	definition_destroy(d);
}

void test_softmax(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int top = def_reduce(d, OP_AMAX, x, 1u << 1, true);
	int e = def_unary(d, OP_EXP, def_binary(d, OP_SUB, x, top));

	def_output(d, def_binary(d, OP_DIV, e, def_reduce(d, OP_SUM, e, 1u << 1, true)));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2, 3), VALUES(0, 0, 0, 1000, 0, 1000)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 3), VALUES(1.0 / 3, 1.0 / 3, 1.0 / 3, 0.5, 0, 0.5)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_take_along_axis(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3, 2));
	int index = def_tensor(d, IR_INT, DIMS(1, 2));
	int taken = def_index(d, OP_GATHER, x, index, 0);

	def_output(d, def_unary(d, OP_NEG, taken));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0, 1));
	test_arg(t, tensor_from(IR_INT, DIMS(1, 2), VALUES(2, 1)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(1, 2), VALUES(-4, -3)));
	definition_destroy(d);
}

void test_var_correction(struct test *t)
{
	for (int correction = 0; correction < 3; correction++) {
		struct definition *d = definition_create();
		int x = def_tensor(d, IR_FLOAT, DIMS(4));

		def_output(d, def_var(d, x, 1, false, correction));
		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(4), 0, 1));
		CHECK(t, test_run(t, d));
		CHECK(t, tensor_close(t->out[0], VALUES(5.0 / (4 - correction))));
		definition_destroy(d);
	}
}
