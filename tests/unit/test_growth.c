/*
 * Which moments lines of output stand for, where they are among a process's checkpoints, and which
 * place in the program grows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "studies/growth/growth_sites.h"
#include "studies/growth/whose.h"

#define MS 1000000u

static struct milestone line(enum milestone_kind kind, uint64_t start, const char *text,
			     uint64_t ms)
{
	return (struct milestone){ .kind = kind,
				   .fd = 1,
				   .start = start,
				   .end = start + strlen(text),
				   .arrived_ns = ms * MS,
				   .name = (char *)text,
				   .text = (char *)text };
}

static void point(struct checkpoints *points, uint64_t offset, const char *text, uint64_t ms)
{
	VEC_PUSH(&points->list, ((struct checkpoint){ .fd = text ? 1 : -1,
						      .offset = offset,
						      .time_ns = ms * MS,
						      .text = mem_strdup(text ? text : "") }));
}

static void tests_end_where_their_result_is_told(void **state)
{
	const struct milestone milestones[] = { line(MILESTONE_TEST_START, 0, "run a", 1),
						line(MILESTONE_TEST_END, 6, "ok a", 2),
						line(MILESTONE_TEST_START, 11, "run b", 2),
						line(MILESTONE_TEST_END, 17, "ok b", 3) };
	AUTO(moments_deinit) struct moments moments = { 0 };

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	assert_int_equal(moments.basis, GROWTH_TESTS);
	assert_int_equal(moments.list.count, 3);
	assert_string_equal(moments.list.items[0].name, "");
	assert_string_equal(moments.list.items[1].name, "ok a");
	assert_string_equal(moments.list.items[2].name, "ok b");
}

static void tests_that_only_start_end_at_the_next(void **state)
{
	const struct milestone milestones[] = { line(MILESTONE_TEST_START, 0, "run a", 1),
						line(MILESTONE_TEST_START, 6, "run b", 2) };
	AUTO(moments_deinit) struct moments moments = { 0 };

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	assert_int_equal(moments.list.count, 2);
	assert_string_equal(moments.list.items[1].name, "run a");
}

static void lines_are_found_by_their_place(void **state)
{
	/* All output arrives at the end, as it does through a pipe. */
	const struct milestone milestones[] = { line(MILESTONE_LINE, 0, "one", 90),
						line(MILESTONE_LINE, 4, "two", 90),
						line(MILESTONE_LINE, 8, "three", 90) };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	size_t at[3];

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	assert_int_equal(moments.basis, GROWTH_LINES);
	point(&points, 0, "", 10);
	point(&points, 0, NULL, 15);
	point(&points, 4, "tw", 20);
	point(&points, 8, "", 30);
	assert_int_equal(moments_locate(&moments, &points, 0, at), 3);
	assert_int_equal(at[0], 0);
	assert_int_equal(at[1], 2);
	assert_int_equal(at[2], 3);
}

/* As pytest 8 writes: a line's end and the next one's beginning at once, its result later. */
static void lines_are_found_behind_the_end_of_another(void **state)
{
	const struct milestone milestones[] = { line(MILESTONE_TEST_END, 0, "test_a PASSED", 90),
						line(MILESTONE_TEST_END, 14, "test_b PASSED", 90) };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	size_t at[2];

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	point(&points, 0, "test_a ", 10);
	point(&points, 7, "PASSED", 20);
	point(&points, 13, "\\x0atest_b ", 30);
	points.list.items[2].inside.offset = 1;
	points.list.items[2].inside.text = mem_strdup("test_b ");
	point(&points, 0, NULL, 35);
	point(&points, 21, "PASSED", 40);
	assert_int_equal(moments_locate(&moments, &points, 0, at), 2);
	assert_int_equal(at[0], 1);
	assert_int_equal(at[1], 4);
}

