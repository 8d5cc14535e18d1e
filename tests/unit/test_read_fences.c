/*
 * What fences showed in the recorded trials: who read or wrote outside of which block, how far, and
 * how many blocks had one. What is expected follows from tests/victims/fence_reads.c and
 * heap_tests.c.
 */
#include "corpus.h"

#include "read/block_damage.h"

static const struct {
	const char *trial;
	enum heap_kind kind;
	bool write;
	int64_t offset;
	uint64_t length, size;
	const char *by, *allocated, *freed; /* freed NULL: the block is live */
} accesses[] = {
	{ "heap-fence-behind", HEAP_OVER_READ, false, 80, 1, 80, "row_sum", "block_new", NULL },
	{ "heap-fence-freed", HEAP_USE_AFTER_FREE, false, 40, 1, 80, "byte_read", "block_new",
	  "block_drop" },
	{ "heap-fence-write-behind", HEAP_OVERFLOW, true, 80, 1, 80, "byte_write", "block_new",
	  NULL },
	{ "heap-fence-write-freed", HEAP_WRITE_AFTER_FREE, true, 40, 1, 80, "byte_write",
	  "block_new", "block_drop" },
	{ "heap-fence-write-freed", HEAP_USE_AFTER_FREE, false, 40, 1, 80, "byte_read", "block_new",
	  "block_drop" },
	{ "heap-fence-use-crash", HEAP_WRITE_AFTER_FREE, true, 8, 8, 24, "item_touch", "item_new",
	  "item_drop" },
};

static const struct heap_finding *finding_of(const struct damage *damage, enum heap_kind kind)
{
	VEC_FOREACH (&damage->findings, f)
		if (f->kind == kind)
			return f;
	return NULL;
}

static void every_access_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(accesses[i].trial);
		const struct heap_finding *f =
			finding_of(reading_damage(reading), accesses[i].kind);

		if (!f)
			fail_msg("%s: no %s", accesses[i].trial, heap_kind_name(accesses[i].kind));
		assert_true(f->fenced);
		assert_int_equal(f->write, accesses[i].write);
		assert_int_equal(f->offset, accesses[i].offset);
		assert_int_equal(f->length, accesses[i].length);
		assert_int_equal(f->size, accesses[i].size);
		assert_int_equal(f->live, accesses[i].freed == NULL);
		assert_int_equal(f->accesses, 1);
		assert_non_null(f->instruction);
		assert_true(stack_names(&f->seen_at, accesses[i].by));
		assert_true(stack_names(&f->allocated, accesses[i].allocated));
		if (accesses[i].freed)
			assert_true(stack_names(&f->freed, accesses[i].freed));
	}
}

/* One access more would be an accusation. */
static void nothing_else_is_told(void **state)
{
	static const struct {
		const char *trial;
		size_t findings;
	} rows[] = {
		{ "heap-fence-behind", 1 },	  { "heap-fence-freed", 1 },
		{ "heap-fence-write-behind", 1 }, { "heap-fence-write-freed", 2 },
		{ "heap-fence-use-crash", 1 },	  { "heap-fence-innocent", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(rows[i].trial);
		const struct damage *damage = reading_damage(reading);

		if (damage->findings.count != rows[i].findings)
			fail_msg("%s: %zu findings", rows[i].trial, damage->findings.count);
		assert_int_equal(damage->fence.let_through, rows[i].findings);
	}
}

static void blocks_with_a_fence_are_counted(void **state)
{
	AUTO(reading_closep) struct reading *fenced = corpus_read("heap-fence-innocent");
	AUTO(reading_closep) struct reading *guarded = corpus_read("heap-none");
	const struct heap_fence *fence = &reading_damage(fenced)->fence;

	(void)state;
	assert_int_equal(fence->processes, 1);
	assert_int_equal(fence->without, 0);
	assert_int_equal(fence->level, 0);
	assert_true(fence->fenced > 20);    /* 2, and what innocent() does */
	assert_int_equal(fence->passed, 1); /* aligned to more than a page */
	assert_int_equal(reading_damage(guarded)->fence.processes, 0);
}

/* The process died after the access: the crash is a fact of its own. */
static void a_crash_behind_an_access_is_read_too(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("heap-fence-use-crash");
	AUTO(reading_closep) struct reading *passed = corpus_read("heap-fence-write-freed");

	(void)state;
	assert_int_equal(corpus_find("heap-fence-use-crash")->signal, 6);
	assert_non_null(reading_crash(reading, CRASH_WHOLE));
	assert_null(reading_crash(passed, CRASH_WHOLE));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_access_is_told),
	cmocka_unit_test(nothing_else_is_told),
	cmocka_unit_test(blocks_with_a_fence_are_counted),
	cmocka_unit_test(a_crash_behind_an_access_is_read_too),
};

CORPUS_MAIN(tests)
