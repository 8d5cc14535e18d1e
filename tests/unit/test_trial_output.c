/*
 * run: what is kept of a trial's output, and what its lines say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/fd.h"
#include "run/breadcrumb.h"
#include "run/capture.h"
#include "run/output.h"
#include "run/testline.h"
#include "scratch.h"

static int setup(void **state)
{
	static struct scratch s;

	scratch_make(&s);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(*state);
	return 0;
}

static uint32_t next_random(uint32_t *at)
{
	*at ^= *at << 13;
	*at ^= *at >> 17;
	*at ^= *at << 5;
	return *at;
}

/* ---- capture ---- */

/* Every line in angle brackets, with the length where it is long. */
static void take_line(void *ctx, const char *line, size_t len)
{
	struct strbuf *lines = ctx;

	if (len > 100) {
		strbuf_addf(lines, "<%zu>", len);
		return;
	}
	strbuf_addc(lines, '<');
	strbuf_add_printable(lines, line, len);
	strbuf_addc(lines, '>');
}

static void saved_is(const struct scratch *s, const struct capture *c, const char *want, size_t len)
{
	AUTO(mem_freep) char *got = NULL;
	struct err err = { 0 };
	size_t got_len;

	assert_int_equal(capture_save(c, s->fd, "stdout", &err), 0);
	assert_int_equal(file_read(scratch_path(s, "stdout"), 1 << 20, &got, &got_len, &err), 0);
	assert_int_equal(got_len, len);
	assert_memory_equal(got, want, len);
}

static void saves(const struct scratch *s, uint64_t limit, const char *bytes, const char *want)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	AUTO(capture_deinit) struct capture c;

	capture_init(&c, limit, take_line, &lines);
	capture_add(&c, bytes, strlen(bytes));
	capture_finish(&c);
	assert_int_equal(c.total, strlen(bytes));
	saved_is(s, &c, want, strlen(want));
}

#define GAP(n) "\n[redhand: " #n " bytes left out here; see --output-limit]\n"

static void capture_keeps_head_and_end(void **state)
{
	saves(*state, 0, "", "");
	saves(*state, 0, "hello", GAP(5));
	saves(*state, 1, "", "");
	saves(*state, 1, "h", "h");
	saves(*state, 1, "hello", GAP(4) "o");
	saves(*state, 8, "ab", "ab");
	saves(*state, 8, "abcdefgh", "abcdefgh");
	saves(*state, 8, "abcdefghi", "ab" GAP(1) "defghi");
	saves(*state, 8, "abcdefghijklmnopqrstuvwxyz", "ab" GAP(18) "uvwxyz");
	saves(*state, 1 << 20, "all of it\n", "all of it\n");
}

/* Against the plain definition: the first quarter, the last three, the number between. */
static void capture_does_not_care_how_bytes_arrive(void **state)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	uint32_t at = 4711;

	for (int round = 0; round < 300; round++) {
		AUTO(capture_deinit) struct capture c;
		AUTO(strbuf_deinit) struct strbuf all = { 0 };
		AUTO(strbuf_deinit) struct strbuf want = { 0 };
		size_t limit = next_random(&at) % 40, head = limit / 4, ring = limit - head;

		capture_init(&c, limit, take_line, &lines);
		/* The second trial of the same capture must not see the first one's bytes. */
		if (round % 2) {
			capture_add(&c, "left over from the trial before, and long", 41);
			capture_reset(&c);
		}
		for (unsigned int parts = next_random(&at) % 12; parts > 0; parts--) {
			char bytes[30];
			size_t len = next_random(&at) % sizeof(bytes);

			for (size_t i = 0; i < len; i++)
				bytes[i] = (char)('a' + (all.len + i) % 26);
			capture_add(&c, bytes, len);
			strbuf_add(&all, bytes, len);
		}
		if (all.len <= limit) {
			strbuf_add(&want, strbuf_str(&all), all.len);
		} else {
			strbuf_add(&want, all.data, head);
			strbuf_addf(&want,
				    "\n[redhand: %zu bytes left out here; see --output-limit]\n",
				    all.len - limit);
			strbuf_add(&want, all.data + all.len - ring, ring);
		}
		assert_int_equal(c.total, all.len);
		saved_is(*state, &c, strbuf_str(&want), want.len);
	}
}