static void lines_are_found_although_others_write(void **state)
{
	/* Somebody else put 100 bytes before the second line. */
	const struct milestone milestones[] = { line(MILESTONE_LINE, 0, "first", 90),
						line(MILESTONE_LINE, 106, "second", 90),
						line(MILESTONE_LINE, 113, "third", 90) };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	size_t at[3];

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), true, &moments);
	assert_int_equal(moments.basis, GROWTH_BREADCRUMBS);
	point(&points, 0, "first", 10);
	point(&points, 6, "second", 20);
	point(&points, 13, "", 30);
	assert_int_equal(moments_locate(&moments, &points, 0, at), 3);
	assert_int_equal(at[1], 1);
	assert_int_equal(at[2], 2);
}

static void a_result_at_the_end_of_the_tests_line_counts(void **state)
{
	const struct milestone milestones[] = { line(MILESTONE_TEST_END, 0, "test_a ... ok", 90),
						line(MILESTONE_TEST_END, 14, "test_b ... ok", 90) };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	size_t at[2];

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	point(&points, 0, "test_a ... ", 10);
	point(&points, 0, NULL, 12);
	point(&points, 11, "ok", 20);
	point(&points, 14, "test_b ... ", 21);
	point(&points, 25, "ok", 30);
	point(&points, 0, NULL, 40);
	assert_int_equal(moments_locate(&moments, &points, 0, at), 2);
	assert_int_equal(at[0], 2);
	assert_int_equal(at[1], 4);
}

static void who_prints_nothing_is_read_by_the_clock(void **state)
{
	const struct milestone milestones[] = { line(MILESTONE_TEST_END, 0, "ok a", 5),
						line(MILESTONE_TEST_END, 5, "ok b", 15),
						line(MILESTONE_TEST_END, 10, "ok c", 25),
						line(MILESTONE_TEST_END, 15, "ok d", 45) };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	size_t at[4];

	(void)state;
	moments_from_milestones(milestones, ARRAY_SIZE(milestones), false, &moments);
	point(&points, 0, NULL, 11);
	point(&points, 0, NULL, 20);
	point(&points, 0, NULL, 40);
	points.list.items[2].exit = true;
	assert_int_equal(moments_locate(&moments, &points, 10 * MS, at), 2);
	assert_true(at[0] == MOMENT_UNSEEN); /* before it began */
	assert_int_equal(at[1], 0);
	assert_int_equal(at[2], 1);
	assert_true(at[3] == MOMENT_UNSEEN); /* after it ended */
}

static struct census_context *context(struct census *census, uint64_t a, uint64_t b, uint64_t c)
{
	struct census_context context = { .frame_count = 3, .frames = { a, b, c } };

	context.row = (uint32_t)census->contexts.count + 1;
	VEC_PUSH(&census->contexts, context);
	return &census->contexts.items[census->contexts.count - 1];
}

static void change(struct census_context *context, uint32_t moment, int64_t blocks)
{
	VEC_PUSH(&context->changes, ((struct census_change){ moment, blocks, blocks * 10 }));
	context->blocks += (uint64_t)blocks;
}

static void one_site_for_what_many_tests_leak(void **state)
{
	AUTO(census_deinit) struct census census = { .moments = 11 };
	AUTO(sites_deinit) struct sites sites = { 0 };

	(void)state;
	/* Ten tests, a context each, through the same two frames; and one that fills and stays. */
	for (uint32_t i = 1; i <= 10; i++)
		change(context(&census, 1, 2, 100 + i), i, 1);
	change(context(&census, 1, 3, 50), 1, 12);
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 1);
	assert_int_equal(sites.list.items[0].depth, 2);
	assert_int_equal(sites.list.items[0].contexts.count, 10);
	assert_int_equal(sites.list.items[0].blocks[10], 10);
	assert_int_equal(sites.list.items[0].bytes[10], 100);
}

/* Every test calls the function that allocates: nothing else is shared. */
static void one_shared_frame_counts_if_it_never_falls(void **state)
{
	AUTO(census_deinit) struct census census = { .moments = 21 };
	AUTO(sites_deinit) struct sites sites = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 20; i++) {
		change(context(&census, 1, 100 + i, 7), i, 1);
		/* Through the other one some things come and go. */
		change(context(&census, 2, 200 + i, 7), i, i % 4 == 0 ? -1 : 3);
	}
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 1);
	assert_int_equal(sites.list.items[0].depth, 1);
	assert_int_equal(sites.list.items[0].contexts.count, 20);
	assert_int_equal(sites.list.items[0].blocks[20], 20);
}

