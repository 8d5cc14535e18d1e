/*
 * run/expected_tests: did a run start what was asked for; studies/series/listtext: lists as text.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"
#include "model/test_name.h"
#include "run/expected_tests.h"
#include "studies/series/listtext.h"

struct world {
	struct strv list;
	struct test_names names;
	struct wanted_list wanted_list;
	struct trial_end end;
	struct wanted wanted;
};

static void make(struct world *w, const char *const *names, const uint32_t *wanted, size_t count)
{
	*w = (struct world){ 0 };
	for (; *names; names++)
		strv_add(&w->list, *names);
	test_names_init(&w->names, &w->list);
	for (size_t i = 0; i < count; i++)
		VEC_PUSH(&w->wanted_list.tests, wanted[i]);
	wanted_begin(&w->wanted, &w->names, &w->wanted_list, &w->end);
}

static void drop(struct world *w)
{
	wanted_deinit(&w->wanted);
	test_names_deinit(&w->names);
	strv_deinit(&w->list);
	VEC_DEINIT(&w->wanted_list.tests);
}

static const char *const abcd[] = { "a", "b b", "c", "d\001", NULL };

static void the_wanted_tests_in_order(void **state)
{
	struct world w;

	make(&w, abcd, (const uint32_t[]){ 2, 0, 3 }, 3);
	wanted_event(&w.wanted, TEST_STARTED, "c");
	wanted_event(&w.wanted, TEST_STARTED, "not a test of the list");
	wanted_event(&w.wanted, TEST_PASSED, "c");
	assert_int_equal(w.end.started, 1);
	assert_false(w.end.came_through);
	wanted_event(&w.wanted, TEST_STARTED, "a");
	wanted_event(&w.wanted, TEST_STARTED, "c"); /* told twice */
	wanted_event(&w.wanted, TEST_STARTED, "d\\x01");
	assert_int_equal(w.end.started, 3);
	wanted_event(&w.wanted, TEST_FAILED, "d\\x01");
	assert_true(w.end.came_through);
	assert_false(w.end.strayed);
	drop(&w);
}

static void others_are_noticed(void **state)
{
	struct world w;

	make(&w, abcd, (const uint32_t[]){ 0, 2 }, 2);
	wanted_event(&w.wanted, TEST_STARTED, "a");
	wanted_event(&w.wanted, TEST_STARTED, "b b");
	assert_true(w.end.strayed);
	drop(&w);
	make(&w, abcd, (const uint32_t[]){ 0, 1, 2 }, 3);
	wanted_event(&w.wanted, TEST_STARTED, "b b"); /* before its turn */
	assert_true(w.end.strayed);
	drop(&w);
}

static void it_is_over_when_the_victim_has_passed(void **state)
{
	struct world w;

	make(&w, abcd, (const uint32_t[]){ 0, 1, 2 }, 3);
	w.wanted_list.stop_after = 2;
	wanted_event(&w.wanted, TEST_STARTED, "a");
	wanted_event(&w.wanted, TEST_PASSED, "a");
	assert_false(w.wanted.over);
	wanted_event(&w.wanted, TEST_STARTED, "b b");
	wanted_event(&w.wanted, TEST_FAILED, "b b");
	assert_false(w.wanted.over);
	wanted_event(&w.wanted, TEST_PASSED, "b b");
	assert_true(w.wanted.over);
	drop(&w);
}

static enum test_event mark(const struct world *w, const char *line, const char **name)
{
	*name = NULL;
	return wanted_mark(&w->wanted, line, strlen(line), name);
}

static void marks(void **state)
{
	static const char *const wrong[] = {
		"", "+", "+ ", "+1", "* 1", "+ 4", "+ 1 ", "+ x", "+ 99999999999", "+ -1"
	};
	const char *name;
	struct world w;

	make(&w, abcd, (const uint32_t[]){ 1 }, 1);
	assert_int_equal(mark(&w, "+ 1", &name), TEST_STARTED);
	assert_string_equal(name, "b b");
	assert_int_equal(mark(&w, "= 0", &name), TEST_PASSED);
	assert_string_equal(name, "a");
	assert_int_equal(mark(&w, "- 3", &name), TEST_FAILED);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(mark(&w, wrong[i], &name), TEST_NONE);
	assert_int_equal(wanted_mark(&w.wanted, "+\0001", 3, &name), TEST_NONE);
	drop(&w);
}

static void a_trial_without_a_list_wants_nothing(void **state)
{
	struct wanted w = { 0 };
	struct wanted_list none = { 0 };
	struct trial_end end = { 0 };
	const char *name;

	wanted_begin(&w, NULL, &none, &end);
	wanted_event(&w, TEST_STARTED, "a");
	assert_int_equal(wanted_mark(&w, "+ 0", 3, &name), TEST_NONE);
	assert_int_equal(end.started, 0);
	assert_false(end.strayed);
	wanted_deinit(&w);
}