static void lines_are(const char *want, const char *const *parts)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	AUTO(capture_deinit) struct capture c;

	capture_init(&c, 0, take_line, &lines);
	for (; *parts; parts++)
		capture_add(&c, *parts, strlen(*parts));
	capture_finish(&c);
	assert_string_equal(strbuf_str(&lines), want);
}

#define LINES(want, ...) lines_are(want, (const char *const[]){ __VA_ARGS__, NULL })

static void capture_splits_lines(void **state)
{
	LINES("", "");
	LINES("<one><two>", "one\ntwo\n");
	LINES("<one><two>", "one\ntwo"); /* the last one unfinished */
	LINES("<one><two>", "o", "n", "e", "\n", "tw", "o");
	LINES("<><><a>", "\n\na\n");
	LINES("<dos><unix>", "dos\r\nunix\n");
	LINES("<split><next>", "split\r", "\nnext");
	LINES("<\\x0d><a\\x0db>", "\r\r\n", "a\rb\n");
	LINES("<bare>", "bare\r");
}

static void capture_passes_nul_bytes(void **state)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	AUTO(capture_deinit) struct capture c;

	capture_init(&c, 100, take_line, &lines);
	capture_add(&c, "a\0b\n\0\n", 6);
	capture_finish(&c);
	assert_string_equal(strbuf_str(&lines), "<a\\x00b><\\x00>");
	saved_is(*state, &c, "a\0b\n\0\n", 6);
}

static void capture_cuts_long_lines(void **state)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	AUTO(strbuf_deinit) struct strbuf big = { 0 };
	AUTO(capture_deinit) struct capture c;

	for (int i = 0; i < 10000; i++)
		strbuf_addc(&big, 'x');
	capture_init(&c, 0, take_line, &lines);
	capture_add(&c, big.data, CAPTURE_LINE_MAX); /* just fits */
	capture_add(&c, "\n", 1);
	capture_add(&c, big.data, big.len); /* in one piece */
	capture_add(&c, "\nshort\n", 7);
	for (int i = 0; i < 10; i++)
		capture_add(&c, big.data, 1000); /* in many */
	capture_add(&c, "\r\nend", 5);
	capture_finish(&c);
	assert_string_equal(strbuf_str(&lines), "<4096><4096><short><4096><end>");
}

/* ---- crumb ---- */

static void crumb_is(const char *line, const char *want)
{
	AUTO(mem_freep) char *got = crumb_from_line(line, strlen(line));

	assert_string_equal(got, want);
}

static void crumbs_mask_what_varies(void **state)
{
	crumb_is("node at 0x7ffd12ab34cd done", "node at * done");
	crumb_is("0xDEAD 0XBEEF", "* *");
	crumb_is("12:34:56.789 start", "* start");
	crumb_is("[12:34] start", "[*] start");
	crumb_is("2024-06-07 12:34:56 start", "* * start");
	crumb_is("2024-06-07T12:34:56.789Z start", "*Z start");
	crumb_is("took 12.5 ms", "took * ms");
	crumb_is("took 7 ms, 9us, 3s", "took * ms, *us, *s");
	crumb_is("[       OK ] Suite.Case (12 ms)", "[       OK ] Suite.Case (* ms)");
	crumb_is("read 512 bytes, 4 KiB", "read * bytes, * KiB");
	crumb_is("pid 123456 says 98765", "pid * says *");
	crumb_is("address=0x10,next=0x20", "address=*,next=*");
}

static void crumbs_keep_names(void **state)
{
	static const char *const same[] = {
		"Scheduler2",
		"Test.Name/3",
		"[PreSegmenter] Running pass 12...",
		"iteration 1234",
		"x86_64 utf8",
		"test_issue1270",
		"sm80 v2 a_12345 abc123456",
		"3 strings of 5 sets",
		"caf\xc3\xa9 17",
		"0x is no number",
		"1234-5-6",
	};

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		crumb_is(same[i], same[i]);
}

