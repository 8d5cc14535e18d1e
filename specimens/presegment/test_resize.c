/*
 * Fusions that change extents: slices, pads, repeats, and what is reduced from them.
 */
#include "tests.h"

static void pad1(struct test_run *t)
{
	struct fusion *f = fusion_new("Pad1");
	int x = matrix(f, DT_F32, 9, 17);

	fusion_output(f, fusion_pad(f, fusion_unary(f, OP_EXP, x), 1, 1, 2));
	expect_schedule(t, f, SCHED_RESIZE, 1);
}

static void pad_moves_up(struct test_run *t)
{
	struct fusion *f = fusion_new("PadMovesUp");
	int x = matrix(f, DT_BF16, 12, 20);
	int y = fusion_scalar(f, OP_SCALE, fusion_cast(f, x, DT_F32), 0.5);
	struct runtime *rt;

	fusion_output(f, fusion_pad(f, fusion_unary(f, OP_NEG, y), 0, 3, 3));
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt) {
		/* The last operation is the negation now, not the pad. */
		EXPECT_EQ(t, rt->fusion->ops[rt->fusion->outputs[0]].kind, OP_NEG);
		EXPECT_EQ(t, count_kind(rt, OP_PAD), 1);
	}
	runtime_free(rt);
}

static void slice1(struct test_run *t)
{
	struct fusion *f = fusion_new("Slice1");
	int x = matrix(f, DT_F32, 9, 24);

	fusion_output(f, fusion_slice(f, x, 1, 1, 23));
	expect_schedule(t, f, SCHED_RESIZE, 1);
}

static void slice_merge(struct test_run *t)
{
	struct fusion *f = fusion_new("SliceMerge");
	int x = matrix(f, DT_F32, 8, 40);
	struct runtime *rt;

	for (int i = 0; i < 4; i++)
		x = fusion_slice(f, x, 1, 2, 38 - 4 * i);
	fusion_output(f, x);
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt)
		EXPECT_EQ(t, count_kind(rt, OP_SLICE), 1);
	runtime_free(rt);
}

static void slice_empty(struct test_run *t)
{
	struct fusion *f = fusion_new("SliceEmpty");
	int x = matrix(f, DT_F32, 8, 16);

	x = fusion_pad(f, fusion_slice(f, x, 0, 0, 8), 1, 0, 0);
	fusion_output(f, fusion_unary(f, OP_NEG, fusion_repeat(f, x, 1)));
	expect_schedule(t, f, SCHED_POINTWISE, 1);
}

static void slice_reduce_scheduler1(struct test_run *t)
{
	struct fusion *f = fusion_new("SliceReduce1");
	int x = matrix(f, DT_F32, 16, 64);

	fusion_output(f, fusion_reduce(f, OP_SUM, fusion_slice(f, x, 1, 4, 60)));
	expect_schedule(t, f, SCHED_REDUCTION, 1);
}

/* `slices` overlapping windows of a repeated and padded input; each is normalised by its row sum,
 * and their sum is reduced again. */
static struct fusion *windows(const char *name, int64_t rows, int64_t columns, int slices)
{
	struct fusion *f = fusion_new(name);
	int x = fusion_cast(f, fusion_cast(f, matrix(f, DT_BF16, rows, columns), DT_F32), DT_F64);
	int wide = fusion_pad(f, fusion_repeat(f, x, 2), 1, 0, 2 * slices);
	int sum = -1;

	for (int i = 0; i < slices; i++) {
		int w = fusion_slice(f, wide, 1, i, columns + 2 * slices - i);
		int total;

		w = fusion_slice(f, w, 1, slices - i, columns + slices - i);
		w = fusion_pad(f, fusion_scalar(f, OP_SCALE, w, 1.0 + i), 0, 0, 0);
		total = fusion_reduce(f, OP_SUM, fusion_binary(f, OP_MUL, w, w));
		total = fusion_unary(f, OP_RSQRT, fusion_scalar(f, OP_OFFSET, total, 1.0));
		w = fusion_binary(f, OP_MUL, w, total);
		sum = sum < 0 ? w : fusion_binary(f, OP_ADD, sum, w);
	}
	fusion_output(f, fusion_cast(f, fusion_cast(f, sum, DT_F64), DT_F32));
	fusion_output(f, fusion_reduce(f, OP_SUM, sum));
	return f;
}

