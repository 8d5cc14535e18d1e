#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

int matrix(struct fusion *f, enum dtype dtype, int64_t rows, int64_t columns)
{
	return fusion_input(f, dtype, 2, (const int64_t[]){ rows, columns });
}

struct runtime *compile_and_compare(struct test_run *t, struct fusion *f, enum scheduler wanted)
{
	int *order = calloc((size_t)f->nops + 1, sizeof(*order));
	struct result expected, got;
	struct runtime *rt = NULL;
	struct diag diag;

	if (!order)
		abort();
	eval_fusion(f, order, fusion_order(f, order), &expected);
	if (runtime_new(t->compiler, f, wanted, &rt, &diag) < 0) {
		FAIL(t, diag.text);
	} else {
		runtime_run(rt, &got);
		EXPECT_TRUE(t, result_equal(&expected, &got, 1e-6));
		result_deinit(&got);
	}
	result_deinit(&expected);
	free(order);
	return rt;
}

void expect_schedule(struct test_run *t, struct fusion *f, enum scheduler scheduler, int segments)
{
	struct runtime *rt = compile_and_compare(t, f, SCHED_COUNT);

	if (!rt)
		return;
	EXPECT_EQ(t, rt->schedule.scheduler, scheduler);
	EXPECT_EQ(t, rt->schedule.segments, segments);
	runtime_free(rt);
}

int count_kind(const struct runtime *rt, enum op_kind kind)
{
	int n = 0;

	for (int i = 0; i < rt->norder; i++)
		n += rt->fusion->ops[rt->order[i]].kind == kind;
	return n;
}

static void usage(void)
{
	printf("Usage: presegment_tests [options]\n\n"
	       "  --gtest_list_tests       list the selected tests and do not run them\n"
	       "  --gtest_filter=PATTERNS  run the tests that match POSITIVE[:...][-NEGATIVE[:...]],\n"
	       "                           with * for anything and ? for one character\n"
	       "%s"
	       "  --help                   show this\n",
	       cache_options_help);
}

static int wrong(const char *what)
{
	fprintf(stderr, "presegment_tests: %s (try --help)\n", what);
	return 2;
}

int main(int argc, char **argv)
{
	struct test_case *cases;
	struct cache_options options;
	struct compiler compiler = { .device = compiler_device() };
	const char *filter = NULL;
	struct diag diag;
	bool list = false;
	int failed;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (cache_options_init(&options, &diag) < 0)
		return wrong(diag.text);
	for (int i = 1; i < argc; i++) {
		int r = cache_options_parse(&options, argv, &i, &diag);

		if (r < 0)
			return wrong(diag.text);
		if (r > 0)
			continue;
		if (strncmp(argv[i], "--gtest_filter=", 15) == 0) {
			filter = argv[i] + 15;
		} else if (strcmp(argv[i], "--gtest_list_tests") == 0) {
			list = true;
		} else if (strcmp(argv[i], "--help") == 0) {
			usage();
			return 0;
		} else {
			diag_set(&diag, 0, "unknown argument '%s'", argv[i]);
			return wrong(diag.text);
		}
	}
	cases = calloc((size_t)(resize_tests_count + scheduler_tests_count + 1), sizeof(*cases));
	if (!cases)
		abort();
	memcpy(cases, resize_tests, (size_t)resize_tests_count * sizeof(*cases));
	memcpy(cases + resize_tests_count, scheduler_tests,
	       (size_t)scheduler_tests_count * sizeof(*cases));
	if (list) {
		harness_list(cases, filter);
		free(cases);
		return 0;
	}
	if (options.mode != CACHE_OFF &&
	    cache_open(&options, compiler.device, &compiler.cache, &diag) < 0)
		fprintf(stderr, "presegment_tests: %s; going on without\n", diag.text);
	failed = harness_run(cases, filter, &compiler);
	cache_close(compiler.cache);
	free(cases);
	return failed ? 1 : 0;
}