static void crumbs_mask_names_drawn_at_random(void **state)
{
	crumb_is("session 3f2504e0-4f89-41d3-9a0c-0305e82c3301 ended", "session * ended");
	crumb_is("at commit 94e309b07ec5:", "at commit *:");
	crumb_is("no /tmp/tmp.aB3xYz9QpL/plan", "no /tmp/*/plan");
	crumb_is("no /tmp/tmpx8_k2v9q", "no /tmp/*");
	crumb_is("deadbeef facade added", "deadbeef facade added");
	crumb_is("Fp16ToFp32Cast abc12345x", "Fp16ToFp32Cast abc12345x");
	crumb_is("/src/tmp.c and /src/tmp_buffer.c /tmp", "/src/tmp.c and /src/tmp_buffer.c /tmp");
}

static void crumbs_drop_colours(void **state)
{
	crumb_is("\033[0;32m[ RUN      ] \033[mSuite.Case", "[ RUN      ] Suite.Case");
	crumb_is("\033[31m12345\033[0m", "*");
	crumb_is("a\033[38;5;196mb\033[K", "ab");
	crumb_is("a\033(Bc", "aBc"); /* ESC and one byte */
	crumb_is("a\033[31", "a");   /* cut off in the middle */
	crumb_is("a\033", "*");
	crumb_is("bell\007", "*");
}

static void crumbs_are_trimmed_and_short(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(mem_freep) char *got = NULL;

	crumb_is("", "");
	crumb_is(" \t ", "");
	crumb_is("  text \t\r", "  text");
	/* A character is not cut in two where the line is. */
	strbuf_addc(&sb, 'x');
	while (sb.len < 5000)
		strbuf_adds(&sb, "\xc3\xa9");
	got = crumb_from_line(sb.data, sb.len);
	assert_true(strlen(got) < 400);
	assert_null(strchr(got, '\\'));
}

static void crumb_with_nul_bytes(void **state)
{
	AUTO(mem_freep) char *got = crumb_from_line("a\0b", 3);

	assert_string_equal(got, "*");
}

static void all_numbers_can_be_masked(void **state)
{
	AUTO(mem_freep) char *got = crumb_mask_numbers("Scheduler2: item 17 of 1234 at *");
	AUTO(mem_freep) char *none = crumb_mask_numbers("");

	assert_string_equal(got, "Scheduler*: item * of * at *");
	assert_string_equal(none, "");
}

/* ---- testline ---- */

static void reads(enum test_event want, const char *line, const char *want_name)
{
	/* More follows in memory, as in a buffer with several lines. */
	size_t len = strlen(line);
	AUTO(mem_freep) char *copy = mem_printf("%s.Behind ok FAILED", line);
	AUTO(mem_freep) char *name = NULL;
	enum test_event got;

	got = testline_read(copy, len, &name);
	if (got != want)
		fail_msg("'%s' is %d, not %d (%s)", line, (int)got, (int)want, name ? name : "");
	if (want_name)
		assert_string_equal(name, want_name);
	else
		assert_null(name);
}

static void testline_googletest(void **state)
{
	reads(TEST_STARTED, "[ RUN      ] Suite.Case", "Suite.Case");
	reads(TEST_STARTED, "[ RUN      ] All/Suite.Case/17", "All/Suite.Case/17");
	reads(TEST_PASSED, "[       OK ] Suite.Case (12 ms)", "Suite.Case");
	reads(TEST_PASSED, "[  SKIPPED ] Suite.Case (0 ms)", "Suite.Case");
	reads(TEST_FAILED, "[  FAILED  ] Suite.Case (3 ms)", "Suite.Case");
	reads(TEST_FAILED, "[  FAILED  ] All/Suite.Case/1, where GetParam() = 7 (0 ms)",
	      "All/Suite.Case/1");
	reads(TEST_NONE, "[  FAILED  ] 2 tests, listed below:", NULL);
	reads(TEST_NONE, "[  PASSED  ] 57 tests.", NULL);
	reads(TEST_NONE, "[==========] Running 59 tests from 4 test suites.", NULL);
	reads(TEST_NONE, "[----------] 3 tests from Suite (4 ms total)", NULL);
	reads(TEST_NONE, "note: [ RUN      ] Suite.Case", NULL);
}

