#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void test_fail(struct test_run *t, const char *file, int line, const char *message)
{
	t->failures++;
	printf("%s:%d: Failure\n%s\n", file, line, message);
}

void test_expect(struct test_run *t, bool holds, const char *file, int line, const char *text)
{
	if (holds)
		return;
	t->failures++;
	printf("%s:%d: Failure\nValue of: %s\n  Actual: false\nExpected: true\n", file, line, text);
}

void test_expect_eq(struct test_run *t, long long a, long long b, const char *file, int line,
		    const char *a_text, const char *b_text)
{
	if (a == b)
		return;
	t->failures++;
	printf("%s:%d: Failure\nExpected equality of these values:\n  %s\n    Which is: %lld\n"
	       "  %s\n    Which is: %lld\n",
	       file, line, a_text, a, b_text, b);
}

/* Matches the whole of `name` against one pattern, which ends at `end`. */
static bool glob_match(const char *pattern, const char *end, const char *name)
{
	if (pattern == end)
		return *name == '\0';
	if (*pattern == '*')
		return glob_match(pattern + 1, end, name) ||
		       (*name && glob_match(pattern, end, name + 1));
	return *name && (*pattern == '?' || *pattern == *name) &&
	       glob_match(pattern + 1, end, name + 1);
}

/* Does any of the patterns in [list, end), separated by colons, match? */
static bool any_match(const char *list, const char *end, const char *name)
{
	while (true) {
		const char *colon = memchr(list, ':', (size_t)(end - list));

		if (glob_match(list, colon ? colon : end, name))
			return true;
		if (!colon)
			return false;
		list = colon + 1;
	}
}

bool harness_selects(const char *filter, const char *name)
{
	const char *minus, *end;

	if (!filter)
		return true;
	end = filter + strlen(filter);
	minus = strchr(filter, '-');
	if (!minus)
		return any_match(filter, end, name);
	return (minus == filter || any_match(filter, minus, name)) &&
	       !any_match(minus + 1, end, name);
}

static bool selects_case(const char *filter, const struct test_case *c, char *name, size_t size)
{
	(void)snprintf(name, size, "%s.%s", c->suite, c->name);
	return harness_selects(filter, name);
}

void harness_list(const struct test_case *cases, const char *filter)
{
	const char *suite = "";
	char name[256];

	for (const struct test_case *c = cases; c->suite; c++) {
		if (!selects_case(filter, c, name, sizeof(name)))
			continue;
		if (strcmp(suite, c->suite) != 0)
			printf("%s.\n", c->suite);
		suite = c->suite;
		printf("  %s\n", c->name);
	}
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static const char *plural(int n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* How many selected cases follow in the same suite, this one included. */
static int count_suite(const struct test_case *c, const char *filter)
{
	const char *suite = c->suite;
	char name[256];
	int n = 0;

	for (; c->suite && strcmp(c->suite, suite) == 0; c++)
		n += selects_case(filter, c, name, sizeof(name));
	return n;
}

static bool run_case(const struct test_case *c, const char *name, struct compiler *compiler)
{
	struct test_run t = { .compiler = compiler };
	long long start = now_ms();

	printf("[ RUN      ] %s\n", name);
	c->body(&t);
	printf("%s %s (%lld ms)\n", t.failures ? "[  FAILED  ]" : "[       OK ]", name,
	       now_ms() - start);
	return t.failures == 0;
}

/* Runs the selected cases of the suite that begins at c; returns the first case of the next. */
static const struct test_case *run_suite(const struct test_case *c, const char *filter,
					 struct compiler *compiler, const struct test_case **failed,
					 int *nfailed)
{
	const char *suite = c->suite;
	int n = count_suite(c, filter);
	long long start = now_ms();
	char name[256];

	if (n)
		printf("[----------] %d %s from %s\n", n, plural(n, "test", "tests"), suite);
	for (; c->suite && strcmp(c->suite, suite) == 0; c++) {
		if (selects_case(filter, c, name, sizeof(name)) && !run_case(c, name, compiler))
			failed[(*nfailed)++] = c;
	}
	if (n)
		printf("[----------] %d %s from %s (%lld ms total)\n\n", n,
		       plural(n, "test", "tests"), suite, now_ms() - start);
	return c;
}

static void print_summary(int tests, int suites, long long ms, const struct test_case **failed,
			  int nfailed)
{
	printf("[----------] Global test environment tear-down\n");
	printf("[==========] %d %s from %d test %s ran. (%lld ms total)\n", tests,
	       plural(tests, "test", "tests"), suites, plural(suites, "suite", "suites"), ms);
	printf("[  PASSED  ] %d %s.\n", tests - nfailed, plural(tests - nfailed, "test", "tests"));
	if (!nfailed)
		return;
	printf("[  FAILED  ] %d %s, listed below:\n", nfailed, plural(nfailed, "test", "tests"));
	for (int i = 0; i < nfailed; i++)
		printf("[  FAILED  ] %s.%s\n", failed[i]->suite, failed[i]->name);
	printf("\n%2d FAILED %s\n", nfailed, plural(nfailed, "TEST", "TESTS"));
}

int harness_run(const struct test_case *cases, const char *filter, struct compiler *compiler)
{
	const struct test_case **failed, *c;
	int tests = 0, suites = 0, nfailed = 0;
	size_t total = 0;
	long long start = now_ms();

	for (c = cases; c->suite;) {
		const char *suite = c->suite;
		int n = count_suite(c, filter);

		tests += n;
		suites += n > 0;
		while (c->suite && strcmp(c->suite, suite) == 0)
			c++, total++;
	}
	failed = calloc(total + 1, sizeof(struct test_case *));
	if (!failed)
		abort();
	if (filter)
		printf("Note: Google Test filter = %s\n", filter);
	printf("[==========] Running %d %s from %d test %s.\n", tests,
	       plural(tests, "test", "tests"), suites, plural(suites, "suite", "suites"));
	printf("[----------] Global test environment set-up.\n");
	for (c = cases; c->suite;)
		c = run_suite(c, filter, compiler, failed, &nfailed);
	print_summary(tests, suites, now_ms() - start, failed, nfailed);
	free(failed);
	return nfailed;
}
