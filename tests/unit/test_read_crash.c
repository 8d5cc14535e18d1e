/*
 * Crashes as the recorded trials have them: of which kind, where, which blocks they touched and
 * what became of those, and what a failing trial tells by itself.
 */
#include "corpus.h"
#include "says.h"

#include <signal.h>

#include "model/evidence.h"

/* ---- fault classes ---- */

static const struct {
	const char *name;
	enum fault_class fault;
	int signal;
	const char *function; /* in its stack */
	const char *words;
} faults[] = {
	{ "fault-null", FAULT_NULL, SIGSEGV, "die_null", "NULL+0x28" },
	{ "fault-null-write", FAULT_NULL, SIGSEGV, "die_null_write", "a write to NULL+0x10" },
	{ "fault-unmapped", FAULT_UNMAPPED, SIGSEGV, "die_unmapped", "0x123456789000" },
	{ "fault-non-canonical", FAULT_NON_CANONICAL, SIGSEGV, "die_non_canonical", "no address" },
	{ "fault-misaligned", FAULT_MISALIGNED, SIGSEGV, "die_misaligned", "aligned" },
	{ "fault-execute", FAULT_EXECUTE, SIGSEGV, "die_execute", "no code" },
	{ "fault-read-only", FAULT_READ_ONLY, SIGSEGV, "die_read_only", "only be read" },
	{ "fault-abort", FAULT_ABORT, SIGABRT, "die_abort", "abort" },
	{ "fault-assert", FAULT_ABORT, SIGABRT, "die_assert", "the data is there" },
	{ "fault-double-free", FAULT_ABORT, SIGABRT, "die_double_free", "double free" },
	{ "fault-divide", FAULT_ARITHMETIC, SIGFPE, "die_divide", "division by zero" },
	{ "fault-illegal", FAULT_ILLEGAL, SIGILL, "die_illegal", "does not exist" },
	{ "fault-trap", FAULT_TRAP, SIGTRAP, "die_trap", "trap" },
	{ "fault-shrank", FAULT_MAPPING_SHRANK, SIGBUS, "die_shrank", "8192 bytes were mapped" },
	{ "fault-raise", FAULT_SENT, SIGSEGV, "die_raise", "sent by process" },
	/* A handler took it first: what it was called for is the crash. */
	{ "fault-handled", FAULT_NULL, SIGSEGV, "die_null", "NULL+0x28" },
	{ "fault-called", FAULT_NULL, SIGSEGV, "die_null", "NULL+0x28" },
	{ "fault-handler-aborts", FAULT_NULL, SIGSEGV, "die_null", "NULL+0x28" },
	{ "fault-overflow", FAULT_STACK_OVERFLOW, SIGSEGV, "die_overflow", "stack overflow" },
	{ "fault-large-frame", FAULT_STACK_OVERFLOW, SIGSEGV, "die_large_frame", "stack overflow" },
	{ "fault-null-index", FAULT_NULL, SIGSEGV, "die_null_index", "a read of NULL+0xb71b00" },
	{ "fault-jump-nowhere", FAULT_NON_CANONICAL, SIGSEGV, "die_jump_nowhere",
	  "a jump to 0x4142434445464748" },
	{ "fault-return-nowhere", FAULT_EXECUTE, SIGSEGV, "die_return_nowhere", "0x3a6f6d7264" },
	{ "fault-wide-frame", FAULT_NULL, SIGSEGV, "die_wide_frame", "NULL+0x28" },
	{ "fault-after-probing", FAULT_NULL, SIGSEGV, "die_null", "NULL+0x28" },
	{ "fault-abort-handled", FAULT_ABORT, SIGABRT, "die_abort_handled", "abort" },
	{ "fault-freed-ids", FAULT_FREED, SIGSEGV, "die_freed", "in a freed block" },
	{ "fault-beyond-ids", FAULT_BEYOND, SIGSEGV, "die_beyond", "behind the end of block" },
	{ "fault-freed-ago-ids", FAULT_FREED, SIGSEGV, "die_freed_ago", "in a freed block" },
	{ "fault-call-recycled-ids", FAULT_NON_CANONICAL, SIGSEGV, "die_call_recycled",
	  "a jump to 0x4141414141414141" },
	{ "fault-jump-recycled-ids", FAULT_EXECUTE, SIGSEGV, "die_jump_recycled", "no code" },
	{ "heap-read", FAULT_FREED, SIGSEGV, "item_touch", "what was read from a freed block" },
};