static void testline_pytest(void **state)
{
	reads(TEST_STARTED, "tests/test_a.py::test_one ", "tests/test_a.py::test_one");
	reads(TEST_STARTED, "tests/test_a.py::TestA::test_one[x y]",
	      "tests/test_a.py::TestA::test_one[x y]");
	reads(TEST_PASSED, "tests/test_a.py::test_one PASSED                      [ 50%]",
	      "tests/test_a.py::test_one");
	reads(TEST_PASSED, "tests/test_a.py::test_one[a b] PASSED [100%]",
	      "tests/test_a.py::test_one[a b]");
	reads(TEST_PASSED, "tests/test_a.py::test_one SKIPPED (no gpu) [ 50%]",
	      "tests/test_a.py::test_one");
	reads(TEST_PASSED, "tests/test_a.py::test_one XFAIL (known)", "tests/test_a.py::test_one");
	reads(TEST_FAILED, "tests/test_a.py::test_two FAILED [100%]", "tests/test_a.py::test_two");
	reads(TEST_FAILED, "tests/test_a.py::test_two ERROR", "tests/test_a.py::test_two");
	reads(TEST_FAILED, "FAILED tests/test_a.py::test_two - AssertionError: assert 1 == 2",
	      "tests/test_a.py::test_two");
	reads(TEST_FAILED, "FAILED tests/test_a.py::test_two[a b] - x",
	      "tests/test_a.py::test_two[a b]");
	reads(TEST_FAILED, "ERROR tests/test_a.py::test_three", "tests/test_a.py::test_three");
	reads(TEST_NONE, "tests/test_a.py ..F.", NULL);
	reads(TEST_NONE, "=========== 1 failed, 2 passed in 0.12s ===========", NULL);
}

static void testline_unittest(void **state)
{
	reads(TEST_STARTED, "test_one (mod.TestA.test_one) ... ", "test_one (mod.TestA.test_one)");
	reads(TEST_STARTED, "test_one (mod.TestA.test_one) ...", "test_one (mod.TestA.test_one)");
	reads(TEST_PASSED, "test_one (mod.TestA.test_one) ... ok", "test_one (mod.TestA.test_one)");
	reads(TEST_PASSED, "test_one (mod.TestA) ... skipped 'why'", "test_one (mod.TestA)");
	reads(TEST_PASSED, "test_one (mod.TestA) ... expected failure", "test_one (mod.TestA)");
	reads(TEST_FAILED, "test_one (mod.TestA) ... FAIL", "test_one (mod.TestA)");
	reads(TEST_FAILED, "test_one (mod.TestA) ... ERROR", "test_one (mod.TestA)");
	reads(TEST_FAILED, "FAIL: test_one (mod.TestA)", "test_one (mod.TestA)");
	reads(TEST_FAILED, "ERROR: test_one (mod.TestA.test_one)", "test_one (mod.TestA.test_one)");
	reads(TEST_NONE, "ERROR: cannot open file", NULL);
	reads(TEST_NONE, "FAILED (failures=1)", NULL);
	reads(TEST_NONE, "loading (please wait) ... 50%", NULL);
}

static void testline_libtest(void **state)
{
	reads(TEST_STARTED, "test tests::it_works ... ", "tests::it_works");
	reads(TEST_PASSED, "test tests::it_works ... ok", "tests::it_works");
	reads(TEST_PASSED, "test tests::slow ... ignored", "tests::slow");
	reads(TEST_FAILED, "test tests::broken ... FAILED", "tests::broken");
	reads(TEST_NONE, "test result: FAILED. 1 passed; 1 failed; 0 ignored", NULL);
	reads(TEST_NONE, "running 2 tests", NULL);
}

