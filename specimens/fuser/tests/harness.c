#include "harness.h"

#include <string.h>

void test_fail(struct test *t, const char *file, int line, const char *what)
{
	printf("%s:%d: %s: check failed: %s\n", file, line, t->name, what);
	t->failed = true;
}

static void drop_outputs(struct test *t)
{
	for (int i = 0; i < MAX_OUTPUTS; i++) {
		tensor_destroy(t->out[i]);
		t->out[i] = NULL;
	}
}

void test_reset(struct test *t)
{
	drop_outputs(t);
	for (int i = 0; i < t->nargs; i++)
		tensor_destroy(t->args[i]);
	t->nargs = 0;
}

struct tensor *test_arg(struct test *t, struct tensor *arg)
{
	t->args[t->nargs++] = arg;
	return arg;
}

bool test_run_on(struct test *t, struct executor_cache *cache, const struct definition *d)
{
	drop_outputs(t);
	return executor_cache_run(cache, d, t->args, t->nargs, t->out);
}

bool test_run(struct test *t, const struct definition *d)
{
	return test_run_on(t, t->cache, d);
}

bool test_output_is(const struct test *t, int i, int rank, const int64_t *size,
		    const double *values)
{
	const struct tensor *out = t->out[i];

	if (!out || out->rank != rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (out->size[d] != size[d])
			return false;
	return tensor_close(out, values);
}

bool test_serde(struct test *t, const struct definition *d)
{
	struct executor_cache *fresh = executor_cache_create(CACHE_DEFAULT_COLD);
	struct tensor *again[MAX_OUTPUTS] = { NULL };
	struct definition *copy;
	struct buffer b;
	bool ok;

	buffer_init(&b);
	definition_write(d, &b);
	copy = definition_read(&b);
	ok = copy && definition_equal(copy, d) &&
	     executor_cache_run(fresh, copy, t->args, t->nargs, again);
	for (int i = 0; i < MAX_OUTPUTS; i++) {
		if (ok && t->out[i])
			ok = again[i] && tensor_close(again[i], t->out[i]->data);
		tensor_destroy(again[i]);
	}
	definition_destroy(copy);
	buffer_deinit(&b);
	executor_cache_destroy(fresh);
	return ok;
}