static void the_longest_stack_that_grows_is_named(void **state)
{
	AUTO(census_deinit) struct census census = { .moments = 11 };
	AUTO(sites_deinit) struct sites sites = { 0 };
	struct census_context *grows, *saw;

	(void)state;
	(void)context(&census, 1, 2, 3);
	(void)context(&census, 1, 2, 4);
	grows = &census.contexts.items[0];
	saw = &census.contexts.items[1];
	for (uint32_t i = 1; i <= 10; i++) {
		change(grows, i, 2);
		change(saw, i, i % 2 ? 1 : -1);
	}
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 1);
	assert_int_equal(sites.list.items[0].depth, 3);
	assert_ptr_equal(sites.list.items[0].contexts.items[0], grows);
	assert_int_equal(sites.list.items[0].blocks[10], 20);
}

static void a_cache_that_throws_out_is_none(void **state)
{
	AUTO(census_deinit) struct census census = { .moments = 21 };
	AUTO(sites_deinit) struct sites sites = { 0 };

	(void)state;
	/* Each test brings three of its own; those of four tests ago go. */
	for (uint32_t i = 1; i <= 20; i++) {
		struct census_context *c = context(&census, 1, 2, 100 + i);

		change(c, i, 3);
		if (i + 4 <= 20)
			change(c, i + 4, -3);
	}
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 0);
}

/* Thirty tests of one kind, then thirty of another. */
static void two_kinds_of_tests(struct census *census)
{
	static char names[60][32];

	census->moments = 61;
	census->tests = true;
	census->names = mem_alloc(61 * sizeof(census->names[0]));
	census->names[0] = "";
	for (unsigned int i = 1; i <= 60; i++) {
		(void)snprintf(names[i - 1], sizeof(names[0]), "All/P.%s/%u",
			       i <= 30 ? "Opens" : "Closes", (i - 1) % 30);
		census->names[i] = names[i - 1];
	}
}

static void what_only_some_tests_leak_is_found(void **state)
{
	AUTO(census_deinit) struct census census = { 0 };
	AUTO(sites_deinit) struct sites sites = { 0 };
	struct census_context *leak, *cache;

	(void)state;
	two_kinds_of_tests(&census);
	(void)context(&census, 1, 2, 3);
	(void)context(&census, 1, 4, 5);
	leak = &census.contexts.items[0];
	cache = &census.contexts.items[1];
	/* One stays as long as tests that leave something run, the other although they run. */
	for (uint32_t i = 2; i <= 30; i += 2)
		change(leak, i, 1);
	for (uint32_t i = 1; i <= 12; i++)
		change(cache, i, 1);
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 1);
	assert_ptr_equal(sites.list.items[0].contexts.items[0], leak);
	assert_int_equal(sites.list.items[0].blocks[60], 15);
}

/* Lines are no tests: what a program sets up while it says so is set up. */
static void lines_have_no_families(void **state)
{
	AUTO(census_deinit) struct census census = { 0 };
	AUTO(sites_deinit) struct sites sites = { 0 };
	struct census_context *setup;

	(void)state;
	two_kinds_of_tests(&census);
	census.tests = false;
	setup = context(&census, 1, 2, 3);
	for (uint32_t i = 1; i <= 30; i++)
		change(setup, i, 1);
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 0);
}

/* realloc() ends one block and begins another: their number stays. */
static void one_block_that_becomes_larger_grows(void **state)
{
	AUTO(census_deinit) struct census census = { .moments = 21 };
	AUTO(sites_deinit) struct sites sites = { 0 };
	struct census_context *larger, *changing;

	(void)state;
	(void)context(&census, 1, 2, 3);
	(void)context(&census, 4, 5, 6);
	larger = &census.contexts.items[0];
	changing = &census.contexts.items[1];
	change(larger, 0, 1);
	change(changing, 0, 1);
	for (uint32_t i = 1; i <= 20; i++) {
		VEC_PUSH(&larger->changes, ((struct census_change){ i, 0, 64 }));
		VEC_PUSH(&changing->changes, ((struct census_change){ i, 0, i % 3 ? 64 : -32 }));
	}
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 1);
	assert_ptr_equal(sites.list.items[0].contexts.items[0], larger);
	assert_int_equal(sites.list.items[0].bytes[20], 10 + 20 * 64);
}

