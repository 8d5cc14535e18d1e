/*
 * Reports of sanitizers and of Valgrind, as they were printed by small programs with one error
 * each, and the same with bytes that nobody printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "model/crash.h"
#include "read/sanitizer_report.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct expected {
	const char *name;
	enum reported_kind kind;
	uint64_t width;
	int64_t offset;
	uint64_t size;	   /* of the block; 0: none is told */
	const char *user;  /* function, and… */
	unsigned int line; /* …line of whoever did it */
	const char *allocated, *freed;
};

static const struct expected all[] = {
	{ "asan-use-after-free", REPORTED_FREED_USE, 1, 3, 32, "use", 6, "make", "drop" },
	{ "asan-write-after-free", REPORTED_FREED_WRITE, 1, 5, 32, "main", 11, "make", "drop" },
	{ "asan-overflow", REPORTED_OVERFLOW, 1, 32, 32, "main", 12, "make", NULL },
	{ "asan-over-read", REPORTED_OVER_READ, 1, 33, 32, "main", 13, "make", NULL },
	{ "asan-double-free", REPORTED_DOUBLE_FREE, 0, 0, 32, "main", 14, "make", "drop" },
	{ "asan-bad-free", REPORTED_INVALID_FREE, 0, 4, 32, "main", 15, "make", NULL },
	{ "asan-stack", REPORTED_OVERFLOW, 1, 8, 8, "main", 16, "main", NULL },
	{ "asan-after-scope", REPORTED_FREED_USE, 4, 0, 16, "late", 6, "work", NULL },
	{ "asan-global", REPORTED_OVERFLOW, 4, 24, 16, "main", 17, NULL, NULL },
	{ "asan-between-globals", REPORTED_OVERFLOW, 4, 40, 32, "main", 34, NULL, NULL },
	{ "asan-segv", REPORTED_NULL, 0, 0, 0, "main", 18, NULL, NULL },
	{ "ubsan", REPORTED_OTHER, 0, 0, 0, "uaf.c", 20, NULL, NULL },
	{ "msan", REPORTED_UNINITIALISED, 0, 0, 0, "main", 21, NULL, NULL },
	{ "tsan", REPORTED_RACE, 4, 0, 0, "add", 3, NULL, NULL },
	{ "valgrind-use-after-free", REPORTED_FREED_USE, 1, 3, 32, "use", 6, "make", "drop" },
	{ "valgrind-overflow", REPORTED_OVERFLOW, 1, 32, 32, "main", 12, "make", NULL },
	{ "valgrind-double-free", REPORTED_DOUBLE_FREE, 0, 0, 32, "main", 14, "make", "drop" },
	{ "valgrind-uninitialised", REPORTED_UNINITIALISED, 0, 0, 0, "main", 21, NULL, NULL },
};

static char *load(const char *name, size_t *ret_len)
{
	AUTO(mem_freep) char *path = mem_printf(REPORTS_DIR "/%s.txt", name);
	char *text = NULL;

	assert_int_equal(file_read(path, 1u << 20, &text, ret_len, NULL), 0);
	return text;
}

static void check_function(const struct stack *stack, const char *function)
{
	if (!function) {
		assert_int_equal(stack->count, 0);
		return;
	}
	assert_true(stack->count > 0);
	assert_string_equal(stack->frames[0].function, function);
}

static void check(const struct expected *e, const struct reported *r)
{
	assert_int_equal(r->kind, e->kind);
	assert_int_equal(r->width, e->width);
	assert_true(r->user.count > 0);
	assert_string_equal(r->user.frames[0].function, e->user);
	assert_int_equal(r->user.frames[0].line, e->line);
	assert_string_equal(strrchr(r->user.frames[0].file, '/')
				    ? strrchr(r->user.frames[0].file, '/') + 1
				    : r->user.frames[0].file,
			    strcmp(e->name, "tsan") == 0 ? "race.c" : "uaf.c");
	if (e->size == 0)
		return;
	assert_non_null(r->block);
	assert_int_equal(r->block->size, e->size);
	assert_int_equal(r->offset, e->offset);
	assert_int_equal(r->block->state == BLOCK_FREED, e->freed != NULL);
	check_function(&r->block->allocated, e->allocated);
	check_function(&r->block->freed, e->freed);
}

static void test_recorded(void **state)
{
	for (size_t i = 0; i < LEN(all); i++) {
		size_t len;
		AUTO(mem_freep) char *text = load(all[i].name, &len);
		struct reported r = { 0 };

		assert_true(sanitizer_report_read(text, len, &r));
		check(&all[i], &r);
		reported_deinit(&r);
	}
}

/* A race has two sides. */
static void test_race(void **state)
{
	size_t len;
	AUTO(mem_freep) char *text = load("tsan", &len);
	struct reported r = { 0 };

	assert_true(sanitizer_report_read(text, len, &r));
	assert_string_equal(r.what, "data race");
	assert_int_equal(r.other.count, 1);
	assert_string_equal(r.other.frames[0].function, "add");
	assert_int_equal(r.user.count, 1); /* those of other headings are not its own */
	reported_deinit(&r);
}

/* The function whose variable it was is told beside the callers, and is none of them. */
static void test_variable(void **state)
{
	size_t len;
	AUTO(mem_freep) char *text = load("asan-after-scope", &len);
	struct reported r = { 0 };

	assert_true(sanitizer_report_read(text, len, &r));
	assert_string_equal(r.block->key, "inner");
	assert_int_equal(r.block->allocated.count, 1);
	assert_int_equal(r.user.count, 6);
	reported_deinit(&r);
}

/* What only looks like one is none. */
static void test_none(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"==12== \n",
		"SUMMARY: AddressSanitizer: heap-use-after-free a.c:1 in f\n",
		"I ran it with AddressSanitizer: nothing\n    #0 0x1 in main a.c:3\n",
		"ERROR: AddressSanitizer: ",
		": runtime error: x",
	};

	for (size_t i = 0; i < LEN(texts); i++) {
		struct reported r = { 0 };

		assert_false(sanitizer_report_read(texts[i], strlen(texts[i]), &r));
	}
}

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void read_any(const char *text, size_t len)
{
	struct reported r = { 0 };

	if (sanitizer_report_read(text, len, &r)) {
		assert_true(r.kind < REPORTED_KINDS);
		assert_non_null(r.tool);
		reported_deinit(&r);
	}
}

/* Cut off anywhere, and with bytes that nobody printed. */
static void test_hostile(void **state)
{
	uint64_t random = 88172645463325252u;

	for (size_t i = 0; i < LEN(all); i++) {
		size_t len;
		AUTO(mem_freep) char *text = load(all[i].name, &len);

		for (size_t cut = 0; cut < len; cut += 7)
			read_any(text, cut);
		for (unsigned int turn = 0; turn < 100; turn++) {
			for (unsigned int k = 0; k < 1 + turn % 8; k++)
				text[next(&random) % len] = (char)next(&random);
			read_any(text, len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded), cmocka_unit_test(test_race),
		cmocka_unit_test(test_variable), cmocka_unit_test(test_none),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
