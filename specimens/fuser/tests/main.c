/*
 * fuser_tests [--list] [--tests-file FILE] [NAME...]
 *
 * Runs all tests, or the named ones in the order given, in one process. Exit
 * status: 0 all passed, 1 some check failed, 2 wrong usage.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define MAX_NAME 128

struct test_case {
	const char *name;
	test_fn run;
};

static const struct test_case tests[] = {
#define TEST(name) { "test_" #name, test_##name },
#include "test_list.h"
#undef TEST
};

#define TEST_COUNT (sizeof(tests) / sizeof(tests[0]))

struct selection {
	const struct test_case **at;
	size_t count;
	size_t capacity;
};

static bool select_test(struct selection *sel, const char *name)
{
	for (size_t i = 0; i < TEST_COUNT; i++) {
		if (strcmp(tests[i].name, name) != 0)
			continue;
		if (sel->count == sel->capacity) {
			sel->capacity = sel->capacity ? 2 * sel->capacity : TEST_COUNT;
			sel->at = realloc(sel->at, sel->capacity * sizeof(*sel->at));
			if (!sel->at)
				abort();
		}
		sel->at[sel->count++] = &tests[i];
		return true;
	}
	fprintf(stderr, "fuser_tests: no test named '%s' (see --list)\n", name);
	return false;
}

static bool select_from_file(struct selection *sel, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[MAX_NAME];
	bool ok = true;

	if (!f) {
		perror(path);
		return false;
	}
	while (ok && fgets(line, sizeof(line), f)) {
		line[strcspn(line, " \t\r\n")] = '\0';
		if (line[0] && line[0] != '#')
			ok = select_test(sel, line);
	}
	fclose(f);
	return ok;
}

static bool run_test(const struct test_case *tc, struct executor_cache *cache)
{
	struct test t = { .name = tc->name, .cache = cache };

	printf("[ RUN ] %s\n", tc->name);
	fflush(stdout);
	tc->run(&t);
	test_reset(&t);
	printf("[ %s ] %s\n", t.failed ? "FAILED" : "OK", tc->name);
	fflush(stdout);
	return !t.failed;
}

int main(int argc, char **argv)
{
	struct selection sel = { 0 };
	struct executor_cache *cache;
	bool chosen = false;
	size_t failed = 0;

	for (int i = 1; i < argc; i++) {
		bool ok;

		if (strcmp(argv[i], "--list") == 0) {
			for (size_t k = 0; k < TEST_COUNT; k++)
				puts(tests[k].name);
			return 0;
		}
		chosen = true;
		if (strcmp(argv[i], "--tests-file") == 0)
			ok = i + 1 < argc && select_from_file(&sel, argv[++i]);
		else
			ok = select_test(&sel, argv[i]);
		if (!ok) {
			fputs("usage: fuser_tests [--list] [--tests-file FILE] [NAME...]\n",
			      stderr);
			free(sel.at);
			return 2;
		}
	}
	for (size_t i = 0; !chosen && i < TEST_COUNT; i++)
		select_test(&sel, tests[i].name);

	cache = executor_cache_create(CACHE_DEFAULT_COLD);
	for (size_t i = 0; i < sel.count; i++)
		failed += !run_test(sel.at[i], cache);
	executor_cache_destroy(cache);

	printf("%zu tests, %zu failed\n", sel.count, failed);
	free(sel.at);
	return failed ? 1 : 0;
}
