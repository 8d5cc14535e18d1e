/*
 * A small test harness with the command line and the output of googletest.
 */
#ifndef PRESEGMENT_HARNESS_H
#define PRESEGMENT_HARNESS_H

#include <stdbool.h>

struct compiler;

struct test_run {
	struct compiler *compiler;
	int failures; /* of the test that is running */
};

struct test_case {
	const char *suite;
	const char *name;
	void (*body)(struct test_run *t);
};

#define EXPECT_TRUE(t, condition) test_expect((t), (condition), __FILE__, __LINE__, #condition)
#define EXPECT_EQ(t, a, b) \
	test_expect_eq((t), (long long)(a), (long long)(b), __FILE__, __LINE__, #a, #b)
#define FAIL(t, message) test_fail((t), __FILE__, __LINE__, (message))

void test_expect(struct test_run *t, bool holds, const char *file, int line, const char *text);
void test_expect_eq(struct test_run *t, long long a, long long b, const char *file, int line,
		    const char *a_text, const char *b_text);
void test_fail(struct test_run *t, const char *file, int line, const char *message);

/* Is `name` selected by a filter such as "A*:B.?-C*"? NULL selects everything. */
bool harness_selects(const char *filter, const char *name);
/* Cases of one suite must stand together; `cases` ends with a NULL suite. */
void harness_list(const struct test_case *cases, const char *filter);
/* Runs the selected cases in order; returns how many failed. */
int harness_run(const struct test_case *cases, const char *filter, struct compiler *compiler);

#endif
