#include "run/testline.h"

#include <assert.h>
#include <regex.h>
#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"

/* Three that are in use, in UTF-8. */
#define CROSS "(\xe2\x9c\x95|\xe2\x9c\x96|\xe2\x9c\x97)"

/*
 * To add a framework: one row per kind of line. `needle` is a plain string that
 * every such line contains (most output lines match nothing, and searching
 * for it is far cheaper than a regular expression); `group` holds the name.
 */
static const struct pattern {
	enum test_event event;
	const char *needle;
	const char *regex;
	size_t group;
} patterns[] = {
	/* a program that tells redhand itself */
	{ TEST_STARTED, "REDHAND> ", "^REDHAND> (.+)$", 1 },
	/* googletest */
	{ TEST_STARTED, "[ RUN", "^\\[ RUN +\\] ([^ ,]+)", 1 },
	{ TEST_PASSED, "OK ]", "^\\[ +OK \\] ([^ ,]+)", 1 },
	{ TEST_PASSED, "[  SKIPPED ]", "^\\[  SKIPPED \\] ([^ ,]+)", 1 },
	{ TEST_FAILED, "FAILED", "^\\[ +FAILED +\\] ([^ ,0-9][^ ,]*)", 1 },
	/* pytest -v, whose start line is the unfinished beginning of the result line. The name
	 * starts with a file's, which tells it from a C++ name in somebody's log. */
	{ TEST_PASSED, "::", "^([^ ]+\\.[a-z]+::.*) (PASSED|SKIPPED|XFAIL|XPASS)( |$)", 1 },
	{ TEST_FAILED, "::", "^([^ ]+\\.[a-z]+::.*) (FAILED|ERROR)( |$)", 1 },
	{ TEST_FAILED, "::", "^(FAILED|ERROR) ([^ ]+\\.[a-z]+::[^ ]+(\\[.*\\])?)", 2 },
	{ TEST_STARTED, "::", "^([^ ]+\\.py::[^ ]+(\\[.*\\])?) ?$", 1 },
	/* unittest -v; the same */
	{ TEST_PASSED, " ... ", "^([A-Za-z_0-9]+ \\([^)]+\\)) \\.\\.\\. (ok|skipped|expected)", 1 },
	{ TEST_FAILED, " ... ", "^([A-Za-z_0-9]+ \\([^)]+\\)) \\.\\.\\. (FAIL|ERROR)", 1 },
	{ TEST_FAILED, ": ", "^(FAIL|ERROR): ([A-Za-z_0-9]+ \\([^)]+\\))", 2 },
	{ TEST_STARTED, " ...", "^([A-Za-z_0-9]+ \\([^)]+\\)) \\.\\.\\. ?$", 1 },
	/* Rust's libtest */
	{ TEST_PASSED, "test ", "^test ([^ ]+) \\.\\.\\. (ok|ignored)", 1 },
	{ TEST_FAILED, "test ", "^test ([^ ]+) \\.\\.\\. FAILED", 1 },
	{ TEST_STARTED, "test ", "^test ([^ ]+) \\.\\.\\. ?$", 1 },
	/* go test -v */
	{ TEST_STARTED, "=== RUN", "^=== RUN +([^ ]+)", 1 },
	{ TEST_PASSED, "--- ", "^ *--- (PASS|SKIP): ([^ ]+)", 2 },
	{ TEST_FAILED, "--- FAIL", "^ *--- FAIL: ([^ ]+)", 1 },
	/* ctest */
	{ TEST_STARTED, "Start ", "^ +Start +[0-9]+: ([^ ]+)", 1 },
	{ TEST_PASSED, "Test ", "Test +#[0-9]+: ([^ ]+) .*(Passed|Skipped|Not Run)", 1 },
	{ TEST_FAILED, "Test ", "Test +#[0-9]+: ([^ ]+) .*\\*\\*\\*", 1 },
	/* Catch2: -r automake, -d yes (as doctest has it); -r teamcity, as of others.
	 * By itself it names only tests that fail, in lines that nothing marks. */
	{ TEST_PASSED, ":test-result: ", "^:test-result: (PASS|SKIP|XFAIL) (.+)$", 2 },
	{ TEST_FAILED, ":test-result: ", "^:test-result: (FAIL|XPASS|ERROR) (.+)$", 2 },
	{ TEST_STARTED, "##teamcity[", "^##teamcity\\[testStarted name='([^']+)'", 1 },
	{ TEST_FAILED, "##teamcity[", "^##teamcity\\[testFailed name='([^']+)'", 1 },
	{ TEST_ENDED, "##teamcity[", "^##teamcity\\[testFinished name='([^']+)'", 1 },
	{ TEST_ENDED, " s: ", "^[0-9]+\\.[0-9]{3}([0-9]{3})? s: (.+)$", 2 },
	/* doctest, before what it has to say of a test */
	{ TEST_STARTED, "TEST CASE:  ", "^TEST CASE:  (.+)$", 1 },
	/* Criterion --verbose */
	{ TEST_STARTED, "[RUN ", "^\\[RUN +\\] ([^ :]+::[^ :]+)", 1 },
	{ TEST_PASSED, "[", "^\\[(PASS|SKIP)\\] ([^ :]+::[^ :]+)", 2 },
	{ TEST_FAILED, "[FAIL", "^\\[FAIL\\] ([^ :]+::[^ :]+)", 1 },
	/* Check, with CK_VERBOSE */
	{ TEST_PASSED, ":P:", "^[^ :]+:[0-9]+:P:([^:]+:[^:]+):[0-9]+: ", 1 },
	{ TEST_FAILED, ":", "^[^ :]+:[0-9]+:[FE]:([^:]+:[^:]+):[0-9]+: ", 1 },
	/* Boost.Test, --log_level=test_suite */
	{ TEST_STARTED, "Entering test ", "Entering test case \"([^\"]+)\"", 1 },
	{ TEST_ENDED, "Leaving test ", "Leaving test case \"([^\"]+)\"", 1 },
	/* QtTest */
	{ TEST_PASSED, "   : ", "^(PASS|SKIP)   : ([A-Za-z_0-9]+::[^ ]+)", 2 },
	{ TEST_FAILED, "FAIL!  : ", "^FAIL!  : ([A-Za-z_0-9]+::[^ ]+)", 1 },
	/* jest --verbose, mocha, node --test, bats; the time is no part of the name */
	{ TEST_PASSED, "\xe2\x9c\x93 ", "^ *\xe2\x9c\x93 (.+) \\([0-9.]+ ?m?s\\)$", 1 },
	{ TEST_PASSED, "\xe2\x9c\x93 ", "^ *\xe2\x9c\x93 (.+)$", 1 },
	{ TEST_PASSED, "\xe2\x9c\x94 ", "^ *\xe2\x9c\x94 (.+) \\([0-9.]+ ?m?s\\)$", 1 },
	{ TEST_PASSED, "\xe2\x9c\x94 ", "^ *\xe2\x9c\x94 (.+)$", 1 },
	{ TEST_FAILED, "\xe2\x9c", "^ *" CROSS " (.+) \\([0-9.]+ ?m?s\\)$", 2 },
	{ TEST_FAILED, "\xe2\x9c", "^ *" CROSS " (.+)$", 2 },
	/* TAP; what is marked TODO is expected to fail */
	{ TEST_PASSED, "# TODO", "^not ok [0-9]+( -)? ([^#]+)# TODO", 2 },
	{ TEST_FAILED, "not ok", "^not ok [0-9]+( -)? ([^#]+)", 2 },
	{ TEST_PASSED, "ok ", "^ok [0-9]+( -)? ([^#]+)", 2 },
};

