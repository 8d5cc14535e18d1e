/* Element by element operations and scalars. */
#include <math.h>

#include "harness.h"

void test_addcmul(struct test *t)
{
	struct definition *d = definition_create();
	int self = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int t1 = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int t2 = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int value = def_scalar(d, IR_DOUBLE);
	int product = def_binary(d, OP_MUL, def_binary(d, OP_MUL, value, t1), t2);

	def_output(d, def_binary(d, OP_ADD, self, product));
	for (int i = 0; i < 3; i++) {
		test_reset(t);
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 1, 1));
		test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 2, 0));
		test_arg(t, tensor_scalar(IR_DOUBLE, i));
		CHECK(t, test_run(t, d));
		CHECK(t, test_output_is(t, 0, DIMS(2, 3),
					VALUES(2.0 * i, 1 + 4.0 * i, 2 + 6.0 * i, 3 + 8.0 * i,
					       4 + 10.0 * i, 5 + 12.0 * i)));
	}
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_arithmetic_ops(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_scalar(d, IR_DOUBLE);
	int b = def_scalar(d, IR_DOUBLE);

	def_output(d, def_unary(d, OP_ABS, def_binary(d, OP_SUB, a, b)));
	def_output(d,
		   def_binary(d, OP_DIV, def_binary(d, OP_SUB, a, b), def_binary(d, OP_ADD, a, b)));
	def_output(d, def_binary(d, OP_POW, a, def_constant(d, IR_DOUBLE, 2)));
	def_output(d, def_unary(d, OP_SQRT, def_binary(d, OP_MUL, a, a)));
	for (int i = 0; i < 4; i++) {
		double x = 1.5 + i, y = 3;

		test_reset(t);
		test_arg(t, tensor_scalar(IR_DOUBLE, x));
		test_arg(t, tensor_scalar(IR_DOUBLE, y));
		CHECK(t, test_run(t, d));
		CHECK(t, tensor_close(t->out[0], VALUES(fabs(x - y))));
		CHECK(t, tensor_close(t->out[1], VALUES((x - y) / (x + y))));
		CHECK(t, tensor_close(t->out[2], VALUES(x * x)));
		CHECK(t, tensor_close(t->out[3], VALUES(x)));
	}
	definition_destroy(d);
}

void test_avoid_double_evaluation(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(4));
	int y = def_unary(d, OP_SIN, x);

	def_output(d, y);
	def_output(d, def_binary(d, OP_MUL, y, y));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(4), 0, 0.5));
	CHECK(t, test_run(t, d));
	for (int i = 0; i < 4; i++)
		CHECK(t, fabs(t->out[1]->data[i] - pow(t->out[0]->data[i], 2)) < 1e-6);
	definition_destroy(d);
}

