/*
 * A test program with things that grow, and things that only look like it: growth WAY TESTS.
 * Compiled without optimisation, so that every function has a frame.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
	struct item *next;
	char text[40];
};

static struct item *registry; /* never emptied */
static struct item *cache[16];
static struct item *backlog;
static struct item *recent[4];

static struct item *item_new(const char *text)
{
	struct item *item = calloc(1, sizeof(*item));

	snprintf(item->text, sizeof(item->text), "%s", text);
	return item;
}

static void registry_add(void)
{
	struct item *item = item_new("registered");

	item->next = registry;
	registry = item;
}

/* Full after sixteen tests at the latest. */
static void cache_use(int test)
{
	int slot = test % 16;

	if (!cache[slot])
		cache[slot] = item_new("cached");
}

/* Rises, and is emptied now and then. */
static void backlog_add(int test)
{
	struct item *item = item_new("waiting");

	item->next = backlog;
	backlog = item;
	while (test % 7 == 6 && backlog) {
		item = backlog->next;
		free(backlog);
		backlog = item;
	}
}

/* Nobody will ever find it again. */
static void forget(void)
{
	item_new("lost");
}

/* What an unrolled loop is: calls that lie apart and read as one. The last word of such a block
 * belongs to the allocator while what is behind it is free. */
static void forget_small(void)
{
	memset(malloc(24), 1, 24);
}

static void forget_several(void)
{
	forget_small(), forget_small(), forget_small();
}

static void recent_use(int test)
{
	free(recent[test % 4]);
	recent[test % 4] = item_new("recent");
}

/* Each test leaks through another function: no whole stack comes twice. */
#define OWN_TEST(n)                    \
	static void own_test_##n(void) \
	{                              \
		registry_add();        \
	}
/* clang-format off */
OWN_TEST(0) OWN_TEST(1) OWN_TEST(2) OWN_TEST(3) OWN_TEST(4) OWN_TEST(5) OWN_TEST(6) OWN_TEST(7) OWN_TEST(8)
OWN_TEST(9) OWN_TEST(10) OWN_TEST(11)

static void (*const own_tests[])(void) = {
	own_test_0, own_test_1, own_test_2, own_test_3, own_test_4,  own_test_5,
	own_test_6, own_test_7, own_test_8, own_test_9, own_test_10, own_test_11
};
/* clang-format on */

static void run_test(const char *way, int test)
{
	cache_use(test);
	backlog_add(test);
	recent_use(test);
	if (strcmp(way, "leak") == 0 || strcmp(way, "lines") == 0 || strcmp(way, "write") == 0)
		registry_add();
	else if (strcmp(way, "lost") == 0)
		forget();
	else if (strcmp(way, "unrolled") == 0)
		forget_several();
	else if (strcmp(way, "own") == 0)
		own_tests[test % 12]();
}

static void tell(const char *way, int test)
{
	char text[80];

	if (strcmp(way, "lines") == 0) {
		printf("step %d\n", test);
	} else if (strcmp(way, "write") == 0) {
		/* Nothing of stdio's. */
		int len = snprintf(text, sizeof(text), "ok %d - unit_%d\n", test + 1, test);

		if (write(1, text, (size_t)len) < 0)
			exit(9);
	} else {
		printf("[       OK ] Suite.Test%d (0 ms)\n", test);
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "innocent";
	int tests = argc > 2 ? atoi(argv[2]) : 60;

	if (strcmp(way, "silent") == 0)
		return 0;
	for (int test = 0; test < tests; test++) {
		if (strcmp(way, "lines") != 0 && strcmp(way, "write") != 0)
			printf("[ RUN      ] Suite.Test%d\n", test);
		run_test(way, test);
		tell(way, test);
	}
	return 0;
}