static void testline_of_other_frameworks(void **state)
{
	(void)state;
	/* Catch2 and doctest */
	reads(TEST_PASSED, ":test-result: PASS Vectors can be resized", "Vectors can be resized");
	reads(TEST_FAILED, ":test-result: FAIL it breaks", "it breaks");
	reads(TEST_STARTED, "##teamcity[testStarted name='a |n b']", "a |n b");
	reads(TEST_FAILED, "##teamcity[testFailed name='two' message='x']", "two");
	reads(TEST_ENDED, "##teamcity[testFinished name='two' duration='0']", "two");
	reads(TEST_ENDED, "0.000 s: Vectors can be resized", "Vectors can be resized");
	reads(TEST_ENDED, "0.000012 s: adds numbers", "adds numbers");
	reads(TEST_STARTED, "TEST CASE:  adds numbers", "adds numbers");
	reads(TEST_NONE, "took 0.5 s: slow", NULL);
	/* Criterion, Check, Boost.Test, QtTest */
	reads(TEST_STARTED, "[RUN ] list::push", "list::push");
	reads(TEST_PASSED, "[PASS] list::push: (0.00s)", "list::push");
	reads(TEST_FAILED, "[FAIL] list::pop: (0.00s)", "list::pop");
	reads(TEST_NONE, "[----]   Warning! The test `a::b` crashed", NULL);
	reads(TEST_PASSED, "check_list.c:12:P:Core:test_push:0: Passed", "Core:test_push");
	reads(TEST_FAILED, "check_list.c:19:F:Core:test_pop:0: Assertion failed", "Core:test_pop");
	reads(TEST_FAILED, "check_list.c:19:E:Core:test_pop:0: (after this point) 11",
	      "Core:test_pop");
	reads(TEST_STARTED, "list.cpp(5): Entering test case \"push\"", "push");
	reads(TEST_ENDED, "list.cpp(5): Leaving test case \"push\"; testing time: 12us", "push");
	reads(TEST_PASSED, "PASS   : TestList::push(row 1)", "TestList::push(row");
	reads(TEST_FAILED, "FAIL!  : TestList::pop() 'x' returned FALSE", "TestList::pop()");
	/* jest, mocha, node --test, bats */
	reads(TEST_PASSED, "    \u2713 adds numbers (12 ms)", "adds numbers");
	reads(TEST_PASSED, "  \u2714 adds numbers", "adds numbers");
	reads(TEST_PASSED, "\u2714 adds (two) numbers (1.5ms)", "adds (two) numbers");
	reads(TEST_FAILED, "    \u2715 divides (3 ms)", "divides");
	reads(TEST_FAILED, " \u2717 divides", "divides");
	reads(TEST_FAILED, "\u2716 divides (0.2ms)", "divides");
	reads(TEST_NONE, "a \u2713 in the middle", NULL);
}

static void testline_go(void **state)
{
	reads(TEST_STARTED, "=== RUN   TestOne", "TestOne");
	reads(TEST_STARTED, "=== RUN   TestOne/sub_case", "TestOne/sub_case");
	reads(TEST_PASSED, "--- PASS: TestOne (0.00s)", "TestOne");
	reads(TEST_PASSED, "    --- PASS: TestOne/sub_case (0.00s)", "TestOne/sub_case");
	reads(TEST_PASSED, "--- SKIP: TestTwo (0.00s)", "TestTwo");
	reads(TEST_FAILED, "--- FAIL: TestOne (0.10s)", "TestOne");
	reads(TEST_FAILED, "    --- FAIL: TestOne/sub_case (0.00s)", "TestOne/sub_case");
	reads(TEST_NONE, "ok  \texample.com/pkg\t0.012s", NULL);
	reads(TEST_NONE, "FAIL\texample.com/pkg\t0.012s", NULL);
	reads(TEST_NONE, "=== CONT  TestOne", NULL);
}

static void testline_ctest(void **state)
{
	reads(TEST_STARTED, "    Start  1: unit_math", "unit_math");
	reads(TEST_STARTED, "      Start 12: unit_io", "unit_io");
	reads(TEST_PASSED,
	      " 1/12 Test  #1: unit_math ........................   Passed    0.01 sec",
	      "unit_math");
	reads(TEST_PASSED,
	      " 1/12 Test  #1: unit_math ........................***Skipped   0.01 sec",
	      "unit_math");
	reads(TEST_FAILED, "2/12 Test #12: unit_io ..........................***Failed    0.02 sec",
	      "unit_io");
	reads(TEST_FAILED,
	      "2/12 Test #12: unit_io ..........................***Exception: SegFault  0.02 sec",
	      "unit_io");
	reads(TEST_FAILED, "2/12 Test #12: unit_io ..........................***Timeout   1.00 sec",
	      "unit_io");
	reads(TEST_NONE, "Start the engine", NULL);
	reads(TEST_NONE, "Test project /src/build", NULL);
}

