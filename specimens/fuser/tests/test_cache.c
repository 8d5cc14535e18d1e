/* The executor cache, and definitions on their way through the serializer. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static struct definition *scaled_by(double factor)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	def_output(d, def_binary(d, OP_MUL, x, def_constant(d, IR_DOUBLE, factor)));
	return d;
}

void test_definition_error(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	CHECK(t, def_unary(d, OP_NEG, 5) == -1);
	def_output(d, x);
	CHECK(t, !definition_replay(d, "undefined value"));
	definition_destroy(d);

	d = definition_create();
	x = def_tensor(d, IR_FLOAT, DIMS(2));
	def_output(d, def_binary(d, OP_ADD, x, def_tensor(d, IR_FLOAT, DIMS(3))));
	test_arg(t, tensor_create(IR_FLOAT, DIMS(2)));
	test_arg(t, tensor_create(IR_FLOAT, DIMS(3)));
	CHECK(t, !test_run(t, d));
	CHECK(t, !executor_cache_find(t->cache, d));
	definition_destroy(d);
}

void test_definition_hash(struct test *t)
{
	struct definition *a = scaled_by(2), *b = scaled_by(2), *c = scaled_by(3);

	CHECK(t, definition_hash(a) == definition_hash(b));
	CHECK(t, definition_hash(a) != definition_hash(c));
	CHECK(t, definition_equal(a, b) && !definition_equal(a, c));
	definition_destroy(a);
	definition_destroy(b);
	definition_destroy(c);
}

void test_execute_with_many_outputs(struct test *t)
{
	struct definition *d = definition_create();
	int x = def_tensor(d, IR_FLOAT, DIMS(2));

	for (int i = 0; i < MAX_OUTPUTS; i++)
		def_output(d, def_binary(d, OP_ADD, x, def_constant(d, IR_DOUBLE, i)));
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 0, 1));
	CHECK(t, test_run(t, d));
	for (int i = 0; i < MAX_OUTPUTS; i++)
		CHECK(t, test_output_is(t, i, DIMS(2), VALUES(i, i + 1.0)));
	definition_destroy(d);
}

void test_fusion_cache_eviction(struct test *t)
{
	struct executor_cache *cache = executor_cache_create(3);
	struct definition *d[5];

	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	for (int i = 0; i < 5; i++) {
		d[i] = scaled_by(i);
		CHECK(t, test_run_on(t, cache, d[i]));
	}
	CHECK(t, cache->count == 3 && cache->stats.evictions == 2);
	CHECK(t, !executor_cache_find(cache, d[0]) && !executor_cache_find(cache, d[1]));
	CHECK(t, executor_cache_find(cache, d[2]) && executor_cache_find(cache, d[4]));
	for (int i = 0; i < 5; i++)
		definition_destroy(d[i]);
	executor_cache_destroy(cache);
}

void test_fusion_cache_hit(struct test *t)
{
	struct executor_cache *cache = executor_cache_create(3);
	struct definition *a = scaled_by(2), *b = scaled_by(2);

	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	CHECK(t, test_run_on(t, cache, a));
	CHECK(t, test_run_on(t, cache, b));
	CHECK(t, cache->stats.misses == 1 && cache->stats.hits == 1);
	CHECK(t, test_output_is(t, 0, DIMS(2), VALUES(2, 4)));
	definition_destroy(a);
	definition_destroy(b);
	executor_cache_destroy(cache);
}

void test_fusion_cache_promotion(struct test *t)
{
	struct executor_cache *cache = executor_cache_create(1);
	struct definition *often = scaled_by(2), *once = scaled_by(3), *last = scaled_by(4);

	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	for (int i = 0; i < CACHE_PROMOTE_RUNS; i++)
		CHECK(t, test_run_on(t, cache, often));
	CHECK(t, executor_cache_hot_count(cache) == 1);
	CHECK(t, cache->lane[SCHED_POINTWISE] && !cache->packed);
	CHECK(t, test_run_on(t, cache, once));
	CHECK(t, test_run_on(t, cache, last));
	CHECK(t, executor_cache_find(cache, often) && !executor_cache_find(cache, once));
	definition_destroy(often);
	definition_destroy(once);
	definition_destroy(last);
	executor_cache_destroy(cache);
}

void test_record_roundtrip(struct test *t)
{
	struct definition *d = definition_create(), *copy;
	int x = def_tensor(d, IR_FLOAT, DIMS(IR_DYNAMIC, 4));
	int index = def_tensor(d, IR_INT, DIMS(2));
	int y = def_index(d, OP_INDEX_SELECT, x, index, 1);
	struct buffer b;

	def_stride_order(d, y, DIMS(1, 0));
	def_output(d, def_ternary(d, OP_CLAMP, y, def_constant(d, IR_DOUBLE, -0.5),
				  def_constant(d, IR_DOUBLE, 0.5)));
	buffer_init(&b);
	definition_write(d, &b);
	copy = definition_read(&b);
	CHECK(t, copy && definition_equal(d, copy));
	CHECK(t, copy->next == d->next && b.cursor == b.size);
	definition_destroy(copy);
	definition_destroy(d);
	buffer_deinit(&b);
}

void test_serialize_damaged(struct test *t)
{
	struct executor_cache *cache = executor_cache_create(4), *other;
	struct definition *d = scaled_by(5);
	struct buffer b;
	size_t size;

	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	CHECK(t, test_run_on(t, cache, d));
	buffer_init(&b);
	executor_cache_serialize(cache, &b);
	size = b.size;
	for (size_t cut = 0; cut < size; cut += 7) {
		other = executor_cache_create(4);
		b.cursor = 0;
		b.short_read = false;
		b.size = cut;
		CHECK(t, !executor_cache_deserialize(other, &b));
		executor_cache_destroy(other);
	}
	b.cursor = 0;
	b.short_read = false;
	b.size = size;
	b.data[0] ^= 1;
	CHECK(t, !executor_cache_deserialize(cache, &b));
	buffer_deinit(&b);
	definition_destroy(d);
	executor_cache_destroy(cache);
}

void test_serialize_to_file(struct test *t)
{
	struct executor_cache *cache = executor_cache_create(4);
	struct executor_cache *other = executor_cache_create(4);
	struct definition *a = scaled_by(6), *b = scaled_by(7);
	const char *dir = getenv("TMPDIR");
	char path[4096];
	struct buffer out, in;
	int fd;

	snprintf(path, sizeof(path), "%s/fuser-cache-XXXXXX", dir && *dir ? dir : "/tmp");
	fd = mkstemp(path);
	CHECK(t, fd >= 0);
	close(fd);
	test_arg(t, tensor_arange(IR_FLOAT, DIMS(2), 1, 1));
	CHECK(t, test_run_on(t, cache, a) && test_run_on(t, cache, b));
	buffer_init(&out);
	executor_cache_serialize(cache, &out);
	CHECK(t, buffer_save(&out, path));
	buffer_init(&in);
	CHECK(t, buffer_load(&in, path));
	unlink(path);
	CHECK(t, executor_cache_deserialize(other, &in));
	CHECK(t, other->count == 2 && executor_cache_find(other, b));
	CHECK(t, test_run_on(t, other, a));
	CHECK(t, other->stats.misses == 2);
	buffer_deinit(&in);
	buffer_deinit(&out);
	definition_destroy(a);
	definition_destroy(b);
	executor_cache_destroy(cache);
	executor_cache_destroy(other);
}