static void many_names_are_found(void **state)
{
	struct strv list = { 0 };
	struct test_names names;

	for (int i = 0; i < 5000; i++)
		strv_take(&list, mem_printf("suite::test_%d[%d x]", i, i * 7));
	test_names_init(&names, &list);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(test_names_find(&names, list.items[i]), i);
	assert_int_equal(test_names_find(&names, "suite::test_5000[0 x]"), TEST_NAMES_NONE);
	test_names_deinit(&names);
	strv_deinit(&list);
}

static void there_and_back(const uint32_t *numbers, size_t count, const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct numbers back = { 0 };
	struct err err = { 0 };

	listtext_write(numbers, count, &sb);
	assert_string_equal(strbuf_str(&sb), text);
	assert_int_equal(listtext_read(text, 100, &back, &err), 0);
	assert_int_equal(back.list.count, count);
	assert_memory_equal(back.list.items, numbers, count * sizeof(numbers[0]));
	VEC_DEINIT(&back.list);
}

static void lists_as_text(void **state)
{
	static const char *const wrong[] = { "",	 ",",	"1,",  "a",  "100",
					     "1-",	 "5-2", "1 2", "-1", "99999999999999999999",
					     "0-99,0-99" };
	struct numbers numbers = { 0 };
	struct err err = { 0 };

	there_and_back((const uint32_t[]){ 0 }, 1, "0");
	there_and_back((const uint32_t[]){ 0, 1, 2, 5, 7, 8 }, 6, "0-2,5,7-8");
	there_and_back((const uint32_t[]){ 8, 7, 3, 4, 0, 99 }, 6, "8,7,3-4,0,99");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(listtext_read(wrong[i], 100, &numbers, &err), -EINVAL);
	VEC_DEINIT(&numbers.list);
}

static void words_survive_a_shell(void **state)
{
	static const char *const words[] = { "plain",	    "a b",  "it's", "",
					     "$HOME",	    "a\"b", "x*y",  "na\303\257ve",
					     "line\nbreak", "-x=1" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		AUTO(strv_deinit) struct strv back = { 0 };
		struct err err = { 0 };

		words_quote(&sb, words[i]);
		assert_int_equal(words_split(strbuf_str(&sb), &back, &err), 0);
		assert_int_equal(back.count, 1);
		assert_string_equal(back.items[0], words[i]);
	}
}

static void one_test_has_several_spellings(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "t/test_g.py::test_v_thunder.dtypes.float32",
		  "t/test_g.py::test_v_thunder::dtypes::float32", true },
		{ "t/test_g.py::A::test_v[1.5]", "t/test_g.py::A.test_v[1.5]", true },
		{ "t/test_g.py::test_v[1.5]", "t/test_g.py::test_v[1::5]", false },
		{ "test_a (m.x.T)", "test_a (m.x.T.test_a)", true },
		{ "test_a (m.x.T)", "m.x.T.test_a", true },
		{ "test_a (m.xtest_a)", "m.xtest_a", false },
		{ "test_a (m.x.T)", "test_b (m.x.T)", false },
		{ "test_a (twice)", "test_a (twice) ", false },
		{ "Suite.Case", "Suite::Case", false },
		{ "plain", "plain", true },
	};
	AUTO(strv_deinit) struct strv list = { 0 };
	struct test_names names;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (test_name_same(rows[i].a, rows[i].b) != rows[i].same ||
		    test_name_same(rows[i].b, rows[i].a) != rows[i].same)
			fail_msg("row %zu", i);
	strv_add(&list, "other");
	strv_add(&list, rows[0].a);
	strv_add(&list, "m.x.T.test_a");
	test_names_init(&names, &list);
	assert_int_equal(test_names_find(&names, rows[0].b), 1);
	assert_int_equal(test_names_find(&names, "test_a (m.x.T.test_a)"), 2);
	test_names_deinit(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wanted_tests_in_order),
		cmocka_unit_test(others_are_noticed),
		cmocka_unit_test(it_is_over_when_the_victim_has_passed),
		cmocka_unit_test(marks),
		cmocka_unit_test(a_trial_without_a_list_wants_nothing),
		cmocka_unit_test(many_names_are_found),
		cmocka_unit_test(lists_as_text),
		cmocka_unit_test(words_survive_a_shell),
		cmocka_unit_test(one_test_has_several_spellings),
	};

	return cmocka_run_group_tests_name("wanted", tests, NULL, NULL);
}
