/*
 * Who schedules what: resizes pushed to the inputs, pointwise fusions, normalisations.
 */
#include "tests.h"

/* `slices` slices of one computed tensor, added up: each should be taken from the input. */
static void propagate_slices(struct test_run *t, const char *name, int slices, int64_t step)
{
	struct fusion *f = fusion_new(name);
	int x = matrix(f, DT_BF16, 8, 64), sum = -1;
	int y = fusion_unary(f, OP_EXP, fusion_cast(f, x, DT_F32));

	for (int i = 0; i < slices; i++) {
		int s = fusion_slice(f, y, 1, i * step, 32 + i * step);

		s = fusion_scalar(f, OP_SCALE, fusion_slice(f, s, 1, 4, 28), 0.25 * (i + 1));
		sum = sum < 0 ? s : fusion_binary(f, OP_ADD, sum, s);
	}
	fusion_output(f, fusion_cast(f, sum, DT_BF16));
	expect_schedule(t, f, SCHED_RESIZE, 1);
}

static void propagate_slice(struct test_run *t)
{
	propagate_slices(t, "SliceToInputs", 1, 0);
}

static void propagate_multiple1(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs1", 2, 2);
}

static void propagate_multiple2(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs2", 3, 2);
}

static void propagate_multiple3(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs3", 4, 4);
}

static void propagate_multiple4(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs4", 5, 4);
}

static void propagate_multiple5(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs5", 6, 3);
}

static void propagate_multiple6(struct test_run *t)
{
	propagate_slices(t, "SlicesToInputs6", 8, 4);
}

static void propagate_pad(struct test_run *t)
{
	struct fusion *f = fusion_new("PadToInputs");
	int a = fusion_cast(f, matrix(f, DT_BF16, 8, 32), DT_F32);
	int b = fusion_unary(f, OP_NEG, matrix(f, DT_F32, 8, 32));

	a = fusion_pad(f, a, 1, 2, 6);
	b = fusion_pad(f, b, 1, 6, 2);
	fusion_output(f, fusion_binary(f, OP_MUL, a, b));
	expect_schedule(t, f, SCHED_RESIZE, 1);
}

static void cast_chain(struct test_run *t)
{
	struct fusion *f = fusion_new("CastChain");
	int x = matrix(f, DT_BF16, 16, 16);
	struct runtime *rt;

	x = fusion_cast(f, fusion_cast(f, fusion_cast(f, x, DT_F32), DT_F64), DT_BF16);
	fusion_output(f, fusion_unary(f, OP_NEG, x));
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt) {
		EXPECT_EQ(t, count_kind(rt, OP_CAST), 0);
		EXPECT_EQ(t, rt->schedule.scheduler, SCHED_POINTWISE);
	}
	runtime_free(rt);
}

static void narrowing_cast(struct test_run *t)
{
	struct fusion *f = fusion_new("NarrowingCast");
	int x = fusion_cast(f, matrix(f, DT_F64, 16, 16), DT_BF16);
	struct runtime *rt;

	fusion_output(f, fusion_cast(f, x, DT_F32));
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt)
		EXPECT_EQ(t, count_kind(rt, OP_CAST), 2);
	runtime_free(rt);
}

static void broadcast(struct test_run *t)
{
	struct fusion *f = fusion_new("Broadcast");
	int x = matrix(f, DT_F32, 16, 48), bias = matrix(f, DT_F32, 1, 48);
	struct runtime *rt;

	fusion_output(f, fusion_binary(f, OP_ADD, x, bias));
	rt = compile_and_compare(t, f, SCHED_POINTWISE);
	if (rt)
		EXPECT_EQ(t, rt->schedule.vectorize, 8);
	runtime_free(rt);
}