static void testline_tap(void **state)
{
	reads(TEST_PASSED, "ok 1 - opens the file", "opens the file");
	reads(TEST_PASSED, "ok 2 closes it", "closes it");
	reads(TEST_PASSED, "ok 3 - later # SKIP no network", "later");
	reads(TEST_FAILED, "not ok 4 - reads the file", "reads the file");
	reads(TEST_FAILED, "not ok 5 writes it", "writes it");
	/* Expected to fail, says the protocol: no failure. */
	reads(TEST_PASSED, "not ok 6 - some day # TODO not written", "some day");
	reads(TEST_NONE, "1..5", NULL);
	reads(TEST_NONE, "# ok 1 - a comment", NULL);
	reads(TEST_NONE, "ok then", NULL);
	reads(TEST_NONE, "not ok at all", NULL);
}

static void testline_ordinary_lines(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"Segmentation fault (core dumped)",
		"[PreSegmenter] Running Pass...",
		"terminate called after throwing an instance of 'std::bad_alloc'",
		"nvfuser::Fusion::print: 5 nodes",
		"the test was ok ...",
		"OK ]",
		"[ RUN",
		"FAILED",
		"::",
		"::::",
		"--- ",
		"--- a/file.c",
		"+++ b/file.c",
		"Test #",
		"ok 1",
		"std::vector<int> ERROR bad size",
		"[core::fuser] ERROR cannot open",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		reads(TEST_NONE, lines[i], NULL);
}

static void testline_takes_any_bytes(void **state)
{
	AUTO(mem_freep) char *name = NULL;
	uint32_t at = 99;

	assert_int_equal(testline_read("[ RUN      ] A\0B\033[31m", 21, &name), TEST_STARTED);
	assert_string_equal(name, "A\\x00B\\x1b[31m");
	for (int round = 0; round < 500; round++) {
		static const char *const starts[] = { "[ RUN      ] ", "ok 1 - ",
						      "x.py::", "=== RUN " };
		char line[200] = "";
		size_t len = next_random(&at) % 100;
		AUTO(mem_freep) char *got = NULL;
		const char *start = starts[round % 4];

		memcpy(line, start, strlen(start));
		for (size_t i = 0; i < len; i++)
			line[strlen(start) + i] = (char)next_random(&at);
		(void)testline_read(line, strlen(start) + len, &got);
		for (const char *c = got; c && *c != '\0'; c++)
			assert_true((unsigned char)*c >= 0x20 || *c == '\t');
	}
}

/* ---- output: all of it together ---- */

static void see(const struct trial_settings *settings, const char *out, bool learn,
		struct trial_end *ret)
{
	struct output o;

	output_init(&o, settings);
	output_begin(&o, ret, learn ? OUTPUT_PAIRS : 0);
	capture_add(&o.out, out, strlen(out));
	capture_add(&o.err, "warning\n", 8);
	output_finish(&o);
	output_deinit(&o);
}

static void a_trial_s_own_directory_is_no_place_of_its_own(void **state)
{
	char tmp[] = "/tmp/redhand-x";
	struct trial_settings settings = { .output_limit = 100, .trials.tmp_dirs = tmp };
	AUTO(trial_end_deinit) struct trial_end inside = { 0 };
	AUTO(trial_end_deinit) struct trial_end other = { 0 };

	see(&settings, "no /tmp/redhand-x/17/x, /tmp/redhand-x/17", false, &inside);
	assert_string_equal(inside.last_crumb, "no $TMPDIR/x, $TMPDIR");
	see(&settings, "no /tmp/redhand-x/case /tmp/redhand-x", false, &other);
	assert_string_equal(other.last_crumb, "no /tmp/redhand-x/case /tmp/redhand-x");
}