void test_basic(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2, 4));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 4));
	int c = def_constant(d, IR_DOUBLE, 3.0);
	int sum = def_binary(d, OP_MUL, def_binary(d, OP_ADD, a, b), c);

	def_output(d, def_reduce(d, OP_SUM, sum, 1u << 1, false));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 4), 1, 0));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 4), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(30, 78)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_basic_fp16(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_cast(d, def_tensor(d, IR_HALF, DIMS(3)), IR_FLOAT);
	int b = def_cast(d, def_tensor(d, IR_HALF, DIMS(3)), IR_FLOAT);

	def_output(d, def_cast(d, def_binary(d, OP_ADD, a, b), IR_HALF));
	test_arg(t, tensor_from(IR_HALF, DIMS(3), VALUES(1, 1000, 0.1)));
	test_arg(t, tensor_from(IR_HALF, DIMS(3), VALUES(1, 0.25, 0.2)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_HALF);
	CHECK(t, t->out[0]->data[0] == 2);
	CHECK(t, t->out[0]->data[1] == 1000); /* a quarter is lost at this size */
	CHECK(t, fabs(t->out[0]->data[2] - 0.3) < 1e-3);
	definition_destroy(d);
}

void test_cast_double_to_half(struct test *t)
{
	struct definition *d = definition_create();

	def_output(d, def_cast(d, def_tensor(d, IR_DOUBLE, DIMS(4)), IR_HALF));
	test_arg(t, tensor_from(IR_DOUBLE, DIMS(4), VALUES(1.0 / 3, 70000, -70000, 1e-9)));
	CHECK(t, test_run(t, d));
	CHECK(t, fabs(t->out[0]->data[0] - 1.0 / 3) < 2e-4);
	CHECK(t, isinf(t->out[0]->data[1]) && isinf(t->out[0]->data[2]));
	CHECK(t, t->out[0]->data[3] == 0);
	definition_destroy(d);
}

void test_clamp(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(5));

	def_output(d, def_ternary(d, OP_CLAMP, x, def_constant(d, IR_DOUBLE, -1),
				  def_constant(d, IR_DOUBLE, 1)));
	def_output(d, def_unary(d, OP_RELU, x));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(5), -2, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(5), VALUES(-1, -1, 0, 1, 1)));
	CHECK(t, test_output_is(t, 1, DIMS(5), VALUES(0, 0, 0, 1, 2)));
	definition_destroy(d);
}

void test_comparison_ops(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_INT, DIMS(3));
	int b = def_tensor(d, IR_INT, DIMS(3));
	int lt = def_binary(d, OP_LT, a, b);
	int gt = def_binary(d, OP_GT, a, b);

	def_output(d, lt);
	def_output(d, def_binary(d, OP_EQ, a, b));
	def_output(d, def_binary(d, OP_OR, lt, gt));
	def_output(d, def_unary(d, OP_NOT, lt));
	test_arg(t, tensor_from(IR_INT, DIMS(3), VALUES(1, 2, 3)));
	test_arg(t, tensor_from(IR_INT, DIMS(3), VALUES(2, 2, 2)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_BOOL);
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(1, 0, 0)));
	CHECK(t, test_output_is(t, 1, DIMS(3), VALUES(0, 1, 0)));
	CHECK(t, test_output_is(t, 2, DIMS(3), VALUES(1, 0, 1)));
	CHECK(t, test_output_is(t, 3, DIMS(3), VALUES(0, 1, 1)));
	definition_destroy(d);
}

void test_constant_nans(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	def_output(d, def_binary(d, OP_ADD, x, def_constant(d, IR_DOUBLE, NAN)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(NAN, NAN)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_define_constants(struct test *t)
{
	struct definition *d = definition_create();

	def_output(d,
		   def_binary(d, OP_ADD, def_constant(d, IR_INT, 2.9), def_constant(d, IR_INT, 3)));
	def_output(d,
		   def_binary(d, OP_AND, def_constant(d, IR_BOOL, 1), def_constant(d, IR_BOOL, 0)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->data[0] == 5 && t->out[0]->dtype == IR_INT);
	CHECK(t, t->out[1]->data[0] == 0);
	definition_destroy(d);
}

void test_dtype_promotion(struct test *t)
{
	struct definition *d = definition_create();
	int i = def_tensor(d, IR_INT, DIMS(2));
	int h = def_tensor(d, IR_HALF, DIMS(2));
	int s = def_constant(d, IR_DOUBLE, 0.5);

	def_output(d, def_binary(d, OP_MUL, i, s));
	def_output(d, def_binary(d, OP_MUL, h, s));
	def_output(d, def_binary(d, OP_ADD, i, h));
	test_arg(t, tensor_arange(IR_INT, DIMS(2), 1, 1));
	test_arg(t, tensor_arange(IR_HALF, DIMS(2), 1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_FLOAT);
	CHECK(t, t->out[1]->dtype == IR_HALF);
	CHECK(t, t->out[2]->dtype == IR_HALF);
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(0.5, 1)));
	definition_destroy(d);
}

void test_gcd(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_INT, DIMS(4));
	int b = def_tensor(d, IR_INT, DIMS(4));

	def_output(d, def_binary(d, OP_GCD, a, b));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(12, 7, 0, -9)));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(18, 5, 4, 6)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(4), VALUES(6, 1, 4, 3)));
	definition_destroy(d);
}

