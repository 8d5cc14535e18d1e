/*
 * What people write into a case: stored, read back, and refused where it makes no sense. Also the
 * world then and now, and paths.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/path.h"
#include "case/stored_notebook.h"
#include "case_fixture.h"

struct fixture {
	struct scratch scratch;
	struct case_store *cs;
};

static int setup(void **state)
{
	static struct fixture f;
	struct err err = { 0 };

	scratch_make(&f.scratch);
	*state = &f;
	return case_open(scratch_path(&f.scratch, "case"), CASE_WRITE, &f.cs, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	case_close(f->cs);
	scratch_remove(&f->scratch);
	return 0;
}

static void a_hypothesis_keeps_its_history(void **state)
{
	struct fixture *f = *state;
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	const struct hypothesis *h;
	struct series_id series = { 0 };
	struct err err = { 0 };
	uint64_t id = 0;

	assert_int_equal(made_series(f->cs, "s", &series, &err), 0);
	assert_int_equal(add_made(f->cs, series, &(struct made_trial){ .number = 7, .position = 1 },
				  &err),
			 0);
	assert_int_equal(case_add_hypothesis(f->cs, "a narrow write", &id, &err), 0);
	assert_int_equal(case_change_hypothesis(
				 f->cs, id,
				 &(struct hypothesis_change){ .status = HYPOTHESIS_FALSIFIED,
							      .because = (char *)"it was wide",
							      .seen = { .trial = 7 } },
				 &err),
			 0);
	assert_int_equal(case_change_hypothesis(
				 f->cs, id,
				 &(struct hypothesis_change){ .status = HYPOTHESIS_OPEN }, &err),
			 0);
	assert_int_equal(case_notebook(f->cs, &notebook, &err), 0);
	assert_int_equal(notebook.hypotheses.count, 1);
	h = &notebook.hypotheses.items[0];
	assert_int_equal(h->status, HYPOTHESIS_OPEN);
	assert_int_equal(h->changes.count, 2);
	assert_int_equal(h->changes.items[0].seen.trial, 7);
	assert_string_equal(h->changes.items[0].because, "it was wide");
	assert_null(h->changes.items[1].because);
}

static void observations_that_are_not_there_are_refused(void **state)
{
	struct fixture *f = *state;
	struct hypothesis_change change = { .status = HYPOTHESIS_CONFIRMED,
					    .seen = { .trial = 99 } };
	struct err err = { 0 };
	uint64_t id = 0;

	assert_int_equal(case_change_hypothesis(f->cs, 1, &change, &err), -ENOENT);
	assert_int_equal(case_add_hypothesis(f->cs, "x", &id, &err), 0);
	assert_int_equal(case_change_hypothesis(f->cs, id, &change, &err), -ENOENT);
	assert_non_null(strstr(err.message, "trial 99"));
	change.seen = (struct citation){ .evidence = 99 };
	assert_int_equal(case_change_hypothesis(f->cs, id, &change, &err), -ENOENT);
	assert_non_null(strstr(err.message, "e99"));
}

static void observations_are_spelled(void **state)
{
	static const char *const bad[] = { "",
					   "e",
					   "x",
					   "0",
					   "e0",
					   "-1",
					   "1x",
					   " 1",
					   "99999999999999999999",
					   "9223372036854775808" };
	struct citation seen = { 0 };

	assert_true(citation_parse("17", &seen));
	assert_int_equal(seen.trial, 17);
	assert_int_equal(seen.evidence, 0);
	assert_true(citation_parse("e3", &seen));
	assert_int_equal(seen.trial, 0);
	assert_int_equal(seen.evidence, 3);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(citation_parse(bad[i], &seen));
}

static void workarounds_go_and_stay_known(void **state)
{
	struct fixture *f = *state;
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	struct err err = { 0 };
	uint64_t id = 0;

	assert_int_equal(case_add_workaround(f->cs, "skip A", &id, &err), 0);
	assert_int_equal(case_add_workaround(f->cs, "skip B", &id, &err), 0);
	assert_int_equal(case_remove_workaround(f->cs, 1, &err), 0);
	assert_int_equal(case_remove_workaround(f->cs, 1, &err), -ENOENT);
	assert_int_equal(case_remove_workaround(f->cs, 9, &err), -ENOENT);
	assert_int_equal(case_notebook(f->cs, &notebook, &err), 0);
	assert_int_equal(notebook.workarounds.count, 1);
	assert_string_equal(notebook.workarounds.items[0].text, "skip B");
}

static void a_case_is_parked_once_at_a_time(void **state)
{
	struct fixture *f = *state;
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	struct parking parking = { .because = (char *)"why",
				   .until = (char *)"when",
				   .world = { .commit = (char *)"abc" } };
	struct err err = { 0 };

	assert_int_equal(case_resume(f->cs, "passed", &err), -ENOENT);
	assert_int_equal(case_park(f->cs, &parking, &err), 0);
	assert_int_equal(case_park(f->cs, &parking, &err), -EALREADY);
	assert_int_equal(case_resume(f->cs, "passed", &err), 0);
	assert_int_equal(case_park(f->cs, &parking, &err), 0);
	assert_int_equal(case_notebook(f->cs, &notebook, &err), 0);
	assert_int_equal(notebook.parkings.count, 2);
	assert_string_equal(notebook.parkings.items[0].gate, "passed");
	assert_ptr_equal(notebook_parked(&notebook), &notebook.parkings.items[1]);
	assert_string_equal(notebook_parked(&notebook)->world.commit, "abc");
	assert_null(notebook_parked(&notebook)->world.kernel);
}

static void a_minimal_list_comes_back_with_its_names(void **state)
{
	struct fixture *f = *state;
	AUTO(minimal_list_deinit) struct minimal_list list = { 0 };
	AUTO(strv_deinit) struct strv names = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	struct minimal_record record = { .verdict = MINIMAL_SEARCHING,
					 .items = "0-1,3",
					 .victim = "d",
					 .minimal = { .trials = 8, .failed = 2 },
					 .confidence = 0.5,
					 .argv = &argv,
					 .env = &(struct strv){ 0 } };
	struct err err = { 0 };

	for (char c = 'a'; c <= 'd'; c++)
		strv_take(&names, mem_printf("%c", c));
	strv_add(&argv, "run 'it'\nnow");
	assert_int_equal(made_series(f->cs, "s", &record.series, &err), 0);
	assert_int_equal(case_set_items(f->cs, record.series, &names, &err), 0);
	assert_int_equal(case_set_minimal(f->cs, &record, &err), 0);
	/* A list that is still searched for is only found by its series. */
	assert_int_equal(case_minimal(f->cs, (struct series_id){ 0 }, &list, &err), 0);
	assert_int_equal(list.series, 0);
	record.verdict = MINIMAL_FOUND;
	assert_int_equal(case_set_minimal(f->cs, &record, &err), 0);
	assert_int_equal(case_minimal(f->cs, (struct series_id){ 0 }, &list, &err), 0);
	assert_int_equal(list.series, record.series.value);
	assert_int_equal(list.tests.count, 3);
	assert_string_equal(list.tests.items[2], "d");
	assert_int_equal(list.total, 4);
	assert_string_equal(list.argv.items[0], "run 'it'\nnow");
	assert_int_equal(list.minimal.failed, 2);
	assert_null(list.signature);
	/* Clearing the series takes it along. */
	minimal_list_deinit(&list);
	list = (struct minimal_list){ 0 };
	assert_int_equal(case_series_clear(f->cs, record.series, &err), 0);
	assert_int_equal(case_minimal(f->cs, record.series, &list, &err), 0);
	assert_int_equal(list.series, 0);
}

