/*
 * What guards around blocks showed in the recorded trials: which bytes, of which block, when; who
 * still pointed to what was freed; and what stayed alive from test to test. What is expected
 * follows from tests/victims/heap_tests.c and growth.c.
 */
#include "corpus.h"

#include "read/census.h"
#include "read/sweeps.h"

/* ---- output, as the victims print it ---- */

struct output {
	struct trial_end end;
	uint64_t at;
};

static void say(struct output *out, enum milestone_kind kind, const char *name, const char *fmt)
{
	char *line = mem_printf(fmt, name);
	struct milestone m = { .kind = kind,
			       .fd = 1,
			       .start = out->at,
			       .end = out->at + strlen(line),
			       .arrived_ns = UINT64_MAX,
			       .name = mem_strdup(name),
			       .text = mem_strndup(line, strcspn(line, "\n")) };

	out->at += strlen(line);
	VEC_PUSH(&out->end.milestones, m);
	mem_free(line);
}

/* Of tests that say when they begin and end, as googletest does. */
static void say_test(struct output *out, const char *name, bool ends)
{
	say(out, MILESTONE_TEST_START, name, "[ RUN      ] %s\n");
	if (ends)
		say(out, MILESTONE_TEST_END, name, "[       OK ] %s (0 ms)\n");
}

static void heap_output(struct output *out, const char *last)
{
	static const char *const names[] = { "Heap.Setup", "Heap.CalmA", "Heap.Harm",
					     "Heap.CalmB", "Heap.Later", "Heap.CalmC" };

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool died = last && strcmp(names[i], last) == 0;

		say_test(out, names[i], !died);
		if (died) {
			out->end.running_test = mem_strdup(last);
			break;
		}
	}
}

/* ---- damage ---- */

static const struct {
	const char *name, *last; /* the test in which it died; NULL: it did not */
	enum heap_kind kind;
	int64_t offset;
	uint64_t length, size;
	bool live;
	const char *check, *allocated, *freed, *seen_at;
} findings[] = {
	{ "heap-overflow", NULL, HEAP_OVERFLOW, 21, 1, 21, true, "line", "buffer_new", NULL, NULL },
	{ "heap-underflow", NULL, HEAP_UNDERFLOW, -1, 1, 21, true, "line", "buffer_new", NULL,
	  NULL },
	{ "heap-late-overflow", NULL, HEAP_OVERFLOW, 33, 1, 33, true, "free", "buffer_new", NULL,
	  "test_harm" },
	{ "heap-use", NULL, HEAP_WRITE_AFTER_FREE, 8, 8, 24, false, "line", "item_new", "item_drop",
	  NULL },
	{ "heap-use-crash", "Heap.Later", HEAP_WRITE_AFTER_FREE, 8, 8, 24, false, "crash",
	  "item_new", "item_drop", NULL },
	{ "heap-double", "Heap.Harm", HEAP_DOUBLE_FREE, 0, 0, 24, false, "free", "item_new",
	  "item_drop", "item_drop_again" },
	{ "heap-interior", "Heap.Harm", HEAP_INTERIOR_FREE, 8, 0, 24, true, "free", "item_new",
	  NULL, "test_harm" },
	{ "heap-odd", "Heap.Harm", HEAP_INTERIOR_FREE, 1, 0, 24, true, "free", "item_new", NULL,
	  "test_harm" },
	{ "heap-invalid", "Heap.Harm", HEAP_INVALID_FREE, 0, 0, 0, false, "free", NULL, NULL,
	  "test_harm" },
};

static void every_defect_is_one_finding(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(findings); i++) {
		struct output out;
		AUTO(reading_closep) struct reading *reading = NULL;
		const struct heap_finding *f;
		const struct damage *damage;

		heap_output(&out, findings[i].last);
		reading = corpus_read_trial(corpus_find(findings[i].name), &out.end);
		damage = reading_damage(reading);
		if (damage->findings.count != 1)
			fail_msg("%s: %zu findings", findings[i].name, damage->findings.count);
		f = &damage->findings.items[0];
		if (f->kind != findings[i].kind)
			fail_msg("%s: %s", findings[i].name, heap_kind_name(f->kind));
		assert_int_equal(f->offset, findings[i].offset);
		assert_int_equal(f->length, findings[i].length);
		assert_int_equal(f->size, findings[i].size);
		assert_int_equal(f->live, findings[i].live);
		assert_string_equal(f->when.check, findings[i].check);
		if (findings[i].allocated)
			assert_true(stack_names(&f->allocated, findings[i].allocated));
		if (findings[i].freed)
			assert_true(stack_names(&f->freed, findings[i].freed));
		if (findings[i].seen_at)
			assert_true(stack_names(&f->seen_at, findings[i].seen_at));
		assert_true(damage->blocks > 0);
		reading_forget_end(reading);
		trial_end_deinit(&out.end);
	}
}