/* The crash observer knows files by their path only: its functions have names where the corpus was
 * recorded, and nowhere else. */
static bool has_build_ids(struct reading *reading)
{
	return corpus_logs(reading)->list.items[0].modules.count > 0;
}

static void every_fault_has_its_class(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(faults[i].name);
		const struct crash *crash = reading_crash(reading, CRASH_WHOLE);
		const struct crash *site = reading_crash(reading, CRASH_SITE);

		if (!crash || crash->fault != faults[i].fault || crash->signal != faults[i].signal)
			fail_msg("%s: %s, signal %d", faults[i].name,
				 crash ? fault_class_name(crash->fault) : "no crash",
				 crash ? crash->signal : 0);
		if (has_build_ids(reading) && !stack_names(&crash->stack, faults[i].function))
			fail_msg("%s: %s is not in its stack", faults[i].name, faults[i].function);
		if (!says(&crash->words, faults[i].words))
			fail_msg("%s: '%s'", faults[i].name, sentence_of(&crash->words));
		/* The short look, for signatures, must not say another thing. */
		assert_int_equal(site->signal, crash->signal);
		assert_int_equal(site->stack.count, crash->stack.count);
	}
}

static void a_fault_says_how_it_was_made(void **state)
{
	AUTO(reading_closep) struct reading *write = corpus_read("fault-null-write");
	AUTO(reading_closep) struct reading *read = corpus_read("fault-null");
	AUTO(reading_closep) struct reading *loaded = corpus_read("fault-freed-since-ids");
	AUTO(reading_closep) struct reading *dies = corpus_read("fault-handler-dies");
	const struct crash *crash = reading_crash(write, CRASH_WHOLE);

	(void)state;
	assert_true(crash->write);
	assert_int_equal(crash->address, 0x10);
	assert_non_null(crash->instruction);
	assert_int_equal(crash->register_count, 17);
	assert_string_equal(crash->registers[16].name, "rip");
	assert_non_null(strstr(crash->program, "/faults"));
	assert_false(reading_crash(read, CRASH_WHOLE)->write);
	assert_int_equal(reading_crash(read, CRASH_WHOLE)->address, 0x28);
	assert_string_equal(reading_crash(loaded, CRASH_WHOLE)->origin, "mov rax, [rax+0x10]");
	/* Both the fault and the one in its handler are told, that which ended it first. */
	assert_true(reading_crashes(dies, CRASH_WHOLE)->crashes.count >= 1);
}

/* ---- block lives ---- */

static const struct block_life *telling(const struct crash *crash, bool former)
{
	VEC_FOREACH (&crash->blocks, block)
		if (block->telling && block->former == former)
			return block;
	return NULL;
}

