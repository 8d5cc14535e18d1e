/*
 * Python frames out of recorded memory, put into the native stack.
 *
 * Arguments: the directory of the victim script, then the interpreters to try.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64_cpu.h"
#include "base/mem.h"
#include "debuginfo/module.h"
#include "debuginfo/open_modules.h"
#include "debuginfo/python_frames.h"
#include "debuginfo/space.h"
#include "debuginfo/symbols.h"
#include "live.h"
#include "wire/python_record.h"

static const char *script;

static void print_stack(const struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		fprintf(stderr, "  #%zu %-6s %s %s:%u cfa %#lx flags %#x\n", i,
			frame_kind_name(stack->frames[i].kind),
			stack->frames[i].function ? stack->frames[i].function : "?",
			stack->frames[i].file ? stack->frames[i].file : "?", stack->frames[i].line,
			(unsigned long)stack->frames[i].cfa, stack->frames[i].flags);
}

static void keep_piece(void *arg, uint64_t address, size_t len)
{
	assert_true(live_record(arg, address, len));
}

/* Keeps of the stopped process what the recorder in a dying one would. */
static void record_python(struct live *live, size_t budget)
{
	struct python_recorder recorder = {
		.read = live_read, .keep = keep_piece, .arg = live, .budget = budget
	};
	struct modules *modules = modules_new(NULL);
	struct python_layout layout;
	uint8_t head[PYTHON_OFFSETS_BYTES];
	taddr version_at = 0, runtime = 0;
	struct space space;
	uint64_t version = 0;

	space_init(&space, modules, &live->snapshot);
	assert_true(space_symbol(&space, "python", "_PyRuntime", &runtime));
	assert_true(space_symbol(&space, "python", "Py_Version", &version_at));
	assert_true(space_read(&space, version_at, &version, sizeof(version)));
	assert_true(python_layout_find(version, &layout));
	assert_true(live_read(live, runtime, head, sizeof(head)));
	assert_true(python_layout_refine(&layout, head, sizeof(head)));
	(void)python_record_sigsafe(&layout, runtime,
				    live->snapshot.registers.value[X86_64_FS_BASE],
				    (uint64_t)live->snapshot.tid, &recorder);
	space_deinit(&space);
	modules_free(modules);
}

static bool is_loop(const struct frame *frame)
{
	/* Without its symbol when the interpreter is stripped and this is the cold part. */
	return !frame->function || strcmp(frame->function, "_PyEval_EvalFrameDefault") == 0;
}

static void check(const char *output, const struct stack *stack)
{
	AUTO(mem_freep) char *text = mem_strdup(output);
	char *state = NULL;
	bool between = true;
	size_t i = 0;

	for (char *l = strtok_r(text, "\n", &state); l; l = strtok_r(NULL, "\n", &state)) {
		const struct frame *frame;
		char *space;

		if (strcmp(l, "--") == 0) {
			if (i >= stack->count || !is_loop(&stack->frames[i])) {
				print_stack(stack);
				fail_msg("frame %zu should be the interpreter's loop", i);
			}
			between = true;
			continue;
		}
		if (between) {
			size_t before = i;

			while (i < stack->count && stack->frames[i].kind != FRAME_PYTHON)
				i++;
			assert_true(i > before); /* native frames stand between the groups */
		}
		between = false;
		space = strrchr(l, ' ');
		assert_non_null(space);
		*space = '\0';
		frame = i < stack->count ? &stack->frames[i++] : NULL;
		if (!frame || frame->kind != FRAME_PYTHON || !frame->function ||
		    strcmp(frame->function, l) != 0 || (int)frame->line != atoi(space + 1) ||
		    !frame->file || !strstr(frame->file, "python_stack.py") ||
		    (frame->flags & FRAME_UNPLACED)) {
			print_stack(stack);
			fail_msg("frame %zu should be '%s' line %s", i - 1, l, space + 1);
		}
	}
}

/* Only the Python frames, all of them, in order. */
static void check_python_only(const char *output, const struct stack *stack)
{
	AUTO(mem_freep) char *text = mem_strdup(output);
	char *state = NULL;
	size_t i = 0;

	for (char *l = strtok_r(text, "\n", &state); l; l = strtok_r(NULL, "\n", &state)) {
		AUTO(mem_freep) char *got = NULL;

		while (i < stack->count && stack->frames[i].kind != FRAME_PYTHON)
			i++;
		if (i < stack->count)
			got = mem_printf("%s %u", stack->frames[i].function, stack->frames[i].line);
		if (!got || strcmp(got, l) != 0 || (stack->frames[i].flags & FRAME_UNPLACED)) {
			print_stack(stack);
			fail_msg("frame %zu should be '%s'", i, l);
		}
		i++;
	}
	for (; i < stack->count; i++)
		assert_int_not_equal(stack->frames[i].kind, FRAME_PYTHON);
}

