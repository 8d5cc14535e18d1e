/*
 * run/framework: what each adapter makes of a list, and how it reads one. The frameworks
 * themselves are played by small scripts; tests/e2e/080-minimize has the real ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "run/framework/framework.h"
#include "run/framework/json_reader.h"
#include "scratch.h"

static struct scratch scratch;
static const struct strv no_env = { 0 };

static int setup(void **state)
{
	scratch_make(&scratch);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(&scratch);
	return 0;
}

static const char *write_file(const char *name, const char *content, mode_t mode)
{
	struct err err = { 0 };

	assert_int_equal(file_write_at(scratch.fd, name, content, strlen(content), &err), 0);
	assert_int_equal(fchmodat(scratch.fd, name, mode, 0), 0);
	return scratch_path(&scratch, name);
}

static void open_framework(struct framework *f, const char *name, char *const *program,
			   const char *tests)
{
	struct err err = { 0 };
	int r = framework_init(
		f,
		&(struct framework_setup){
			.name = name, .program = program, .env = &no_env, .tests_path = tests },
		&err);

	if (r < 0)
		fail_msg("%s", err.message);
}

static void build(const struct framework *f, const uint32_t *items, size_t count,
		  struct trial_job *job)
{
	*job = (struct trial_job){ .number = { 7 }, .slot = 3 };
	f->ops->build(f, &(struct framework_list){ .items = items, .count = count }, "/dir", job);
}

static const char *file_of(const struct trial_job *job, const char *name)
{
	VEC_FOREACH (&job->files, file)
		if (strcmp(file->name, name) == 0)
			return file->content;
	fail_msg("there is no file %s", name);
	return NULL;
}

static void is_argv(const struct strv *argv, const char *const *wanted)
{
	size_t i = 0;

	for (; wanted[i]; i++) {
		assert_true(i < argv->count);
		assert_string_equal(argv->items[i], wanted[i]);
	}
	assert_int_equal(argv->count, i);
}

#define WORDS(...) ((char *const[]){ __VA_ARGS__, NULL })
#define IS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define LIST(...) ((const uint32_t[]){ __VA_ARGS__ })

/* ---- a program that tells itself how it takes tests ---- */

#define TELLS(usage, names)                                                                      \
	"#!/bin/sh\n[ \"$1\" = --list ] && { echo >>\"$0.asked\"; printf '" names "'; exit; }\n" \
	"[ \"$1\" = --help ] && { echo 'usage: t " usage "' >&2; exit 2; }\nexit 0\n"

static void a_program_tells_its_tests_itself(void **state)
{
	const char *path =
		write_file("tells", TELLS("[--list] [-v] [NAME...]", "b\\na\\nc\\n"), 0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(framework_deinit) struct framework some = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };

	open_framework(&f, "auto", WORDS((char *)path, (char *)"-v"), NULL);
	assert_ptr_equal(f.ops, &framework_usage);
	is_argv(&f.items, IS("b", "a", "c"));
	build(&f, LIST(2, 0), 2, &job);
	is_argv(&job.argv, IS(path, "-v", "c", "b"));
	/* The tests that the user chose are all there are. */
	open_framework(&some, "auto", WORDS((char *)path, (char *)"c", (char *)"b"), NULL);
	is_argv(&some.items, IS("c", "b"));
}