static void damage_is_placed_between_tests(void **state)
{
	static const struct {
		const char *name, *last, *test;
	} rows[] = {
		{ "heap-overflow", NULL, "Heap.Harm" },
		{ "heap-underflow", NULL, "Heap.Harm" },
		{ "heap-use", NULL, "Heap.Later" },
		{ "heap-use-crash", "Heap.Later", "Heap.Later" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct output out;
		AUTO(reading_closep) struct reading *reading = NULL;
		const struct heap_when *when;
		bool among = false;

		heap_output(&out, rows[i].last);
		reading = corpus_read_trial(corpus_find(rows[i].name), &out.end);
		when = &reading_damage(reading)->findings.items[0].when;
		for (size_t k = 0; k < when->tests.count; k++)
			among |= strcmp(when->tests.items[k], rows[i].test) == 0;
		if (!among)
			fail_msg("%s: not during %s", rows[i].name, rows[i].test);
		assert_true(when->tests.count <= 2);
		assert_false(when->by_time);
		assert_non_null(when->after);
		/* Its line had not been written when the process died. */
		assert_int_equal(when->before == NULL, rows[i].last != NULL);
		reading_forget_end(reading);
		trial_end_deinit(&out.end);
	}
}

static void damaged_bytes_are_shown(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("heap-overflow");
	const struct heap_finding *f = &reading_damage(reading)->findings.items[0];

	(void)state;
	/* What lies around them is shown, too. */
	assert_true(f->bytes >= 1);
	assert_int_equal(f->found[0], 0); /* buffer_terminate() */
	assert_int_not_equal(f->expected[0], 0);
	assert_string_equal(f->allocated_by, "malloc");
	assert_int_equal(strlen(f->context), 16);
	assert_int_equal(strncmp(f->key, f->context, 16), 0);
}

static void mismatched_frees_are_told(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("heap-mismatch");
	const struct heap_finding *f = &reading_damage(reading)->findings.items[0];

	(void)state;
	assert_int_equal(reading_damage(reading)->findings.count, 1);
	assert_int_equal(f->kind, HEAP_MISMATCHED_FREE);
	assert_string_equal(f->allocated_by, "new");
	assert_string_equal(f->freed_by, "free");
}

static void what_is_whole_shows_nothing(void **state)
{
	AUTO(reading_closep) struct reading *none = corpus_read("heap-none");
	AUTO(reading_closep) struct reading *ids = corpus_read("chase-innocent-pool-passes");

	(void)state;
	assert_int_equal(reading_damage(none)->findings.count, 0);
	assert_true(reading_damage(none)->blocks > 100);
	assert_int_equal(reading_damage(ids)->findings.count, 0);
}

/* ---- holders ---- */

static void who_still_points_there_is_told(void **state)
{
	static const char *const names[] = { "heap-sweep", "heap-sweep-crash" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(names[i]);
		AUTO(heap_report_deinit) struct heap_report report = { 0 };
		const struct heap_dangling *dangling = NULL;
		bool kept = false;

		sweeps_read(reading, reading_crash(reading, CRASH_WHOLE), &report);
		assert_true(report.swept > 0);
		assert_true(report.sweep_bytes > 0);
		VEC_FOREACH (&report.dangling, d)
			if (stack_names(&d->allocated, "item_new"))
				dangling = d;
		assert_non_null(dangling);
		assert_int_equal(dangling->size, 24);
		assert_true(stack_names(&dangling->freed, "item_drop"));
		assert_int_equal(dangling->used, i == 1);
		VEC_FOREACH (&dangling->holders, holder)
			kept |= strcmp(holder->kind, "global") == 0 && holder->name &&
				strcmp(holder->name, "kept") == 0;
		assert_true(kept);
	}
}

/* chase_refcount.c: a client goes on with a connection that was freed, by `shared` and by what it
 * has on its stack. */
static void holders_that_were_used_are_told(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("chase-refcount-swept");
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	const struct heap_dangling *dangling = NULL;
	bool global = false;

	(void)state;
	sweeps_read(reading, reading_crash(reading, CRASH_WHOLE), &report);
	VEC_FOREACH (&report.dangling, d)
		if (stack_names(&d->allocated, "connection_open"))
			dangling = d;
	assert_non_null(dangling);
	assert_true(dangling->used);
	assert_true(heap_dangling_held(dangling));
	VEC_FOREACH (&dangling->holders, holder) {
		if (strcmp(holder->kind, "global") == 0)
			global |= strcmp(holder->name, "shared") == 0;
		else if (strcmp(holder->kind, "stack") == 0)
			assert_true(holder->lane >= 0);
	}
	assert_true(global);
}

static void contexts_are_found_by_a_functions_name(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("heap-sweep");
	uint64_t hashes[4];

	(void)state;
	assert_int_equal(sweeps_contexts_of(reading, "item_new", hashes, 4), 1);
	/* It is called from several places, and frees as well. */
	assert_true(sweeps_contexts_of(reading, "test_calm", hashes, 4) > 1);
	assert_int_equal(sweeps_contexts_of(reading, "nobody", hashes, 4), 0);
	assert_int_equal(sweeps_contexts_of(reading, "main", hashes, 1), 1);
}

/* ---- growth ---- */

#define TESTS 60

static void growth_output(struct output *out)
{
	char name[32];

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < TESTS; i++) {
		(void)snprintf(name, sizeof(name), "Suite.Test%d", i);
		say_test(out, name, true);
	}
}

