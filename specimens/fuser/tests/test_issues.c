/* One test per bug report. */
#include <math.h>

#include "harness.h"
#include "pass.h"

/* A sum of booleans came out as a boolean. */
void test_issue1018(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(4));
	int positive = def_binary(d, OP_GT, x, def_constant(d, IR_DOUBLE, 0));

	def_output(d, def_reduce(d, OP_SUM, positive, 1, false));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(4), -1, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->dtype == IR_INT && t->out[0]->data[0] == 2);
	definition_destroy(d);
}

/* An output that is an input lost its stride order. */
void test_issue1082(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 1));

	def_stride_order(d, x, DIMS(1, 0));
	def_output(d, x);
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 1), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, t->out[0]->stride_order[0] == 1);
	definition_destroy(d);
}

/* The same value as two outputs. */
void test_issue1110(struct test *t)
{
	struct definition *d = definition_create();
	int y = def_unary(d, OP_FLOOR, def_tensor(d, IR_FLOAT, DIMS(2)));

	def_output(d, y);
	def_output(d, y);
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(1.5, -1.5)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(1, -2)));
	CHECK(t, test_output_is(t, 1, DIMS(2), VALUES(1, -2)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

/* Slicing an extent that is not known yet. */
void test_issue1144(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC, 2));

	def_output(d, def_unary(d, OP_CEIL, def_view(d, OP_SLICE, x, DIMS(1, 2, 0, 2))));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(3, 2), 0.5, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(1, 2), VALUES(3, 4)));
	test_reset(t);
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(1, 2), 0.5, 1));
	CHECK(t, !test_run(t, d));
	definition_destroy(d);
}

/* A chain of views over a sum. */
void test_issue1173(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2, 3));
	int s = def_reduce(d, OP_SUM, x, 1u << 0, false);
	int wide = def_view(d, OP_BROADCAST, s, DIMS(2, 3, 1u << 1));

	def_output(d, def_view(d, OP_RESHAPE, wide, DIMS(3, 2)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 3), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(3, 2), VALUES(3, 5, 7, 3, 5, 7)));
	definition_destroy(d);
}

/* Arguments of the wrong type or number were taken. */
void test_issue1191(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	def_output(d, def_unary(d, OP_SIGMOID, x));
	CHECK(t, !test_run(t, d));
	test_arg(t, tensor_arange(IR_INT, DIMS(2), 0, 1));
	CHECK(t, !test_run(t, d));
	test_reset(t);
	test_arg(t, tensor_create(IR_FLOAT, DIMS(2)));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(0.5, 0.5)));
	definition_destroy(d);
}

/* Compacting gave an aliased output to the wrong input. */
void test_issue1205(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2));
	int b = def_tensor(d, IR_FLOAT, DIMS(2));
	struct ir_container *c, *small;

	def_alias_output(d, def_binary(d, OP_SUB, a, b), b);
	def_alias_output(d, def_binary(d, OP_SUB, b, a), a);
	c = definition_replay(d, "two aliases");
	small = ir_container_create(IR_KIND_FUSION, "small");
	CHECK(t, c && pass_compact(c, small));
	CHECK(t, small->storage->aliases.count == 2);
	CHECK(t, small->storage->aliases.at[0].input == small->storage->inputs.at[1]);
	CHECK(t, small->storage->aliases.at[1].output == small->storage->outputs.at[1]);
	ir_container_destroy(c);
	ir_container_destroy(small);
	definition_destroy(d);
}

/* log of a sum of exponentials, with large arguments. */
void test_issue1233(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_DOUBLE, DIMS(3));
	int top = def_reduce(d, OP_AMAX, x, 1, true);
	int e = def_unary(d, OP_EXP, def_binary(d, OP_SUB, x, top));
	int sum = def_reduce(d, OP_SUM, e, 1, true);

	def_output(d, def_binary(d, OP_ADD, def_unary(d, OP_LOG, sum), top));
	test_arg(t, tensor_from(IR_DOUBLE, DIMS(3), VALUES(900, 900, 900)));
	CHECK(t, test_run(t, d));
	CHECK(t, fabs(t->out[0]->data[0] - (900 + log(3))) < 1e-9);
	definition_destroy(d);
}

/* Concatenating something empty. */
void test_issue1246(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2, 0));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 2));

	def_output(d, def_binary(d, OP_MUL, def_cat(d, a, b, 1), def_constant(d, IR_DOUBLE, 2)));
	test_arg(t, tensor_create(IR_FLOAT, DIMS(2, 0)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(0, 2, 4, 6)));
	CHECK(t, test_serde(t, d));
	definition_destroy(d);
}

/* A session that loads its own saved cache lost the concrete extents. */
void test_issue1270(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC, IR_DYNAMIC));
	int rows = def_reduce(d, OP_SUM, x, 1u << 1, true);
	struct cache_entry *entry;
	struct buffer b;

	def_output(d, def_binary(d, OP_DIV, x, rows));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2, 2), VALUES(1, 1, 1, 3)));
	CHECK(t, test_run(t, d));

	buffer_init(&b);
	executor_cache_serialize(t->cache, &b);
	CHECK(t, executor_cache_deserialize(t->cache, &b));
	CHECK(t, b.cursor == b.size);
	buffer_deinit(&b);

	entry = executor_cache_find(t->cache, d);
	CHECK(t, entry && entry->concrete && entry->nsizes == 2);
	CHECK(t, entry->concrete->storage->outputs.at[0]->extent[0] == 2);
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(0.5, 0.5, 0.25, 0.75)));
	definition_destroy(d);
}

/* A scalar that nothing uses had no slot among the arguments. */
void test_issue1279(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	def_scalar(d, IR_INT);
	def_output(d, def_unary(d, OP_SIGN, x));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2), VALUES(-3, 4)));
	test_arg(t, tensor_scalar(IR_INT, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(-1, 1)));
	definition_destroy(d);
}

/* Half precision sums overflowed between two casts. */
void test_issue1310(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_cast(d, def_tensor(d, IR_HALF, DIMS(3)), IR_FLOAT);
	int s = def_reduce(d, OP_SUM, x, 1, false);

	def_output(d,
		   def_cast(d, def_binary(d, OP_DIV, s, def_constant(d, IR_DOUBLE, 4)), IR_HALF));
	test_arg(t, tensor_from(IR_HALF, DIMS(3), VALUES(40000, 40000, 40000)));
	CHECK(t, test_run(t, d));
	CHECK(t, fabs(t->out[0]->data[0] - 30000) < 20);
	definition_destroy(d);
}

/* Broadcasting a permuted operand used its old extents. */
void test_issue1393(struct test *t)
{
	struct definition *d = definition_create();
	int a = def_tensor(d, IR_FLOAT, DIMS(2, 1));
	int b = def_tensor(d, IR_FLOAT, DIMS(2, 2));

	def_output(d, def_binary(d, OP_ADD, def_view(d, OP_PERMUTE, a, DIMS(1, 0)), b));
	test_arg(t, tensor_from(IR_FLOAT, DIMS(2, 1), VALUES(10, 20)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2, 2), 0, 1));
	CHECK(t, test_run(t, d));
	CHECK(t, test_output_is(t, 0, DIMS(2, 2), VALUES(10, 21, 12, 23)));
	definition_destroy(d);
}