static void nothing_gives_nothing(void **state)
{
	AUTO(census_deinit) struct census census = { 0 };
	AUTO(sites_deinit) struct sites sites = { 0 };
	AUTO(moments_deinit) struct moments moments = { 0 };
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };

	(void)state;
	sites_find(&census, &sites);
	assert_int_equal(sites.list.count, 0);
	moments_from_milestones(NULL, 0, false, &moments);
	assert_int_equal(moments_locate(&moments, &points, 0, NULL), 0);
}

static bool frameworks(const char *const *files)
{
	AUTO(stack_deinit) struct stack stack = { 0 };

	(void)stack_push(&stack, &(struct frame){ .function = (char *)"PyDict_New" });
	for (; *files; files++)
		(void)stack_push(&stack, &(struct frame){ .kind = FRAME_PYTHON,
							  .function = (char *)"f",
							  .file = (char *)*files });
	return is_frameworks(&stack);
}

#define FRAMEWORKS(...) frameworks((const char *const[]){ __VA_ARGS__, NULL })
#define LIBRARY "/usr/lib/python3.11/"
#define PACKAGES "/home/me/venv/lib/python3.12/site-packages/"

static void whose_growth_it_is(void **state)
{
	(void)state;
	assert_true(FRAMEWORKS(PACKAGES "_pytest/reports.py", PACKAGES "pluggy/_callers.py"));
	assert_true(FRAMEWORKS(LIBRARY "re/_parser.py", PACKAGES "_pytest/mark/expression.py"));
	assert_true(FRAMEWORKS(LIBRARY "unittest/result.py", "/home/me/project/run.py"));
	assert_false(FRAMEWORKS("/home/me/project/store.py", PACKAGES "_pytest/python.py"));
	/* Packages work for whoever called them. */
	assert_false(FRAMEWORKS(PACKAGES "requests/api.py", "/home/me/project/tests/test_a.py",
				PACKAGES "_pytest/python.py"));
	assert_false(FRAMEWORKS(PACKAGES "numpy/core/numeric.py",
				PACKAGES "numpy/core/tests/test_numeric.py",
				PACKAGES "_pytest/python.py"));
	assert_false(FRAMEWORKS(LIBRARY "test/list_tests.py", LIBRARY "unittest/case.py"));
	assert_true(FRAMEWORKS(LIBRARY "test/libregrtest/runtest.py"));
	assert_false(FRAMEWORKS(LIBRARY "unittest/mock.py", "/home/me/project/test_a.py"));
	/* The user's own runner, and no Python at all. */
	assert_false(FRAMEWORKS("/home/me/unittest/runner.py"));
	assert_false(FRAMEWORKS(LIBRARY "json/decoder.py", "<string>"));
	assert_false(is_frameworks(&(struct stack){ 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tests_end_where_their_result_is_told),
		cmocka_unit_test(tests_that_only_start_end_at_the_next),
		cmocka_unit_test(lines_are_found_by_their_place),
		cmocka_unit_test(lines_are_found_behind_the_end_of_another),
		cmocka_unit_test(lines_are_found_although_others_write),
		cmocka_unit_test(a_result_at_the_end_of_the_tests_line_counts),
		cmocka_unit_test(who_prints_nothing_is_read_by_the_clock),
		cmocka_unit_test(one_site_for_what_many_tests_leak),
		cmocka_unit_test(one_shared_frame_counts_if_it_never_falls),
		cmocka_unit_test(the_longest_stack_that_grows_is_named),
		cmocka_unit_test(a_cache_that_throws_out_is_none),
		cmocka_unit_test(what_only_some_tests_leak_is_found),
		cmocka_unit_test(lines_have_no_families),
		cmocka_unit_test(one_block_that_becomes_larger_grows),
		cmocka_unit_test(nothing_gives_nothing),
		cmocka_unit_test(whose_growth_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