/* A program whose usage does not say so is never asked for a list. */
static void who_does_not_tell_is_not_asked(void **state)
{
	static const struct {
		const char *name, *text;
		bool asked;
	} rows[] = {
		{ "other-option", TELLS("[--listen PORT] [NAME...]", "a\\nb\\n"), false },
		{ "one-name", TELLS("[--list] [NAME]", "a\\nb\\n"), false },
		{ "no-names", TELLS("[--list] [--filter TEXT]", "a\\nb\\n"), false },
		{ "files", TELLS("[--list] [FILE...]", "a\\nb\\n"), false },
		{ "sentences", TELLS("[--list] [TEST]...", "a test\\nanother one\\n"), true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *path = write_file(rows[i].name, rows[i].text, 0755);
		AUTO(mem_freep) char *asked = mem_printf("%s.asked", rows[i].name);
		AUTO(framework_deinit) struct framework f = { 0 };
		struct err err = { 0 };
		int r = framework_init(&f,
				       &(struct framework_setup){ .name = "auto",
								  .program = WORDS((char *)path),
								  .env = &no_env },
				       &err);

		print_message("# %s: %s\n", rows[i].name, err.message);
		assert_int_equal(r, -EINVAL);
		assert_int_equal(faccessat(scratch.fd, asked, F_OK, 0) == 0, rows[i].asked);
	}
}

/* ---- list ---- */

#define ODD "plain\nwith space\n# comment\n\n  \n[x]-{tests}\nna\303\257ve\342\230\203\ntrail \r\n"

static void a_list_goes_where_the_command_says(void **state)
{
	const char *path = write_file("list", ODD, 0644);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };

	open_framework(&f, "auto",
		       WORDS((char *)"prog{slot}", (char *)"{tests}", (char *)"--n={trial}",
			     (char *)"-f{tests_file}", (char *)"x{tests:, }y"),
		       path);
	assert_ptr_equal(f.ops, &framework_list_file);
	is_argv(&f.items,
		IS("plain", "with space", "[x]-{tests}", "na\303\257ve\342\230\203", "trail"));
	build(&f, LIST(3, 1, 2), 3, &job);
	is_argv(&job.argv,
		IS("prog3", "na\303\257ve\342\230\203", "with space", "[x]-{tests}", "--n=7",
		   "-f/dir/tests.txt", "xna\303\257ve\342\230\203, with space, [x]-{tests}y"));
	assert_string_equal(file_of(&job, "tests.txt"),
			    "na\303\257ve\342\230\203\nwith space\n[x]-{tests}\n");
}

static void a_place_within_a_word_is_repeated(void **state)
{
	const char *path = write_file("list", "a\nb\n", 0644);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };

	open_framework(&f, "list", WORDS((char *)"prog", (char *)"--test={tests};"), path);
	build(&f, LIST(1, 0), 2, &job);
	is_argv(&job.argv, IS("prog", "--test=b;", "--test=a;"));
}

/* ---- googletest ---- */

#define GTEST_OUTPUT                                                  \
	"Running main() from gtest_main.cc\n"                         \
	"some talk of the program\n"                                  \
	"A.\n  One\n  DISABLED_Two\n"                                 \
	"Small/Sizes.\n  Grow/0  # GetParam() = 0\n  Grow/1  # x y\n" \
	"Typed/0.  # TypeParam = char\n  HasASize\n"                  \
	"DISABLED_B.\n  Three\n"

static void googletest_lists(void **state)
{
	const char *path = write_file("prog", "#!/bin/sh\nprintf '" GTEST_OUTPUT "'\n", 0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(framework_deinit) struct framework all = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };

	open_framework(&f, "gtest",
		       WORDS((char *)path, (char *)"--gtest_filter=*", (char *)"--other",
			     (char *)"--gtest_shuffle"),
		       NULL);
	is_argv(&f.items,
		IS("A.One", "Small/Sizes.Grow/0", "Small/Sizes.Grow/1", "Typed/0.HasASize"));
	build(&f, LIST(0, 2), 2, &job);
	/* Not through a file: what only resembles googletest need not know how to read one. */
	is_argv(&job.argv, IS(path, "--other", "--gtest_filter=A.One:Small/Sizes.Grow/1"));
	open_framework(&all, "gtest",
		       WORDS((char *)path, (char *)"--gtest_also_run_disabled_tests"), NULL);
	assert_int_equal(all.items.count, 6);
}

static void a_long_filter_needs_no_long_argument(void **state)
{
	const char *path =
		write_file("prog",
			   "#!/bin/sh\necho Suite.\ni=0; while [ $i -lt 5000 ]; do "
			   "echo '  A_rather_long_name_of_a_test_'$i; i=$((i+1)); done\n",
			   0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };
	uint32_t all[5000];

	open_framework(&f, "gtest", WORDS((char *)path), NULL);
	assert_int_equal(f.items.count, 5000);
	for (uint32_t i = 0; i < 5000; i++)
		all[i] = i;
	build(&f, all, 5000, &job);
	for (size_t i = 0; i < job.argv.count; i++)
		assert_true(strlen(job.argv.items[i]) < 1000);
	assert_true(strlen(file_of(&job, "gtest-flags.txt")) > 150000);
	framework_plain(&f, &(struct framework_list){ .items = all, .count = 5000 }, "the-file",
			&argv, &env);
	is_argv(&argv, IS(path, "--gtest_flagfile=the-file"));
}