/* Each call comes with other extents and another number of windows, and gets a runtime of its
 * own. */
static void slice_reduce_scheduler2(struct test_run *t)
{
	static const struct {
		int64_t columns;
		int slices;
	} calls[] = { { 64, 6 }, { 96, 5 }, { 80, 7 }, { 72, 4 } };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		expect_schedule(t, windows("SliceReduce2", 16, calls[i].columns, calls[i].slices),
				SCHED_REDUCTION, calls[i].slices + 1);
}

static void slice_reduce_scheduler3(struct test_run *t)
{
	expect_schedule(t, windows("SliceReduce3", 4, 24, 2), SCHED_REDUCTION, 3);
}

static void pad_reduce_scheduler1(struct test_run *t)
{
	struct fusion *f = fusion_new("PadReduce1");
	int x = fusion_pad(f, matrix(f, DT_F32, 8, 32), 1, 4, 4);

	fusion_output(f, fusion_reduce(f, OP_MAX, x));
	fusion_output(f, fusion_unary(f, OP_EXP, x));
	expect_schedule(t, f, SCHED_REDUCTION, 2);
}

static void repeat_to_expand1(struct test_run *t)
{
	struct fusion *f = fusion_new("RepeatToExpand1");
	int x = matrix(f, DT_F32, 6, 16);
	struct runtime *rt;

	fusion_output(f, fusion_unary(f, OP_NEG, fusion_repeat(f, x, 3)));
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt) {
		EXPECT_EQ(t, count_kind(rt, OP_REPEAT), 0);
		EXPECT_EQ(t, count_kind(rt, OP_EXPAND), 1);
		EXPECT_EQ(t, rt->schedule.scheduler, SCHED_POINTWISE);
	}
	runtime_free(rt);
}

static void repeat_to_expand2(struct test_run *t)
{
	struct fusion *f = fusion_new("RepeatToExpand2");
	int64_t extents[RANK_MAX] = { 2, 2, 3, 4 };
	int x = fusion_input(f, DT_F32, RANK_MAX, extents);
	struct runtime *rt;

	/* There is no axis left to expand into. */
	fusion_output(f, fusion_repeat(f, x, 2));
	rt = compile_and_compare(t, f, SCHED_COUNT);
	if (rt)
		EXPECT_EQ(t, count_kind(rt, OP_REPEAT), 1);
	runtime_free(rt);
}

static void repeat_of_repeat(struct test_run *t)
{
	struct fusion *f = fusion_new("RepeatOfRepeat");
	int x = matrix(f, DT_F32, 3, 8);

	fusion_output(f, fusion_repeat(f, fusion_repeat(f, x, 2), 2));
	expect_schedule(t, f, SCHED_NO_OP, 1);
}

const struct test_case resize_tests[] = {
	{ "ResizeTest", "Pad1", pad1 },
	{ "ResizeTest", "PadMovesUp", pad_moves_up },
	{ "ResizeTest", "Slice1", slice1 },
	{ "ResizeTest", "SliceMerge", slice_merge },
	{ "ResizeTest", "SliceEmpty", slice_empty },
	{ "ResizeTest", "SliceReduceScheduler1", slice_reduce_scheduler1 },
	{ "ResizeTest", "SliceReduceScheduler2", slice_reduce_scheduler2 },
	{ "ResizeTest", "SliceReduceScheduler3", slice_reduce_scheduler3 },
	{ "ResizeTest", "PadReduceScheduler1", pad_reduce_scheduler1 },
	{ "RepeatTest", "TranslateRepeatToExpand1", repeat_to_expand1 },
	{ "RepeatTest", "TranslateRepeatToExpand2", repeat_to_expand2 },
	{ "RepeatTest", "RepeatOfRepeat", repeat_of_repeat },
};
const int resize_tests_count = sizeof(resize_tests) / sizeof(resize_tests[0]);