static void what_stays_alive_is_counted(void **state)
{
	AUTO(census_deinit) struct census census = { 0 };
	AUTO(reading_closep) struct reading *reading = NULL;
	unsigned int grows = 0, full = 0;
	struct event_logs *logs;
	struct output out;

	(void)state;
	growth_output(&out);
	reading = corpus_read_trial(corpus_find("growth"), &out.end);
	logs = corpus_logs(reading);
	assert_int_equal(logs->list.count, 1);
	census_take(&logs->list.items[0], reading_moments(reading), &census);
	/* Before the first, and after each. */
	assert_int_equal(census.moments, TESTS + 1);
	assert_true(census.tests);
	assert_string_equal(census.names[TESTS], "Suite.Test59");
	VEC_FOREACH (&census.contexts, context) {
		AUTO(stack_deinit) struct stack stack = { 0 };

		if (!event_log_context(&logs->list.items[0], context->row, corpus.symbols, &stack))
			continue;
		/* registry_add(): one more after each test. cache_use(): sixteen at most. */
		grows += stack_names(&stack, "registry_add") && context->blocks == TESTS;
		full += stack_names(&stack, "cache_use") && context->blocks == 16;
	}
	assert_int_equal(grows, 1);
	assert_int_equal(full, 1);
	reading_forget_end(reading);
	trial_end_deinit(&out.end);
}

/* PYTHON_KEEPS of tools/record-corpus. */
#define PYTHON_TESTS 12

static void what_python_keeps_is_told_by_its_line(void **state)
{
	AUTO(census_deinit) struct census census = { 0 };
	AUTO(reading_closep) struct reading *reading = NULL;
	struct event_logs *logs;
	struct output out = { 0 };
	bool keeps = false;

	(void)state;
	for (int i = 0; i < PYTHON_TESTS; i++) {
		char name[32], format[32];

		(void)snprintf(name, sizeof(name), "test_%d", i);
		(void)snprintf(format, sizeof(format), "ok %d - %%s\n", i + 1);
		say(&out, MILESTONE_TEST_END, name, format);
	}
	reading = corpus_read_trial(corpus_find("python-growth"), &out.end);
	logs = corpus_logs(reading);
	census_take(&logs->list.items[0], reading_moments(reading), &census);
	assert_int_equal(census.moments, PYTHON_TESTS);
	VEC_FOREACH (&census.contexts, context) {
		AUTO(stack_deinit) struct stack stack = { 0 };

		if (context->inside == 0 ||
		    !event_log_context(&logs->list.items[0], context->row, corpus.symbols, &stack))
			continue;
		/* One list, and what it holds, after each test. */
		for (size_t i = 0; i < stack.count; i++)
			keeps |= stack.frames[i].kind == FRAME_PYTHON &&
				 strcmp(stack.frames[i].function, "keep") == 0 &&
				 stack.frames[i].line == 4 && context->blocks >= PYTHON_TESTS - 1;
	}
	assert_true(keeps);
	reading_forget_end(reading);
	trial_end_deinit(&out.end);
}

static void without_output_nothing_is_counted(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("growth");
	AUTO(census_deinit) struct census census = { 0 };

	(void)state;
	assert_int_equal(reading_moments(reading)->list.count, 0);
	census_take(&corpus_logs(reading)->list.items[0], reading_moments(reading), &census);
	assert_int_equal(census.moments, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_defect_is_one_finding),
	cmocka_unit_test(damage_is_placed_between_tests),
	cmocka_unit_test(damaged_bytes_are_shown),
	cmocka_unit_test(mismatched_frees_are_told),
	cmocka_unit_test(what_is_whole_shows_nothing),
	cmocka_unit_test(who_still_points_there_is_told),
	cmocka_unit_test(holders_that_were_used_are_told),
	cmocka_unit_test(contexts_are_found_by_a_functions_name),
	cmocka_unit_test(what_stays_alive_is_counted),
	cmocka_unit_test(what_python_keeps_is_told_by_its_line),
	cmocka_unit_test(without_output_nothing_is_counted),
};

CORPUS_MAIN(tests)