/* ---- pytest ---- */

/* Stands in for pytest: writes the list that the plugin would, and keeps what it was given. */
#define PYTEST                                                                                                \
	"#!/bin/sh\necho \"$@\" > "                                                                           \
	"\"${0%/*}/got\"\n"                                                                                   \
	"printf 'rootdir\\t/proj\\ninifile\\t/proj/pytest.ini\\npositional\\ttests\\n' > \"$REDHAND_LIST\"\n" \
	"printf 'test\\tsub/b.py\\tsub/b.py::t[a b]\\tb.py::t[a b]\\n' >> \"$REDHAND_LIST\"\n"                \
	"printf 'test\\tsub/a.py\\tsub/a.py::C::\303\244\\ta.py::C::\303\244\\n' >> \"$REDHAND_LIST\"\n"      \
	"printf 'test\\tsub/b.py\\tsub/b.py::u\\tb.py::u\\nend\\t\\n' >> \"$REDHAND_LIST\"\n"                 \
	"[ -e \"${REDHAND_LIST%/*}/redhand_pytest.py\" ] || exit 4\n"

static void pytest_keeps_options_and_replaces_paths(void **state)
{
	const char *path = write_file("pytest", PYTEST, 0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };

	open_framework(&f, "auto",
		       WORDS((char *)path, (char *)"-k", (char *)"tests", (char *)"tests",
			     (char *)"-v"),
		       NULL);
	assert_ptr_equal(f.ops, &framework_pytest);
	assert_true(
		f.ops->shares_out((char *[]){ (char *)"pytest", (char *)"-n", (char *)"2", NULL }));
	assert_true(f.ops->shares_out((char *[]){ (char *)"pytest", (char *)"-n4", NULL }));
	assert_false(
		f.ops->shares_out((char *[]){ (char *)"pytest", (char *)"-n", (char *)"0", NULL }));
	assert_false(f.ops->shares_out((char *[]){ (char *)"pytest", (char *)"tests", NULL }));
	is_argv(&f.items, IS("b.py::t[a b]", "a.py::C::\303\244", "b.py::u"));
	build(&f, LIST(2, 1, 0), 3, &job);
	is_argv(&job.argv, IS(path, "-p", "redhand_pytest", "-p", "no:randomly", "-p",
			      "no:random_order", "-p", "no:cacheprovider", "--rootdir=/proj", "-c",
			      "/proj/pytest.ini", "-k", "tests", "-v", "sub/b.py", "sub/a.py"));
	assert_string_equal(file_of(&job, "tests.txt"),
			    "2\tb.py::u\n1\ta.py::C::\303\244\n0\tb.py::t[a b]\n");
	assert_non_null(strstr(file_of(&job, "redhand_pytest.py"), "REDHAND_MARKS"));
	framework_plain(&f, &(struct framework_list){ .items = LIST(2, 0), .count = 2 }, "file",
			&argv, &env);
	is_argv(&argv, IS(path, "-k", "tests", "-v", "sub/b.py::u", "sub/b.py::t[a b]"));
	/* This pytest collects the same whatever it is given. */
	assert_false(f.ops->plain_differs(&f, &(struct framework_list){ .items = LIST(0, 1, 2),
									.count = 3 }));
	assert_true(f.ops->plain_differs(&f, &(struct framework_list){ .items = LIST(1, 0, 2),
								       .count = 3 }));
}

