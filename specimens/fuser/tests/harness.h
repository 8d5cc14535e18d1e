/* The test program's own frame: the list of tests, checks and small helpers. */
#ifndef FUSER_HARNESS_H
#define FUSER_HARNESS_H

#include <stdbool.h>
#include <stdio.h>

#include "cache.h"

#define MAX_OUTPUTS 8
#define MAX_ARGS 8

struct test {
	const char *name;
	bool failed;
	struct executor_cache *cache; /* the process's cache, shared by all tests */
	struct tensor *out[MAX_OUTPUTS];
	struct tensor *args[MAX_ARGS];
	int nargs;
};

typedef void (*test_fn)(struct test *t);

/* Every test by name, in the order they run. */
#define TEST(name) void test_##name(struct test *t);
#include "test_list.h"
#undef TEST

void test_fail(struct test *t, const char *file, int line, const char *what);

#define CHECK(t, cond)                                           \
	do {                                                     \
		if (!(cond)) {                                   \
			test_fail(t, __FILE__, __LINE__, #cond); \
			return;                                  \
		}                                                \
	} while (0)

/* A count and an array, as the library's functions take them. */
#define DIMS(...)                                                                            \
	(int)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]) \
	{                                                                                    \
		__VA_ARGS__                                                                  \
	}
#define VALUES(...) ((const double[]){ __VA_ARGS__ })

/* Arguments and outputs belong to the test; test_reset() drops them all. */
void test_reset(struct test *t);
struct tensor *test_arg(struct test *t, struct tensor *arg);

/* Runs on the shared cache with the arguments so far; outputs go to t->out. */
bool test_run(struct test *t, const struct definition *d);
bool test_run_on(struct test *t, struct executor_cache *cache, const struct definition *d);

/* Output i has these extents and values. */
bool test_output_is(const struct test *t, int i, int rank, const int64_t *size,
		    const double *values);

/* Writes the definition, reads it back and runs both: the outputs must agree. */
bool test_serde(struct test *t, const struct definition *d);

#endif