static void check_change(const struct said *said, const char *id, const char *name)
{
	assert_string_equal(said->id, id);
	assert_string_equal(said->values.items[0].text, name);
}

static void what_changed_is_told_by_name_and_never_by_value(void **state)
{
	char *then_env[] = { (char *)"A=1",	(char *)"SECRET=hunter2", (char *)"GONE=x",
			     (char *)"SHLVL=1", (char *)"A_B=same",	  NULL };
	char *now_env[] = { (char *)"A=2",     (char *)"SECRET=hunter2", (char *)"NEW=y",
			    (char *)"SHLVL=2", (char *)"A_B=same",	 NULL };
	AUTO(said_list_deinit) struct said_list changes = { 0 };
	struct world then = { .commit = (char *)"abc", .kernel = (char *)"Linux 1" };
	struct world now = { .commit = (char *)"def",
			     .kernel = (char *)"Linux 1",
			     .program = (char *)"build-id 1" };

	world_set_variables(&then, then_env);
	world_set_variables(&now, now_env);
	assert_null(strstr(then.variables, "hunter2"));
	assert_null(strstr(then.variables, "SHLVL"));
	world_changes(&then, &now, &changes);
	assert_int_equal(changes.list.count, 4);
	check_change(&changes.list.items[0], "world:differs", "commit");
	check_change(&changes.list.items[1], "world:variables-differ", "A");
	check_change(&changes.list.items[2], "world:variables-new", "NEW");
	check_change(&changes.list.items[3], "world:variables-gone", "GONE");
	mem_free(then.variables);
	mem_free(now.variables);
}

static void check_relative(const char *from, const char *to, const char *wanted)
{
	AUTO(mem_freep) char *way = path_relative(from, to);

	assert_string_equal(way, wanted);
}

static void check_rename(const char *text, const char *wanted)
{
	AUTO(mem_freep) char *made = path_rename(text, "/a/b", "{root}");

	assert_string_equal(made, wanted);
}

static void paths_are_told_apart(void **state)
{
	assert_string_equal(path_below("/a/b", "/a/b/c/d"), "c/d");
	assert_string_equal(path_below("/a/b", "/a/b"), ".");
	assert_null(path_below("/a/b", "/a/bc"));
	assert_null(path_below("/a/b", "/a"));
	assert_string_equal(path_below("/", "/a"), "a");
	check_relative("/a/b/c", "/a/b", "..");
	check_relative("/a/b", "/a/b", ".");
	check_relative("/a/b", "/a/bc/d", "../bc/d");
	check_relative("/a", "/b/c", "../b/c");
	check_relative("/", "/a", "a");
	check_relative("/a/b", "/", "../..");
	check_rename("/a/b", "{root}");
	check_rename("--x=/a/b/c:/a/b", "--x={root}/c:{root}");
	check_rename("/a/bc /x/a/b y/a/b /a/b.c /a/b-c", "/a/bc /x/a/b y/a/b /a/b.c /a/b-c");
	check_rename("", "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_hypothesis_keeps_its_history),
		TEST(observations_that_are_not_there_are_refused),
		cmocka_unit_test(observations_are_spelled),
		TEST(workarounds_go_and_stay_known),
		TEST(a_case_is_parked_once_at_a_time),
		TEST(a_minimal_list_comes_back_with_its_names),
		cmocka_unit_test(what_changed_is_told_by_name_and_never_by_value),
		cmocka_unit_test(paths_are_told_apart),
	};

	return cmocka_run_group_tests_name("notebook", tests, NULL, NULL);
}