static const struct {
	const char *name;
	bool former; /* another has the place now */
	enum block_state state;
	uint64_t size;
	int64_t offset; /* of the pointer */
	const char *allocated, *freed;
} lives[] = {
	{ "fault-freed-ids", false, BLOCK_FREED, 1048576, 5000, "make_large", "drop_large" },
	{ "fault-freed-ago-ids", false, BLOCK_FREED, 1048576, 5000, "make_large", "drop_large" },
	{ "fault-call-recycled-ids", true, BLOCK_FREED, 64, 0, "die_call_recycled",
	  "die_call_recycled" },
	{ "fault-call-recycled-ids", false, BLOCK_LIVE, 64, 0, "die_call_recycled", NULL },
	{ "fault-jump-recycled-ids", true, BLOCK_FREED, 64, 0, "die_jump_recycled",
	  "die_jump_recycled" },
	{ "fault-freed-variable-ids", false, BLOCK_FREED, 40, 16, "die_freed_variable",
	  "die_freed_variable" },
	{ "chase-write-after-free", true, BLOCK_FREED, 24, 0, "timer_start", "timer_cancel" },
	{ "chase-write-after-free", false, BLOCK_LIVE, 24, 0, "subscribe", NULL },
	{ "chase-dangling-global", true, BLOCK_FREED, 32, 0, "settings_load", "settings_drop" },
	{ "chase-memcpy", false, BLOCK_LIVE, 32, 0, "entry_new", NULL },
	{ "heap-read", false, BLOCK_FREED, 24, 0, "item_new", "item_drop" },
};

static void blocks_have_their_lives(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(lives[i].name);
		const struct block_life *block =
			telling(reading_crash(reading, CRASH_WHOLE), lives[i].former);

		if (!block)
			fail_msg("%s: no telling block", lives[i].name);
		assert_int_equal(block->state, lives[i].state);
		assert_int_equal(block->size, lives[i].size);
		assert_int_equal(block->value - block->start, lives[i].offset);
		/* CONTEXT, and of a block that is known to the table its number. */
		assert_non_null(block->key);
		assert_int_equal(strcspn(block->key, "@#"), 16);
		assert_int_equal(strchr(block->key, '#') != NULL, !lives[i].former);
		if (!stack_names(&block->allocated, lives[i].allocated))
			fail_msg("%s: not allocated by %s", lives[i].name, lives[i].allocated);
		if (lives[i].freed && !stack_names(&block->freed, lives[i].freed))
			fail_msg("%s: not freed by %s", lives[i].name, lives[i].freed);
		if (!lives[i].freed)
			assert_int_equal(block->freed.count, 0);
	}
}

static void a_pointer_behind_the_end_is_told(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("fault-beyond-ids");
	const struct block_life *block = telling(reading_crash(reading, CRASH_WHOLE), false);

	(void)state;
	assert_true(block->beyond);
	assert_int_equal(block->state, BLOCK_LIVE);
	assert_true(block->value - block->start >= block->size);
}

static void wrappers_around_malloc_are_marked(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("chase-wrapper");
	const struct crash *crash = reading_crash(reading, CRASH_WHOLE);
	bool seen = false;

	(void)state;
	VEC_FOREACH (&crash->blocks, block)
		for (size_t i = 0; i < block->allocated.count; i++)
			if (block->allocated.frames[i].function &&
			    strcmp(block->allocated.frames[i].function, "xalloc") == 0)
				seen |= (block->allocated.frames[i].flags & FRAME_WRAPPER) != 0;
	assert_true(seen);
}

/* ---- Python ---- */

static void python_frames_stand_where_they_run(void **state)
{
	static const char *const names[] = { "Kl\303\244ss.leaf", "Kl\303\244ss.method", "key" };
	AUTO(reading_closep) struct reading *reading = corpus_read("python-crash");
	const struct crash *crash = reading_crash(reading, CRASH_WHOLE);
	size_t found = 0;

	(void)state;
	assert_non_null(crash);
	assert_int_equal(crash->fault, FAULT_SENT);
	for (size_t i = 0; i < crash->stack.count && found < ARRAY_SIZE(names); i++) {
		const struct frame *frame = &crash->stack.frames[i];

		if (frame->kind != FRAME_PYTHON)
			continue;
		/* Innermost first, by line of tests/victims/python_stack.py. */
		assert_string_equal(frame->function, names[found]);
		assert_non_null(strstr(frame->file, "python_stack.py"));
		assert_true(frame->line > 0);
		found++;
	}
	assert_int_equal(found, ARRAY_SIZE(names));
}

/* ---- files ---- */