static void output_knows_the_running_test(void **state)
{
	struct trial_settings settings = { .output_limit = 100 };
	AUTO(trial_end_deinit) struct trial_end plain = { 0 };
	AUTO(trial_end_deinit) struct trial_end coloured = { 0 };
	AUTO(trial_end_deinit) struct trial_end ended = { 0 };

	see(&settings, "[ RUN      ] A.a\n[  FAILED  ] A.a (0 ms)\n[ RUN      ] A.b\nworking",
	    false, &plain);
	assert_string_equal(plain.running_test, "A.b");
	assert_int_equal(plain.failed_tests.count, 1);
	assert_string_equal(plain.failed_tests.items[0], "A.a");
	assert_string_equal(plain.last_crumb, "working"); /* finished before stderr's */
	assert_int_equal(plain.stdout_bytes, 65);
	assert_int_equal(plain.stderr_bytes, 8);
	/* On a terminal googletest writes in colour. */
	see(&settings,
	    "\033[0;32m[ RUN      ] \033[mA.a\n\033[0;31m[  FAILED  ] \033[mA.a (0 ms)\n"
	    "\033[0;32m[ RUN      ] \033[mA.b\n",
	    false, &coloured);
	assert_string_equal(coloured.running_test, "A.b");
	assert_int_equal(coloured.failed_tests.count, 1);
	assert_string_equal(coloured.failed_tests.items[0], "A.a");
	see(&settings, "[ RUN      ] A.a\n[       OK ] A.a (0 ms)\n", false, &ended);
	assert_null(ended.running_test);
	assert_int_equal(ended.failed_tests.count, 0);
	assert_int_equal(ended.pairs.count, 0);
}

static void output_learns_the_order(void **state)
{
	struct trial_settings settings = { .breadcrumb.given = true };
	AUTO(trial_end_deinit) struct trial_end end = { 0 };
	struct fail_on rule = { .pattern = NULL };

	assert_int_equal(regcomp(&settings.breadcrumb.regex, "^Pass", REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regcomp(&rule.regex, "^ERR.*[0-9]", REG_EXTENDED | REG_NOSUB), 0);
	VEC_PUSH(&settings.fail_on, rule);
	see(&settings, "Pass A\nnoise\n\033[1mERR 12345 one\033[m\nERR 2\nPass B\n", true, &end);
	assert_int_equal(end.pairs.count, 3);
	assert_string_equal(end.pairs.items[0].from, CRUMB_START);
	assert_string_equal(end.pairs.items[0].to, "Pass A");
	assert_string_equal(end.pairs.items[1].to, "Pass B");
	assert_string_equal(end.pairs.items[2].from, "Pass B");
	assert_string_equal(end.pairs.items[2].to, CRUMB_END);
	assert_string_equal(end.last_crumb, "Pass B");
	assert_string_equal(end.matched, "ERR * one"); /* the first, colours or not */
	trial_settings_deinit(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(capture_keeps_head_and_end, setup, teardown),
		cmocka_unit_test_setup_teardown(capture_does_not_care_how_bytes_arrive, setup,
						teardown),
		cmocka_unit_test(capture_splits_lines),
		cmocka_unit_test_setup_teardown(capture_passes_nul_bytes, setup, teardown),
		cmocka_unit_test(capture_cuts_long_lines),
		cmocka_unit_test(crumbs_mask_what_varies),
		cmocka_unit_test(crumbs_keep_names),
		cmocka_unit_test(crumbs_mask_names_drawn_at_random),
		cmocka_unit_test(crumbs_drop_colours),
		cmocka_unit_test(crumbs_are_trimmed_and_short),
		cmocka_unit_test(crumb_with_nul_bytes),
		cmocka_unit_test(all_numbers_can_be_masked),
		cmocka_unit_test(testline_googletest),
		cmocka_unit_test(testline_pytest),
		cmocka_unit_test(testline_unittest),
		cmocka_unit_test(testline_libtest),
		cmocka_unit_test(testline_go),
		cmocka_unit_test(testline_of_other_frameworks),
		cmocka_unit_test(testline_ctest),
		cmocka_unit_test(testline_tap),
		cmocka_unit_test(testline_ordinary_lines),
		cmocka_unit_test(testline_takes_any_bytes),
		cmocka_unit_test(a_trial_s_own_directory_is_no_place_of_its_own),
		cmocka_unit_test(output_knows_the_running_test),
		cmocka_unit_test(output_learns_the_order),
	};

	return cmocka_run_group_tests_name("trial_output", tests, NULL, NULL);
}