static void test_interpreter(void **state)
{
	struct symbols *symbols = symbols_new(&(struct symbols_options){ 0 });
	static const char *const hows[] = { "main", "thread", "mixed" };
	struct err err;

	for (size_t i = 0; i < 3; i++) {
		const char *argv[] = { *state, script, hows[i], NULL };
		struct stack stack = { 0 };
		struct live live;

		live_start(&live, argv);
		assert_true((live.snapshot.tid == live.snapshot.pid) == (i != 1));
		record_python(&live, 65536);
		assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
		if (i == 2)
			check_python_only(live.output, &stack);
		else
			check(live.output, &stack);
		assert_int_equal(stack.end, STACK_COMPLETE);
		stack_deinit(&stack);
		live_stop(&live);
	}
	symbols_free(symbols);
}

/* A recorder that runs out of room keeps the innermost frames. */
static void test_budget(void **state)
{
	struct symbols *symbols = symbols_new(&(struct symbols_options){ 0 });
	const char *argv[] = { *state, script, NULL };
	size_t last = 0;

	for (size_t budget = 0; budget <= 3000; budget += 500) {
		struct stack stack = { 0 };
		struct live live;
		struct err err;
		size_t python = 0, kept = 0;

		live_start(&live, argv);
		kept = live.snapshot.piece_count;
		record_python(&live, budget);
		for (; kept < live.snapshot.piece_count; kept++)
			python += live.pieces[kept].len;
		assert_true(python <= budget);
		python = 0;
		assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
		for (size_t i = 0; i < stack.count; i++)
			python += stack.frames[i].kind == FRAME_PYTHON;
		assert_true(python >= last);
		last = python;
		stack_deinit(&stack);
		live_stop(&live);
	}
	assert_true(last >= 2);
	symbols_free(symbols);
}

/* Damage in the recorded objects: a shorter or wrong list, nothing worse. */
static void test_damaged(void **state)
{
	struct symbols *symbols = symbols_new(&(struct symbols_options){ 0 });
	const char *argv[] = { *state, script, NULL };
	uint64_t seed = 0x9e3779b97f4a7c15u;
	struct live live;
	struct err err;

	live_start(&live, argv);
	record_python(&live, 65536);
	for (unsigned int round = 0; round < 400; round++) {
		struct stack stack = { 0 };
		size_t p;
		uint8_t *bytes;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		p = seed % live.snapshot.piece_count;
		bytes = (uint8_t *)(uintptr_t)live.pieces[p].bytes;
		if (seed >> 60 == 0)
			live.pieces[p].len /= 2;
		else if (live.pieces[p].len > 0)
			bytes[(seed >> 32) % live.pieces[p].len] ^= (uint8_t)(seed >> 24);
		assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
		stack_deinit(&stack);
	}
	live_stop(&live);
	symbols_free(symbols);
}

/* Entries made by hand after Objects/locations.md. */
static void test_line_table(void **state)
{
	static const uint8_t table[] = {
		0x80 | 13 << 3 | 1, 0x02 /* +1 */,	 /* units 0-1: line 11, no columns */
		0x80 | 0 << 3 | 0,  0x11,		 /* unit 2: same line */
		0x80 | 15 << 3 | 0,			 /* unit 3: no line */
		0x80 | 12 << 3 | 2, 0x01,	   0x02, /* units 4-6: +2 */
		0x80 | 14 << 3 | 0, 0x43,	   0x01, 0x00, 1, 1, /* unit 7: -(33) */
	};

	(void)state;
	assert_int_equal(python_line(table, sizeof(table), 10, 0), 11);
	assert_int_equal(python_line(table, sizeof(table), 10, 2), 11);
	assert_int_equal(python_line(table, sizeof(table), 10, 3), 0);
	assert_int_equal(python_line(table, sizeof(table), 10, 6), 13);
	assert_int_equal(python_line(table, sizeof(table), 100, 7), 100 + 3 - 33);
	assert_int_equal(python_line(table, sizeof(table), 10, 8), 0);
	assert_int_equal(python_line(table, 0, 10, 0), 0);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[32] = { cmocka_unit_test(test_line_table) };
	size_t count = 1;

	if (argc < 2)
		return 99;
	script = mem_printf("%s/python_stack.py", argv[1]);
	for (int i = 2; i < argc && count < 29; i++) {
		tests[count++] =
			(struct CMUnitTest){ argv[i], test_interpreter, NULL, NULL, argv[i] };
		if (i == 2)
			tests[count++] =
				(struct CMUnitTest){ "budget", test_budget, NULL, NULL, argv[i] };
		if (i == 2)
			tests[count++] =
				(struct CMUnitTest){ "damaged", test_damaged, NULL, NULL, argv[i] };
	}
	return _cmocka_run_group_tests("python_frames", tests, count, NULL, NULL);
}