static void a_truncation_is_told_with_its_line(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("fault-shrank-ids");
	const struct truncations *cuts = reading_truncations(reading);
	const struct crash *crash = reading_crash(reading, CRASH_WHOLE);
	const struct truncation *cut;

	(void)state;
	assert_int_equal(cuts->list.count, 1);
	cut = &cuts->list.items[0];
	assert_string_equal(cut->cut->how, "ftruncate");
	assert_int_equal(cut->cut->old_size, 8192);
	assert_int_equal(cut->cut->new_size, 100);
	assert_true(stack_names(&cut->cut->stack, "die_shrank"));
	/* The file that it died of. */
	assert_int_equal(crash->file_inode, cut->inode);
	assert_int_equal(crash->file_device, cut->device);
	assert_int_equal(crash->mapped, 8192);
	assert_int_equal(crash->present, 100);
	assert_string_equal(crash->file, cut->path);
}

/* ---- evidence ---- */

static unsigned int told(const char *name, enum evidence_kind kind, struct evidence_list *ret)
{
	AUTO(reading_closep) struct reading *reading = corpus_read(name);
	unsigned int count = 0;

	crash_reading_tell(reading_backtrack(reading, THROUGH_OBJECTS), corpus.symbols,
			   reading_crash(reading, CRASH_WHOLE), ret);
	VEC_FOREACH (&ret->list, e)
		count += e->kind == kind;
	return count;
}

/* What is told of it where an observer has disturbed the trial. */
static unsigned int proven(const char *name, struct evidence_list *ret)
{
	AUTO(reading_closep) struct reading *reading = corpus_read(name);
	unsigned int count = 0;

	reading_tell_proof(reading, ret);
	VEC_FOREACH (&ret->list, e)
		count += e->kind == EVIDENCE_MAPPING;
	return count;
}

/* What stood in blocks does not matter to these; it does to those that follow. */
static void a_disturbed_trial_tells_what_needs_no_block(void **state)
{
	static const struct {
		const char *trial;
		size_t crashes;
	} trials[] = {
		{ "fault-null", 1 },	   { "fault-divide", 1 },    { "fault-overflow", 1 },
		{ "fault-assert", 1 },	   { "fault-trap", 1 },	     { "fault-unmapped", 0 },
		{ "fault-beyond-ids", 0 }, { "fault-freed-ids", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(trials); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		size_t crashes = 0;

		assert_int_equal(proven(trials[i].trial, &list), 0);
		VEC_FOREACH (&list.list, e) {
			crashes += e->kind == EVIDENCE_CRASH;
			assert_false(e->failing);
			assert_true(evidence_observed(e));
			assert_true(evidence_of_crash(e));
		}
		assert_int_equal(crashes, trials[i].crashes);
	}
}

static const struct evidence *first(const struct evidence_list *list, enum evidence_kind kind)
{
	VEC_FOREACH (&list->list, e)
		if (e->kind == kind)
			return e;
	return NULL;
}

static void a_failing_trial_tells_by_itself(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list freed = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list twice = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list shrank = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list plain = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list cut = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list none = { 0 };
	const struct evidence *e;

	(void)state;
	assert_int_equal(told("fault-freed-ago-ids", EVIDENCE_FREED_USE, &freed), 1);
	e = first(&freed, EVIDENCE_FREED_USE);
	assert_int_equal(e->freed_use->offset, 0); /* of the pointer that was read from the stack */
	assert_false(e->freed_use->write);
	assert_true(stack_names(&e->freed_use->block->freed, "drop_large"));
	assert_true(stack_names(&e->freed_use->user, "die_freed_ago"));
	assert_true(told("chase-double-free", EVIDENCE_BAD_FREE, &twice) >= 1);
	e = first(&twice, EVIDENCE_BAD_FREE);
	assert_int_equal(e->bad_free->kind, BAD_FREE_DOUBLE);
	assert_true(stack_names(&e->bad_free->second, "index_drop"));
	assert_non_null(e->bad_free->block);
	assert_int_equal(told("fault-shrank-ids", EVIDENCE_MAPPING, &shrank), 1);
	e = first(&shrank, EVIDENCE_MAPPING);
	assert_int_equal(e->mapping->mapped, 8192);
	assert_false(said_anything(&e->note));
	assert_int_equal(proven("fault-shrank", &cut), 1);
	assert_true(said_anything(&first(&cut, EVIDENCE_MAPPING)->note));
	assert_int_equal(proven("chase-unmapped", &none), 0); /* may come of anything */
	assert_int_equal(told("chase-mask", EVIDENCE_CRASH, &plain), 1);
	assert_null(first(&plain, EVIDENCE_FREED_USE));
	assert_null(first(&plain, EVIDENCE_BAD_FREE));
}

/* One bit of a pointer was changed: that it leads into a freed block now is chance. */
static void a_crooked_pointer_uses_no_freed_block(void **state)
{
	struct block_life block = { .state = BLOCK_FREED, .telling = true };
	struct crash crash = { .signal = SIGSEGV, .fault = FAULT_NULL };
	struct crash_reading crashed = { .trial = 1, .through = THROUGH_WHOLE_BLOCKS };

	(void)state;
	VEC_PUSH(&crash.blocks, block);
	for (unsigned int crooked = 0; crooked < 2; crooked++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };

		crashed.backtrack.crooked = crooked;
		crash_reading_tell(&crashed, NULL, &crash, &list);
		assert_int_equal(list.list.count, 1);
		assert_int_equal(list.list.items[0].crash->blocks.items[0].telling, !crooked);
	}
	VEC_DEINIT(&crash.blocks);
}