static const regex_t *compiled(size_t index)
{
	static regex_t cache[ARRAY_SIZE(patterns)];
	static bool done[ARRAY_SIZE(patterns)];

	if (!done[index]) {
		int r = regcomp(&cache[index], patterns[index].regex, REG_EXTENDED);

		assert(r == 0);
		(void)r;
		done[index] = true;
	}
	return &cache[index];
}

static char *trimmed(const char *text, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	while (len > 0 && text[len - 1] == ' ')
		len--;
	strbuf_add_printable(&sb, text, len);
	return strbuf_take(&sb);
}

enum test_event testline_read(const char *line, size_t len, char **ret_name)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		const struct pattern *p = &patterns[i];
		regmatch_t m[4] = { { .rm_so = 0, .rm_eo = (regoff_t)len } };

		if (!memmem(line, len, p->needle, strlen(p->needle)))
			continue;
		/* REG_STARTEND: the line may hold NUL bytes and need not end with one. */
		if (regexec(compiled(i), line, ARRAY_SIZE(m), m, REG_STARTEND) != 0)
			continue;
		*ret_name = trimmed(line + m[p->group].rm_so,
				    (size_t)(m[p->group].rm_eo - m[p->group].rm_so));
		return p->event;
	}
	return TEST_NONE;
}
