/*
 * The segmenter's tests: each cuts one or more fusions, checks the cut and runs it.
 *
 * segments_test [--list] [--filter TEXT] [--iterations N]
 */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failures; /* of the running test */

#define CHECK_EQ(got, wanted)                                                                     \
	do {                                                                                      \
		long got_ = (got), wanted_ = (wanted);                                            \
		if (got_ != wanted_) {                                                            \
			printf("%s:%d: Failure\n  %s is %ld, expected %ld\n", __FILE__, __LINE__, \
			       #got, got_, wanted_);                                              \
			failures++;                                                               \
		}                                                                                 \
	} while (0)

#define CASES_MAX 8

/* A test fills in what is compiled and what has to come out. */
struct fusion_case {
	struct fusion *fusion;
	struct val *result;
	long extent; /* of the result */
	int groups;
	int evaluators; /* of those, scalar segments */
};

struct plan {
	struct fusion_case cases[CASES_MAX];
	int count;
};

static void plan_add(struct plan *plan, struct fusion_case fusion_case)
{
	if (plan->count < CASES_MAX)
		plan->cases[plan->count++] = fusion_case;
}

static struct val *pointwise(struct fusion *f, const char *name, struct val *a, struct val *b)
{
	return fusion_apply(f, EXPR_POINTWISE, name, a, b, NULL);
}

static struct val *reduce(struct fusion *f, const char *name, struct val *a)
{
	return fusion_apply(f, EXPR_REDUCE, name, a, NULL, NULL);
}

static struct val *slice(struct fusion *f, const char *name, struct val *a, struct val *first,
			 struct val *last)
{
	return fusion_apply(f, EXPR_SLICE, name, a, first, last);
}

static struct val *pad(struct fusion *f, const char *name, struct val *a, struct val *amount)
{
	return fusion_apply(f, EXPR_PAD, name, a, amount, NULL);
}

static struct val *scalar_add(struct fusion *f, const char *name, struct val *a, struct val *b)
{
	return fusion_apply(f, EXPR_SCALAR_ADD, name, a, b, NULL);
}

static struct val *scalar_mul(struct fusion *f, const char *name, struct val *a, struct val *b)
{
	return fusion_apply(f, EXPR_SCALAR_MUL, name, a, b, NULL);
}

/* A chain of `length` pointwise operations, the first with a scalar factor. */
static void add_chain(struct plan *plan, long extent, int length)
{
	struct fusion *f = fusion_new("pointwise");
	struct val *val = fusion_tensor(f, "x", extent);

	val = pointwise(f, "t0", val, fusion_scalar(f, "k", 3));
	for (int i = 1; i < length; i++)
		val = pointwise(f, "t1", val, NULL);
	plan_add(plan, (struct fusion_case){ f, val, extent, (length + 7) / 8, 0 });
}

/* tensor[first * step : last * step], the bounds computed from scalars. */
static void add_slice(struct plan *plan, long extent, long first, long last, long step)
{
	struct fusion *f = fusion_new("resize");
	struct val *x = fusion_tensor(f, "x", extent);
	struct val *by = fusion_scalar(f, "k", step);
	struct val *from = scalar_mul(f, "s1", fusion_scalar(f, "s0", first), by);
	struct val *to = scalar_mul(f, "s1", fusion_scalar(f, "s0", last), by);

	plan_add(plan, (struct fusion_case){ f, slice(f, "t0", x, from, to), (last - first) * step,
					     3, 2 });
}

static void add_pad(struct plan *plan, long extent, long amount, int times)
{
	struct fusion *f = fusion_new("resize");
	struct val *out = fusion_tensor(f, "x", extent);
	struct val *by = fusion_scalar(f, "k", amount);

	for (int i = 0; i < times; i++)
		out = pad(f, "t0", out, by);
	plan_add(plan, (struct fusion_case){ f, out, extent + times * amount, 1, 0 });
}

/* A normalisation: reduce, then use the result beside the input. */
static void add_norm(struct plan *plan, long extent, bool with_epsilon)
{
	struct fusion *f = fusion_new("norm");
	struct val *x = fusion_tensor(f, "x", extent);
	struct val *total = reduce(f, "t1", pointwise(f, "t0", x, x));

	if (with_epsilon)
		total = pointwise(f, "t2", total, fusion_scalar(f, "k", 1));
	plan_add(plan, (struct fusion_case){ f, pointwise(f, "t0", x, total), extent, 3, 0 });
}

/* Scalar arithmetic alone: `terms` inputs summed up. */
static void add_scalars(struct plan *plan, int terms)
{
	struct fusion *f = fusion_new("scalar");
	struct val *total = fusion_scalar(f, "s0", 1);

	for (int i = 1; i < terms; i++)
		total = scalar_add(f, "s1", total, fusion_scalar(f, "s0", i));
	plan_add(plan, (struct fusion_case){ f, total, 1 + terms * (terms - 1) / 2, terms > 1,
					     terms > 1 });
}

static void test_pointwise_single(struct plan *plan)
{
	add_chain(plan, 48, 1);
}

static void test_pointwise_chain(struct plan *plan)
{
	add_chain(plan, 128, 5);
}

static void test_pointwise_chain_splits(struct plan *plan)
{
	add_chain(plan, 128, 12);
}

static void test_pointwise_sizes(struct plan *plan)
{
	for (long extent = 16; extent <= 65536; extent *= 8)
		add_chain(plan, extent, 3);
}

static void test_scalar_sum(struct plan *plan)
{
	add_scalars(plan, 3);
}

static void test_scalar_alone(struct plan *plan)
{
	add_scalars(plan, 1);
}

static void test_scalar_many(struct plan *plan)
{
	add_scalars(plan, 6);
	add_scalars(plan, 4);
}

static void test_scalar_shared(struct plan *plan)
{
	struct fusion *f = fusion_new("scalar");
	struct val *k = fusion_scalar(f, "k", 4);
	struct val *a = pointwise(f, "t0", fusion_tensor(f, "x", 20), k);
	struct val *b = pointwise(f, "t1", fusion_tensor(f, "x", 20), k);

	plan_add(plan, (struct fusion_case){ f, pointwise(f, "t2", a, b), 20, 1, 0 });
}

static void test_scalar_deep_expression(struct plan *plan)
{
	struct fusion *f = fusion_new("scalar");
	struct val *n = fusion_scalar(f, "s0", 2);
	struct val *m = fusion_scalar(f, "s1", 3);
	struct val *size = n;

	for (int i = 0; i < 4; i++)
		size = scalar_add(f, "s1", scalar_mul(f, "s0", size, n), m);
	plan_add(plan, (struct fusion_case){ f, pad(f, "t0", fusion_tensor(f, "x", 10), size), 87,
					     2, 1 });
}

static void test_slice_static(struct plan *plan)
{
	add_slice(plan, 100, 2, 10, 1);
}

static void test_slice_scaled(struct plan *plan)
{
	add_slice(plan, 4096, 1, 7, 64);
}

static void test_slice_whole(struct plan *plan)
{
	add_slice(plan, 256, 0, 256, 1);
}

static void test_slice_then_pad(struct plan *plan)
{
	struct fusion *f = fusion_new("resize");
	struct val *first = fusion_scalar(f, "s0", 7);
	struct val *last = fusion_scalar(f, "s1", 70);
	struct val *sliced = slice(f, "t0", fusion_tensor(f, "x", 77), first, last);

	plan_add(plan, (struct fusion_case){ f, pad(f, "t1", sliced, first), 70, 1, 0 });
}

static void test_slice_reduce(struct plan *plan)
{
	struct fusion *f = fusion_new("resize");
	struct val *n = fusion_scalar(f, "s0", 5);
	struct val *sliced =
		slice(f, "t0", fusion_tensor(f, "x", 640), n, scalar_add(f, "s1", n, n));

	plan_add(plan, (struct fusion_case){ f, reduce(f, "t1", sliced), 1, 3, 1 });
}

static void test_pad_once(struct plan *plan)
{
	add_pad(plan, 30, 2, 1);
}

static void test_pad_repeated(struct plan *plan)
{
	add_pad(plan, 30, 3, 4);
}

static void test_norm_plain(struct plan *plan)
{
	add_norm(plan, 512, false);
}

static void test_norm_epsilon(struct plan *plan)
{
	add_norm(plan, 512, true);
}

static void test_norm_sizes(struct plan *plan)
{
	for (long extent = 32; extent <= 2048; extent *= 4)
		add_norm(plan, extent, true);
}

static void test_two_branches(struct plan *plan)
{
	struct fusion *f = fusion_new("merge");
	struct val *x = fusion_tensor(f, "x", 48);
	struct val *left = pointwise(f, "t0", x, fusion_scalar(f, "k", 2));
	struct val *right = reduce(f, "t1", pointwise(f, "t2", x, x));

	plan_add(plan, (struct fusion_case){ f, pointwise(f, "t0", left, right), 48, 3, 0 });
}

static void test_diamond(struct plan *plan)
{
	struct fusion *f = fusion_new("merge");
	struct val *top = pointwise(f, "t0", fusion_tensor(f, "x", 96), fusion_scalar(f, "k", 2));
	struct val *side = reduce(f, "t1", top);

	plan_add(plan, (struct fusion_case){ f, pointwise(f, "t2", top, side), 96, 3, 0 });
}

static void test_reduction_tree(struct plan *plan)
{
	struct fusion *f = fusion_new("merge");
	struct val *x = fusion_tensor(f, "x", 4000);

	plan_add(plan, (struct fusion_case){ f, reduce(f, "t1", reduce(f, "t0", x)), 1, 2, 0 });
}

static void test_mixed_program(struct plan *plan)
{
	add_slice(plan, 900, 3, 9, 10);
	add_norm(plan, 900, true);
	add_pad(plan, 900, 10, 2);
	add_chain(plan, 900, 9);
}

static void test_same_program_twice(struct plan *plan)
{
	add_chain(plan, 1000, 2);
	add_chain(plan, 1001, 2);
}

static const struct test {
	const char *name;
	void (*fill)(struct plan *plan);
} tests[] = {
	{ "PointwiseTest.Single", test_pointwise_single },
	{ "PointwiseTest.Chain", test_pointwise_chain },
	{ "PointwiseTest.ChainSplits", test_pointwise_chain_splits },
	{ "PointwiseTest.Sizes", test_pointwise_sizes },
	{ "ScalarTest.Sum", test_scalar_sum },
	{ "ScalarTest.Alone", test_scalar_alone },
	{ "ScalarTest.Many", test_scalar_many },
	{ "ScalarTest.Shared", test_scalar_shared },
	{ "ScalarTest.DeepExpression", test_scalar_deep_expression },
	{ "ResizeTest.SliceStatic", test_slice_static },
	{ "ResizeTest.SliceScaled", test_slice_scaled },
	{ "ResizeTest.SliceWhole", test_slice_whole },
	{ "ResizeTest.SliceThenPad", test_slice_then_pad },
	{ "ResizeTest.SliceReduce", test_slice_reduce },
	{ "ResizeTest.PadOnce", test_pad_once },
	{ "ResizeTest.PadRepeated", test_pad_repeated },
	{ "NormTest.Plain", test_norm_plain },
	{ "NormTest.Epsilon", test_norm_epsilon },
	{ "NormTest.Sizes", test_norm_sizes },
	{ "MergeTest.TwoBranches", test_two_branches },
	{ "MergeTest.Diamond", test_diamond },
	{ "MergeTest.ReductionTree", test_reduction_tree },
	{ "CacheTest.SameProgramTwice", test_same_program_twice },
	{ "CacheTest.MixedProgram", test_mixed_program },
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void run_case(const struct fusion_case *wanted)
{
	const struct segmentation *s = runtime_compile(wanted->fusion, wanted->result);

	CHECK_EQ(s->group_count, wanted->groups);
	CHECK_EQ(segmentation_count(s, SCHEDULER_EVALUATOR), wanted->evaluators);
	CHECK_EQ(segmentation_infer(s, wanted->result), wanted->extent);
}

/* Returns whether the test passed. */
static bool run_test(const struct test *test)
{
	struct plan plan = { .count = 0 };
	double start = now_ms();

	printf("[ RUN      ] %s\n", test->name);
	fflush(stdout);
	failures = 0;
	test->fill(&plan);
	for (int i = 0; i < plan.count; i++)
		run_case(&plan.cases[i]);
	printf("%s %s (%.0f ms)\n", failures ? "[  FAILED  ]" : "[       OK ]", test->name,
	       now_ms() - start);
	fflush(stdout);
	return failures == 0;
}

static int usage(void)
{
	fputs("usage: segments_test [--list] [--filter TEXT] [--iterations N]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	const char *filter = "";
	long iterations = 1;
	int passed = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0) {
			for (size_t t = 0; t < TEST_COUNT; t++)
				puts(tests[t].name);
			return 0;
		}
		if (i + 1 == argc)
			return usage();
		if (strcmp(argv[i], "--filter") == 0)
			filter = argv[++i];
		else if (strcmp(argv[i], "--iterations") == 0)
			iterations = strtol(argv[++i], NULL, 10);
		else
			return usage();
	}
	printf("[==========] Running %zu tests, %ld iterations.\n", TEST_COUNT, iterations);
	for (long n = 0; n < iterations; n++) {
		for (size_t t = 0; t < TEST_COUNT; t++) {
			if (!strstr(tests[t].name, filter))
				continue;
			if (run_test(&tests[t]))
				passed++;
			else
				failed++;
		}
	}
	printf("[==========] %d tests ran. %d kernels compiled, %d cached.\n", passed + failed,
	       kernels_compiled(), kernels_cached());
	printf("[  PASSED  ] %d tests.\n", passed);
	if (failed)
		printf("[  FAILED  ] %d tests.\n", failed);
	cache_clear();
	return failed ? 1 : 0;
}