static void what_passed_has_no_crash(void **state)
{
	unsigned int seen = 0;

	(void)state;
	VEC_FOREACH (&corpus.trials, t) {
		AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);

		if (strcmp(t->ended, "passed") != 0)
			continue;
		seen++;
		assert_null(reading_crash(reading, CRASH_WHOLE));
		assert_null(reading_crash(reading, CRASH_SITE));
		assert_false(reading_backtrack(reading, THROUGH_OBJECTS)->has_record);
	}
	assert_true(seen >= 5);
}

static void every_death_was_recorded(void **state)
{
	unsigned int seen = 0;

	(void)state;
	VEC_FOREACH (&corpus.trials, t) {
		AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);
		const struct crash *crash = reading_crash(reading, CRASH_WHOLE);

		if (t->signal == 0)
			continue;
		seen++;
		if (!crash || (crash->signal != t->signal && crash->ended_by != t->signal))
			fail_msg("%s died of signal %d, and its logs say %d", t->name, t->signal,
				 crash ? crash->signal : 0);
		assert_false(crash->cut_short);
	}
	assert_true(seen >= 50);
}

static void observers_are_all_there(void **state)
{
	static const char *const observers[] = { "crash", "ids", "watch", "heap", "growth" };

	(void)state;
	assert_true(corpus.trials.count >= 60);
	for (size_t i = 0; i < ARRAY_SIZE(observers); i++) {
		bool found = false;

		VEC_FOREACH (&corpus.trials, t)
			found |= strcmp(t->observer, observers[i]) == 0;
		assert_true(found);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_fault_has_its_class),
	cmocka_unit_test(a_fault_says_how_it_was_made),
	cmocka_unit_test(blocks_have_their_lives),
	cmocka_unit_test(a_pointer_behind_the_end_is_told),
	cmocka_unit_test(wrappers_around_malloc_are_marked),
	cmocka_unit_test(python_frames_stand_where_they_run),
	cmocka_unit_test(a_truncation_is_told_with_its_line),
	cmocka_unit_test(a_failing_trial_tells_by_itself),
	cmocka_unit_test(a_disturbed_trial_tells_what_needs_no_block),
	cmocka_unit_test(a_crooked_pointer_uses_no_freed_block),
	cmocka_unit_test(what_passed_has_no_crash),
	cmocka_unit_test(every_death_was_recorded),
	cmocka_unit_test(observers_are_all_there),
};

CORPUS_MAIN(tests)