static void softmax(struct test_run *t)
{
	struct fusion *f = fusion_new("Softmax");
	int x = matrix(f, DT_F32, 8, 128);
	int e = fusion_unary(f, OP_EXP, fusion_binary(f, OP_SUB, x, fusion_reduce(f, OP_MAX, x)));
	int s = fusion_reduce(f, OP_SUM, e);

	/* 1/s as the square of the reciprocal square root */
	s = fusion_unary(f, OP_RSQRT, fusion_binary(f, OP_MUL, s, s));
	fusion_output(f, fusion_binary(f, OP_MUL, e, s));
	runtime_free(compile_and_compare(t, f, SCHED_INNER_PERSISTENT));
}

static void plain_reduction(struct test_run *t)
{
	struct fusion *f = fusion_new("Reduction");
	int x = matrix(f, DT_BF16, 8, 256);

	fusion_output(f, fusion_reduce(f, OP_SUM, fusion_cast(f, x, DT_F32)));
	runtime_free(compile_and_compare(t, f, SCHED_REDUCTION));
}

#define HIDDEN 8192

static void layer_normalization(struct test_run *t)
{
	struct fusion *f = fusion_new("LayerNormalization");
	int x = matrix(f, DT_F64, 1, HIDDEN);
	int weight = matrix(f, DT_F64, 1, HIDDEN), bias = matrix(f, DT_F64, 1, HIDDEN);
	int mean = fusion_scalar(f, OP_SCALE, fusion_reduce(f, OP_SUM, x), 1.0 / HIDDEN);
	int centred = fusion_binary(f, OP_SUB, x, mean);
	int var = fusion_reduce(f, OP_SUM, fusion_binary(f, OP_MUL, centred, centred));
	int y;

	var = fusion_scalar(f, OP_OFFSET, fusion_scalar(f, OP_SCALE, var, 1.0 / HIDDEN), 1e-5);
	y = fusion_binary(f, OP_MUL, centred, fusion_unary(f, OP_RSQRT, var));
	fusion_output(f, fusion_binary(f, OP_ADD, fusion_binary(f, OP_MUL, y, weight), bias));
	runtime_free(compile_and_compare(t, f, SCHED_INNER_PERSISTENT));
}

static void rms_normalization(struct test_run *t)
{
	struct fusion *f = fusion_new("RMSNormalization");
	int x = matrix(f, DT_F64, 1, HIDDEN), weight = matrix(f, DT_F64, 1, HIDDEN);
	int square = fusion_reduce(f, OP_SUM, fusion_binary(f, OP_MUL, x, x));
	int y;

	square = fusion_scalar(f, OP_SCALE, square, 1.0 / HIDDEN);
	square = fusion_unary(f, OP_RSQRT, fusion_scalar(f, OP_OFFSET, square, 1e-5));
	y = fusion_binary(f, OP_MUL, x, square);
	fusion_output(f, fusion_binary(f, OP_MUL, y, weight));
	runtime_free(compile_and_compare(t, f, SCHED_INNER_PERSISTENT));
}

const struct test_case scheduler_tests[] = {
	{ "ResizeSchedulerTest", "PropagateSliceToInputs", propagate_slice },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs1", propagate_multiple1 },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs2", propagate_multiple2 },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs3", propagate_multiple3 },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs4", propagate_multiple4 },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs5", propagate_multiple5 },
	{ "ResizeSchedulerTest", "PropagateMultipleSlicesToInputs6", propagate_multiple6 },
	{ "ResizeSchedulerTest", "PropagatePadToInputs", propagate_pad },
	{ "PointwiseTest", "CastChain", cast_chain },
	{ "PointwiseTest", "NarrowingCast", narrowing_cast },
	{ "PointwiseTest", "SchedulerBroadcast", broadcast },
	{ "NVFuserTest", "FusionReductionScheduler_CUDA", plain_reduction },
	{ "NVFuserTest", "FusionMagicSchedulerSoftmax_CUDA", softmax },
	{ "NVFuserTest", "FusionMagicSchedulerLayerNormalization_CUDA", layer_normalization },
	{ "NVFuserTest", "FusionMagicSchedulerRMSNormalization_CUDA", rms_normalization },
};
const int scheduler_tests_count = sizeof(scheduler_tests) / sizeof(scheduler_tests[0]);