static void a_framework_that_cannot_list_says_why(void **state)
{
	const char *path =
		write_file("pytest", "#!/bin/sh\necho 'no module named x' >&2; exit 4\n", 0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	struct err err = { 0 };
	int r = framework_init(&f,
			       &(struct framework_setup){ .name = "auto",
							  .program = WORDS((char *)path),
							  .env = &no_env },
			       &err);

	assert_int_equal(r, -EINVAL);
	assert_non_null(strstr(err.message, "status 4"));
	assert_non_null(strstr(err.message, "no module named x"));
}

/* ---- ctest ---- */

#define CTEST                                                                            \
	"#!/bin/sh\ncat <<'END'\n"                                                       \
	"{ \"kind\": \"ctestInfo\", \"tests\": ["                                        \
	"{ \"name\": \"a b\", \"command\": [\"/bin/echo\", \"it's\", \"q\\\"\\u00e4\"]," \
	"  \"properties\": [ {\"name\": \"ENVIRONMENT\", \"value\": [\"A=b c\"]},"       \
	"  {\"name\": \"WORKING_DIRECTORY\", \"value\": \"/tmp\"} ] },"                  \
	"{ \"name\": \"off\", \"command\": [\"true\"],"                                  \
	"  \"properties\": [ {\"name\": \"DISABLED\", \"value\": true} ] },"             \
	"{ \"name\": \"no command\" },"                                                  \
	"{ \"name\": \"c\", \"command\": [\"false\"],"                                   \
	"  \"properties\": [ {\"name\": \"WILL_FAIL\", \"value\": true} ] } ] }\nEND\n"

static void ctest_becomes_a_script(void **state)
{
	const char *path = write_file("ctest", CTEST, 0755);
	AUTO(framework_deinit) struct framework f = { 0 };
	AUTO(trial_job_deinit) struct trial_job job = { 0 };
	const char *script;

	open_framework(&f, "auto", WORDS((char *)path), NULL);
	assert_ptr_equal(f.ops, &framework_ctest);
	is_argv(&f.items, IS("a b", "c"));
	build(&f, LIST(1, 0), 2, &job);
	is_argv(&job.argv, IS("/bin/sh", "/dir/run-tests.sh"));
	script = file_of(&job, "run-tests.sh");
	assert_non_null(strstr(script, "\nrun 1 c . 1 '' false\n"
				       "run 0 'a b' /tmp 0 '' env 'A=b c' /bin/echo 'it'\\''s' "
				       "'q\"\303\244'\nfinish\n"));
}

/* ---- JSON ---- */

static void json_is_read(void **state)
{
	static const char *const wrong[] = { "",	"{",   "[1,]",	   "{\"a\" 1}", "\"x",
					     "\"\\u12", "nul", "{\"a\":}", "[[[[" };
	AUTO(json_value_deinit) struct json_value value = { 0 };
	struct strbuf deep = { 0 };
	struct err err = { 0 };

	assert_int_equal(json_read(" {\"a\": [1, -2.5e3, \"x\\n\\ud83d\\ude00\"], \"b\": "
				   "true, \"c\": false, \"d\": null, \"e\": {}}",
				   &value, &err),
			 0);
	assert_string_equal(json_get(&value, "a")->items.items[1].text, "-2.5e3");
	assert_string_equal(json_get(&value, "a")->items.items[2].text, "x\n\360\237\230\200");
	assert_true(json_get(&value, "b")->truth);
	assert_false(json_get(&value, "c")->truth);
	assert_int_equal(json_get(&value, "d")->kind, JSON_NOTHING);
	assert_null(json_get(&value, "z"));
	assert_null(json_get_text(&value, "b"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct json_value none = { 0 };

		assert_int_equal(json_read(wrong[i], &none, &err), -EINVAL);
	}
	for (int i = 0; i < 100000; i++)
		strbuf_addc(&deep, '[');
	{
		struct json_value none = { 0 };

		assert_int_equal(json_read(strbuf_str(&deep), &none, &err), -EINVAL);
	}
	strbuf_deinit(&deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_tells_its_tests_itself),
		cmocka_unit_test(who_does_not_tell_is_not_asked),
		cmocka_unit_test(a_list_goes_where_the_command_says),
		cmocka_unit_test(a_place_within_a_word_is_repeated),
		cmocka_unit_test(googletest_lists),
		cmocka_unit_test(a_long_filter_needs_no_long_argument),
		cmocka_unit_test(pytest_keeps_options_and_replaces_paths),
		cmocka_unit_test(a_framework_that_cannot_list_says_why),
		cmocka_unit_test(ctest_becomes_a_script),
		cmocka_unit_test(json_is_read),
	};

	return cmocka_run_group_tests_name("framework", tests, setup, teardown);
}