void test_gelu(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3));
	int scaled = def_binary(d, OP_MUL, x, def_constant(d, IR_DOUBLE, M_SQRT1_2));
	int one = def_constant(d, IR_DOUBLE, 1);
	int cdf = def_binary(d, OP_ADD, def_unary(d, OP_ERF, scaled), one);

	def_output(d, def_binary(d, OP_MUL, def_binary(d, OP_MUL, x, cdf),
				 def_constant(d, IR_DOUBLE, 0.5)));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(3), VALUES(-1, 0, 2)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(-0.158655, 0, 1.9545)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

void test_inplace_update(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(3));
	struct tensor *arg;

	def_alias_output(d, def_binary(d, OP_ADD, x, def_constant(d, IR_DOUBLE, 1)), x);
	arg = test_arg(t, tensor_arange(IR_FLOAT, DIMS(3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, tensor_close(arg, VALUES(1, 2, 3)));
	CHECK(t, test_run(t, d));
	CHECK(t, tensor_close(arg, VALUES(2, 3, 4)));
	definition_destroy(d);
}

void test_integer_division(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_INT, DIMS(4));
	int b = def_tensor(d, IR_INT, DIMS(4));

	def_output(d, def_binary(d, OP_DIV, a, b));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(7, -7, 7, -7)));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(2, 2, -2, -2)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(4), VALUES(3, -3, -3, 3)));
	definition_destroy(d);
}

void test_isfinite(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(4));

	def_output(d, def_unary(d, OP_ISFINITE, x));
	def_output(d, def_unary(d, OP_SIGNBIT, x));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(4), VALUES(1, -INFINITY, NAN, -0.0)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(4), VALUES(1, 0, 0, 1)));
	CHECK(t, t->out[1]->data[1] == 1 && t->out[1]->data[3] == 1);
	definition_destroy(d);
}

void test_lerp(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(3));
	int b = def_tensor(d, IR_FLOAT, DIMS(3));

	def_output(d, def_ternary(d, OP_LERP, a, b, def_scalar(d, IR_DOUBLE)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3), 0, 1));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3), 10, 1));
	test_arg(t, tensor_scalar(IR_DOUBLE, 0.25));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(2.5, 3.5, 4.5)));
	definition_destroy(d);
}

void test_mod(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_INT, DIMS(4));
	int b = def_tensor(d, IR_INT, DIMS(4));

	def_output(d, def_binary(d, OP_MOD, a, b));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(7, -7, 7, -7)));
	test_arg(t, tensor_from(IR_INT, DIMS(4), VALUES(3, 3, -3, -3)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(4), VALUES(1, -1, 1, -1)));
	definition_destroy(d);
}

void test_nextafter(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2));
	int b = def_tensor(d, IR_FLOAT, DIMS(2));

	def_output(d, def_binary(d, OP_NEXTAFTER, a, b));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(1, 1)));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(2, 0)));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->data[0] > 1 && t->out[0]->data[1] < 1);
	definition_destroy(d);
}

void test_where(struct test *t)
{
	struct definition *d = definition_create();
	int c = def_tensor(d, IR_BOOL, DIMS(3));
	int a = def_tensor(d, IR_FLOAT, DIMS(3));

	def_output(d, def_ternary(d, OP_WHERE, c, a, def_constant(d, IR_DOUBLE, -1)));
	test_arg(t, tensor_from(IR_BOOL, DIMS(3), VALUES(1, 0, 1)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3), 5, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_FLOAT);
	CHECK(t, test_output_is(t, 0, DIMS(3), VALUES(5, -1, 7)));
	definition_destroy(d);
}
