/*
 * Offline unwinding and naming, compared with what small programs say about their own stacks.
 *
 * The programs are in VICTIMS (the directory that the build puts them in).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "arch/x86_64_cpu.h"
#include "base/mem.h"
#include "debuginfo/module.h"
#include "debuginfo/symbols.h"
#include "in_range.h"
#include "live.h"

static const char *victims;
static char scratch[] = "/tmp/redhand-unwind-XXXXXX";

static void print_stack(const struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *f = &stack->frames[i];

		fprintf(stderr, "  #%zu %s %s:%u %s+%#lx %s %#x\n", i,
			f->function ? f->function : "?", f->file ? f->file : "?", f->line,
			f->module ? f->module : "?", (unsigned long)f->offset,
			frame_kind_name(f->kind), f->flags);
	}
	fprintf(stderr, "  end: %s\n", stack_end_name(stack->end));
}

static void run(struct live *live, const char *program, const char *how)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", victims, program);
	const char *argv[] = { path, how, NULL };

	live_start(live, argv);
}

static bool matches(const char *expected, int line, const struct frame *frame)
{
	if (strcmp(expected, "*signal*") == 0)
		return frame->flags & FRAME_SIGNAL;
	if (strcmp(expected, "?") == 0)
		return !frame->function && !frame->file && frame->kind == FRAME_NATIVE;
	return frame->function && strcmp(frame->function, expected) == 0 &&
	       (line == 0 || (int)frame->line == line);
}

/* Every frame, in order, up to main; "*library*" stands for one or more frames of libraries. */
static void check(const char *output, const struct stack *stack, const char *victim)
{
	AUTO(mem_freep) char *text = mem_strdup(output);
	char *state = NULL;
	size_t i = 0;

	for (char *l = strtok_r(text, "\n", &state); l; l = strtok_r(NULL, "\n", &state)) {
		char *space = strrchr(l, ' ');
		size_t before = i;

		assert_non_null(space);
		*space = '\0';
		if (strcmp(l, "*library*") == 0) {
			while (i < stack->count && stack->frames[i].module &&
			       !strstr(stack->frames[i].module, victim))
				i++;
			if (i > before)
				continue;
		} else if (i < stack->count && matches(l, atoi(space + 1), &stack->frames[i])) {
			i++;
			continue;
		}
		print_stack(stack);
		fail_msg("frame %zu should be '%s' line %s", i, l, space + 1);
	}
	if (stack->end != STACK_COMPLETE)
		print_stack(stack);
	assert_int_equal(stack->end, STACK_COMPLETE);
}

static struct symbols *symbols_for_test(void)
{
	struct symbols_options options = { .perf_map_dir = scratch };

	return symbols_new(&options);
}

static void compare(const char *program, const char *how)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	run(&live, program, how);
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	check(live.output, &stack, program);
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

#define CASE(name, program, how)       \
	static void name(void **state) \
	{                              \
		(void)state;           \
		compare(program, how); \
	}

CASE(test_plain, "stacks", "plain")
CASE(test_signal, "stacks", "signal")
CASE(test_qsort, "stacks", "qsort")
CASE(test_null_call, "stacks", "null-call")
CASE(test_data_call, "stacks", "data-call")
CASE(test_jit, "stacks", "jit")
CASE(test_jit_leaf, "stacks", "jit-leaf")
CASE(test_deep, "stacks", "deep")
CASE(test_assembly, "stacks", "strlen")
CASE(test_abort, "stacks", "abort")
CASE(test_thread, "stacks", "thread")
CASE(test_tail, "stacks", "tail")
CASE(test_tail_chain, "stacks", "tail-chain")
CASE(test_tail_one_way, "stacks", "tail-one-way")
CASE(test_tail_by_pointer, "stacks", "tail-pointer")
CASE(test_cold_part, "stacks", "cold")
CASE(test_no_aranges, "stacks-noaranges", "plain")
CASE(test_debuglink, "stacks-split", "signal")
CASE(test_templates, "templates", "")
CASE(test_fixed_address, "stacks-fixed", "plain")
CASE(test_debug_frame, "stacks-debugframe", "signal")
CASE(test_dwarf4, "stacks-dwarf4", "qsort")

/* The function that left by one of two jumps is certain; where it went first is not. */
static void test_tail_of_two(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;
	size_t put_back = 0;

	(void)state;
	run(&live, "stacks", "tail-either");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	check(live.output, &stack, "stacks");
	for (size_t i = 0; i < stack.count; i++)
		if (stack.frames[i].flags & FRAME_TAIL) {
			assert_string_equal(stack.frames[i].function, "jumps_either");
			put_back++;
		}
	assert_int_equal(put_back, 1);
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* Where every function has a frame, none is put back. */
static void test_no_tails(void **state)
{
	static const char *const hows[] = { "plain",  "signal", "qsort", "null-call", "abort",
					    "strlen", "jit",	"cold",	 "smash" };
	struct symbols *symbols = symbols_for_test();

	(void)state;
	for (size_t h = 0; h < sizeof(hows) / sizeof(hows[0]); h++) {
		struct stack stack = { 0 };
		struct live live;
		struct err err;

		run(&live, "stacks", hows[h]);
		assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
		for (size_t i = 0; i < stack.count; i++)
			if (stack.frames[i].flags & FRAME_TAIL && stack.frames[i].module &&
			    strstr(stack.frames[i].module, "stacks")) {
				print_stack(&stack);
				fail_msg("%s: frame %zu has been put back", hows[h], i);
			}
		stack_deinit(&stack);
		live_stop(&live);
	}
	symbols_free(symbols);
}

/* A trampoline without unwind information, as other C libraries and emitted code have it: known by
 * its instructions. */
static void test_bare_trampoline(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack with = { 0 }, without = { 0 };
	struct live live;
	struct err err;
	size_t i = 0;

	(void)state;
	run(&live, "stacks", "signal");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &with, &err), 0);
	while (i < with.count && !(with.frames[i].flags & FRAME_SIGNAL))
		i++;
	assert_true(i + 2 < with.count);
	assert_true(live_record(&live, with.frames[i].address, 16));
	for (size_t m = 0; m < live.snapshot.mapping_count; m++)
		if (live.mappings[m].path && strstr(live.mappings[m].path, "/libc.so"))
			live_set_path(&live.mappings[m], NULL);
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &without, &err), 0);
	assert_true(i + 2 < without.count);
	assert_int_equal(without.frames[i].kind, FRAME_JIT); /* in no file any more */
	assert_true(without.frames[i].flags & FRAME_SIGNAL);
	assert_string_equal(without.frames[i].function, "<signal handler called>");
	assert_string_equal(without.frames[i + 1].function, "at_start");
	assert_true(without.frames[i + 1].flags & FRAME_EXACT);
	assert_string_equal(without.frames[i + 2].function, "interrupted");
	stack_deinit(&with);
	stack_deinit(&without);
	live_stop(&live);
	symbols_free(symbols);
}

/* Endless recursion: as many frames as wanted, and no more. */
static void test_overflow(void **state)
{
	struct symbols_options options = { .perf_map_dir = scratch, .max_frames = 100 };
	struct symbols *symbols = symbols_new(&options);
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	(void)state;
	run(&live, "stacks", "overflow");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_int_equal(stack.end, STACK_TOO_DEEP);
	assert_int_equal(stack.count, 100);
	for (size_t i = 0; i < stack.count; i++)
		assert_string_equal(stack.frames[i].function, "overflow");
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* The return address was overwritten: that is shown, and what lies further up is marked. */
static void test_smashed(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;
	bool guessed = false, found = false;

	(void)state;
	run(&live, "stacks", "smash");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_true(stack.count > 3);
	assert_string_equal(stack.frames[0].function, "smash");
	assert_int_equal(stack.frames[1].address, 0x4141414141414141);
	assert_null(stack.frames[1].function);
	for (size_t i = 2; i < stack.count; i++) {
		guessed |= (stack.frames[i].flags & FRAME_GUESSED) != 0;
		found |= stack.frames[i].function && strcmp(stack.frames[i].function, "main") == 0;
		assert_true(guessed); /* nothing certain comes right after it */
	}
	assert_true(found);
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* A return that led nowhere: the function that returned is named, although its frame is gone, and
 * not one whose address lies where a call would have left it. Who it was to return to was written
 * over; who called that is found, and not by the old addresses that lie about. */
static void compare_astray(const char *program, unsigned int how)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	run(&live, program, "astray");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_true(stack.count > 3);
	assert_int_equal(stack.frames[0].address, 0x3a6f6d7264);
	assert_string_equal(stack.frames[1].function, "astray");
	assert_true(stack.frames[1].flags & FRAME_RETURNED);
	assert_string_equal(stack.frames[2].function, "main");
	assert_int_equal(stack.frames[2].flags, how);
	for (size_t i = 2; i < stack.count; i++) {
		assert_false(stack.frames[i].flags & FRAME_RETURNED);
		/* Without debug packages the C library's inner functions have no names. */
		assert_true(i == 2 || !stack.frames[i].function ||
			    strcmp(stack.frames[i].function, "main") != 0);
	}
	assert_int_equal(stack.end, STACK_COMPLETE);
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

static void test_astray(void **state)
{
	(void)state;
	compare_astray("stacks", FRAME_GUESSED);
	compare_astray("stacks-fixed", FRAME_GUESSED);
	compare_astray("stacks-debugframe", FRAME_GUESSED);
	compare_astray("stacks-pointers", FRAME_BY_FRAME_POINTER);
}

/* Of a part of it, or of one at the ends of the address space, that one is told or none. */
static void test_astray_in_parts(void **state)
{
	static const uint64_t ends[] = { 0, 8, 16, 24, 4096, 4104, 4112, 8192, 12288 };
	struct symbols *symbols = symbols_for_test();
	unsigned int sp = arch_native()->sp, told = 0;
	struct live live;
	struct err err;
	size_t below;

	(void)state;
	run(&live, "stacks", "astray");
	below = (size_t)(live.snapshot.registers.value[sp] - live.snapshot.stack.address);
	for (size_t i = 0; i < 200 + 2 * ARRAY_SIZE(ends); i++) {
		struct snapshot part = live.snapshot;
		struct stack stack = { 0 };
		size_t cut = 0;

		if (i < 100) {
			cut = (below - 4) * i / 99;
			part.stack.address += cut;
			part.stack.bytes += cut;
			part.stack.len -= cut;
		} else if (i < 200) {
			part.stack.len = below + 8 * (i - 100);
		} else {
			part.registers.value[sp] = ends[(i - 200) / 2];
			if (i % 2 == 0)
				part.registers.value[sp] = -part.registers.value[sp];
			part.stack.address = part.registers.value[sp] - below;
		}
		assert_int_equal(symbols_unwind(symbols, &part, &stack, &err), 0);
		assert_int_equal(stack.frames[0].address, 0x3a6f6d7264);
		for (size_t k = 0; k < stack.count; k++)
			if (stack.frames[k].flags & FRAME_RETURNED) {
				assert_int_equal(k, 1);
				assert_string_equal(stack.frames[k].function, "astray");
				told++;
			}
		stack_deinit(&stack);
	}
	assert_uint_in_range(told, 150, 216);
	live_stop(&live);
	symbols_free(symbols);
}

/* Naming one address gives what unwinding gave. */
static void test_single_addresses(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack whole = { 0 }, single = { 0 };
	struct live live;
	struct err err;

	(void)state;
	run(&live, "stacks", "signal");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &whole, &err), 0);
	for (size_t i = 0; i < whole.count; i++)
		if (whole.frames[i].kind != FRAME_INLINE)
			symbols_name(symbols, &live.snapshot, whole.frames[i].address,
				     whole.frames[i].flags, &single);
	assert_int_equal(single.count, whole.count);
	for (size_t i = 0; i < whole.count; i++) {
		/* Without debug packages the C library's inner functions have no names. */
		assert_int_equal(!single.frames[i].function, !whole.frames[i].function);
		if (whole.frames[i].function)
			assert_string_equal(single.frames[i].function, whole.frames[i].function);
		assert_int_equal(single.frames[i].line, whole.frames[i].line);
		assert_int_equal(single.frames[i].kind, whole.frames[i].kind);
	}
	stack_deinit(&whole);
	stack_deinit(&single);
	live_stop(&live);
	symbols_free(symbols);
}

/* Stopped in the vDSO: its image recorded whole, in part (then our own must agree), or not. */
static void test_vdso(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;
	size_t pieces;

	(void)state;
	run(&live, "stacks", "vdso");
	live_step_into(&live, "[vdso]");
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_int_equal(stack.frames[0].kind, FRAME_KERNEL);
	assert_non_null(stack.frames[0].function);
	check(live.output, &stack, "stacks");
	stack_deinit(&stack);

	for (size_t i = 0; i < live.snapshot.mapping_count; i++)
		if (live.mappings[i].path && strcmp(live.mappings[i].path, "[vdso]") == 0)
			assert_true(live_record(&live, live.mappings[i].start,
						live.mappings[i].end - live.mappings[i].start));
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_int_equal(stack.frames[0].kind, FRAME_KERNEL);
	assert_non_null(stack.frames[0].function);
	check(live.output, &stack, "stacks");
	stack_deinit(&stack);

	/* Nothing known about it: no name, but the callers are found. */
	pieces = live.snapshot.piece_count;
	live.snapshot.piece_count = 0;
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_int_equal(stack.frames[0].kind, FRAME_KERNEL);
	assert_null(stack.frames[0].function);
	check(live.output, &stack, "stacks");
	stack_deinit(&stack);
	live.snapshot.piece_count = pieces;
	live_stop(&live);
	symbols_free(symbols);
}

/* Makes scratch/.build-id/ab/cdef…SUFFIX a link to a victim. */
static void link_build_id(const uint8_t *id, size_t len, const char *suffix, const char *victim)
{
	AUTO(mem_freep) char *target = mem_printf("%s/%s", victims, victim);
	AUTO(mem_freep) char *real = realpath(target, NULL);
	char name[256];
	int n = snprintf(name, sizeof(name), "%s/.build-id", scratch);

	(void)mkdir(name, 0700);
	n += snprintf(name + n, sizeof(name) - (size_t)n, "/%02x", id[0]);
	(void)mkdir(name, 0700);
	n += snprintf(name + n, sizeof(name) - (size_t)n, "/");
	for (size_t i = 1; i < len; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", id[i]);
	(void)snprintf(name + n, sizeof(name) - (size_t)n, "%s", suffix);
	assert_int_equal(symlink(real, name), 0);
}

static size_t build_id_of(const char *victim, uint8_t *ret)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", victims, victim);
	struct module *module;
	const uint8_t *id;
	struct err err;
	size_t len;

	assert_int_equal(module_open(path, NULL, &module, &err), 0);
	len = module_build_id(module, &id);
	assert_uint_in_range(len, 8, BUILD_ID_MAX);
	memcpy(ret, id, len);
	module_close(module);
	return len;
}

/* No .gnu_debuglink: the debug file is found by build-id in the given path. */
static void test_build_id_path(void **state)
{
	struct symbols_options options = { .perf_map_dir = scratch, .debug_path = scratch };
	uint8_t id[BUILD_ID_MAX];
	size_t len = build_id_of("stacks-bare", id);
	struct symbols *symbols;
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	(void)state;
	run(&live, "stacks-bare", "plain");
	symbols = symbols_new(&options);
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_null(stack.frames[0].function); /* not yet there */
	stack_deinit(&stack);
	symbols_free(symbols);

	link_build_id(id, len, ".debug", "stacks-split.debug");
	symbols = symbols_new(&options);
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	check(live.output, &stack, "stacks-bare");
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* The program is gone from its place, but a file with its build-id is kept elsewhere. */
static void test_found_by_build_id(void **state)
{
	struct symbols_options options = { .perf_map_dir = scratch, .debug_path = scratch };
	struct symbols *symbols = symbols_new(&options);
	uint8_t id[BUILD_ID_MAX];
	size_t len = build_id_of("stacks", id);
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	(void)state;
	link_build_id(id, len, "", "stacks");
	run(&live, "stacks", "plain");
	for (size_t i = 0; i < live.snapshot.mapping_count; i++) {
		struct mapping *m = &live.mappings[i];

		if (!m->path || !strstr(m->path, "/stacks"))
			continue;
		live_set_path(m, "/nowhere/stacks (deleted)");
		memcpy(m->build_id, id, len);
		m->build_id_len = len;
	}
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	check(live.output, &stack, "stacks");
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* The same program without any names: the frames must be the same ones, by offset. */
static void test_stripped(void **state)
{
	static const char *const hows[] = { "plain",	 "signal", "qsort",	"jit",
					    "null-call", "tail",   "tail-chain" };
	struct symbols *symbols = symbols_for_test();

	(void)state;
	for (size_t h = 0; h < sizeof(hows) / sizeof(hows[0]); h++) {
		struct stack full = { 0 }, bare = { 0 };
		struct live a, b;
		struct err err;
		size_t i = 0, j = 0;

		run(&a, "stacks", hows[h]);
		run(&b, "stacks-stripped", hows[h]);
		assert_int_equal(symbols_unwind(symbols, &a.snapshot, &full, &err), 0);
		assert_int_equal(symbols_unwind(symbols, &b.snapshot, &bare, &err), 0);
		for (; i < full.count; i++) {
			if (full.frames[i].kind == FRAME_INLINE)
				continue;
			while (j < bare.count && bare.frames[j].kind == FRAME_INLINE)
				j++; /* in libraries */
			assert_true(j < bare.count);
			assert_int_equal(bare.frames[j].offset, full.frames[i].offset);
			if (bare.frames[j].module &&
			    strstr(bare.frames[j].module, "stacks-stripped"))
				assert_null(bare.frames[j].file);
			j++;
		}
		assert_int_equal(j, bare.count);
		assert_int_equal(bare.end, STACK_COMPLETE);
		stack_deinit(&full);
		stack_deinit(&bare);
		live_stop(&a);
		live_stop(&b);
	}
	symbols_free(symbols);
}

/* Neither unwind information nor frame pointers: the callers are found by their return addresses,
 * and marked as guessed. */
static void test_no_unwind_information(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack full = { 0 }, bare = { 0 };
	struct live a, b;
	struct err err;
	size_t j = 0;

	(void)state;
	run(&a, "stacks-debugframe", "plain");
	run(&b, "stacks-nothing", "plain");
	assert_int_equal(symbols_unwind(symbols, &a.snapshot, &full, &err), 0);
	assert_int_equal(symbols_unwind(symbols, &b.snapshot, &bare, &err), 0);
	for (size_t i = 0; i < full.count; i++) {
		if (full.frames[i].kind == FRAME_INLINE ||
		    !strstr(full.frames[i].module, "stacks-debugframe") ||
		    strcmp(full.frames[i].function, "_start") == 0)
			continue;
		while (j < bare.count && bare.frames[j].offset != full.frames[i].offset)
			j++;
		assert_true(j < bare.count);
		if (i > 2) /* the crash itself, with two frames inlined, is certain */
			assert_true(bare.frames[j].flags &
				    (FRAME_GUESSED | FRAME_BY_FRAME_POINTER));
	}
	stack_deinit(&full);
	stack_deinit(&bare);
	live_stop(&a);
	live_stop(&b);
	symbols_free(symbols);
}

/* The program was rebuilt after the crash: say so, and give no names from the wrong file. */
static void test_replaced(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;

	(void)state;
	run(&live, "stacks", "plain");
	for (size_t i = 0; i < live.snapshot.mapping_count; i++) {
		struct mapping *m = &live.mappings[i];

		if (m->path && strstr(m->path, "/stacks")) {
			memset(m->build_id, 0x5a, 20);
			m->build_id_len = 20;
		}
	}
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_true(stack.count > 0);
	for (size_t i = 0; i < stack.count; i++) {
		if (!stack.frames[i].module || !strstr(stack.frames[i].module, "/stacks"))
			continue;
		assert_true(stack.frames[i].flags & FRAME_FILE_REPLACED);
		assert_null(stack.frames[i].function);
		assert_null(stack.frames[i].file);
	}
	assert_true(stack.frames[0].flags & FRAME_FILE_REPLACED);
	stack_deinit(&stack);

	/* A different size says it too, when no build-id was recorded. */
	for (size_t i = 0; i < live.snapshot.mapping_count; i++) {
		live.mappings[i].build_id_len = 0;
		live.mappings[i].file_size = 12345;
	}
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	assert_true(stack.frames[0].flags & FRAME_FILE_REPLACED);
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* Only modules were recorded, with their load bias and no file offsets. */
static void test_modules_only(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack stack = { 0 };
	struct live live;
	struct err err;
	taddr base = 0;

	(void)state;
	run(&live, "stacks", "plain");
	for (size_t i = 0; i < live.snapshot.mapping_count; i++) {
		struct mapping *m = &live.mappings[i];

		if (!m->path || m->path[0] != '/')
			continue;
		if (m->file_offset == 0)
			base = m->start; /* of a position-independent file: address 0 in it */
		m->bias = base;
		m->bias_known = true;
		m->file_offset = 0;
	}
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
	check(live.output, &stack, "stacks");
	stack_deinit(&stack);
	live_stop(&live);
	symbols_free(symbols);
}

/* Keeps the mappings of code, as they are all that is known of most places. Returns how many. */
static size_t code_only(const struct snapshot *snapshot, struct mapping *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->mapping_count; i++)
		if (snapshot->mappings[i].perms & MAPPING_EXEC)
			ret[count++] = snapshot->mappings[i];
	return count;
}

/* The recorded slice is shorter than the stack. */
static void test_truncated(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct stack whole = { 0 };
	const struct mapping *mappings;
	struct mapping code[64];
	size_t mapping_count;
	struct live live;
	struct err err;
	size_t len, needed;

	(void)state;
	run(&live, "stacks", "deep");
	len = live.snapshot.stack.len;
	assert_int_equal(symbols_unwind(symbols, &live.snapshot, &whole, &err), 0);
	/* The outermost frame needs nothing, the one before it its return address. */
	needed = (size_t)(whole.frames[whole.count - 2].cfa - live.snapshot.stack.address);
	assert_uint_in_range(needed, 500, 20000);
	mappings = live.snapshot.mappings;
	mapping_count = live.snapshot.mapping_count;
	assert_true(mapping_count <= ARRAY_SIZE(code));
	for (size_t cut = 0; cut < 2 * needed; cut += 8) {
		struct stack stack = { 0 };

		if (cut == needed) {
			live.snapshot.mapping_count = code_only(&live.snapshot, code);
			live.snapshot.mappings = code;
		}
		live.snapshot.stack.len = cut < needed ? cut : cut - needed;
		assert_int_equal(symbols_unwind(symbols, &live.snapshot, &stack, &err), 0);
		assert_true(stack.count > 0 && stack.count < whole.count);
		/* What is there is right; what is not is not made up. */
		for (size_t i = 0; i < stack.count; i++)
			assert_int_equal(stack.frames[i].address, whole.frames[i].address);
		assert_int_equal(stack.end, STACK_TRUNCATED);
		stack_deinit(&stack);
	}
	live.snapshot.stack.len = len;
	live.snapshot.mappings = mappings;
	live.snapshot.mapping_count = mapping_count;
	stack_deinit(&whole);
	live_stop(&live);
	symbols_free(symbols);
}

/* What a call leaves as it was is known in all callers, also where no function in between saved it.
 */
static void test_kept_registers(void **state)
{
	struct symbols *symbols = symbols_for_test();
	uint32_t kept = arch_native()->callee_saved;
	struct machine_frame frames[16];
	struct live live;
	size_t count;

	(void)state;
	run(&live, "stacks", "deep");
	count = symbols_machine_frames(symbols, &live.snapshot, frames, 16);
	assert_true(count >= 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(frames[i].registers.known & kept, kept);
	machine_frames_free(frames, count);
	live_stop(&live);
	symbols_free(symbols);
}

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Registers, stack and mappings full of lies: any answer will do, a crash will not. */
static void unwind_damaged(const char *how, unsigned int rounds)
{
	struct symbols *symbols = symbols_for_test();
	struct live live;
	struct err err;

	run(&live, "stacks", how);
	for (unsigned int round = 0; round < rounds; round++) {
		struct snapshot damaged = live.snapshot;
		size_t len = live.snapshot.stack.len < 8192 ? live.snapshot.stack.len : 8192;
		AUTO(mem_freep) uint8_t *bytes = mem_alloc(len);
		AUTO(mem_freep)
		struct mapping *maps = mem_alloc(damaged.mapping_count * sizeof(*maps));
		struct stack stack = { 0 };

		memcpy(bytes, live.snapshot.stack.bytes, len);
		memcpy(maps, live.mappings, damaged.mapping_count * sizeof(*maps));
		damaged.stack.bytes = bytes;
		damaged.stack.len = len;
		damaged.mappings = maps;
		for (uint64_t n = next_random() % 8; n > 0; n--) {
			uint64_t r = next_random();

			switch (r % 6) {
			case 0:
				damaged.registers.value[(r >> 8) % X86_64_REGISTERS] =
					next_random();
				break;
			case 1: /* a plausible but wrong value */
				damaged.registers.value[(r >> 8) % X86_64_REGISTERS] =
					damaged.stack.address + (r >> 16) % len;
				break;
			case 2:
				bytes[(r >> 8) % len] = (uint8_t)(r >> 40);
				break;
			case 3:
				memcpy(bytes + ((r >> 8) % (len / 8)) * 8,
				       &damaged.registers.value[X86_64_RIP], 8);
				break;
			case 4:
				maps[(r >> 8) % damaged.mapping_count].file_offset =
					next_random() >> 40;
				break;
			case 5:
				maps[(r >> 8) % damaged.mapping_count].end = next_random();
				break;
			}
		}
		if (round % 7 == 0)
			damaged.stack.address = next_random();
		if (symbols_unwind(symbols, &damaged, &stack, &err) == 0)
			assert_true(stack.count > 0);
		stack_deinit(&stack);
	}
	live_stop(&live);
	symbols_free(symbols);
}

static void test_damaged(void **state)
{
	(void)state;
	unwind_damaged("deep", 3000);
	unwind_damaged("astray", 1000);
}

/* Mapped files that are no programs are told apart without being looked through. */
static void test_not_elf(void **state)
{
	static const char *const contents[] = { "", "\177ELF", "\x1f\x8b\x08 compressed",
						"#!/bin/sh\n" };
	AUTO(mem_freep) char *path = mem_printf("%s/file", scratch);
	struct module *module = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		assert_true(fputs(contents[i], file) >= 0);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(module_open(path, NULL, &module, &err), -ENOEXEC);
		assert_null(module);
	}
	assert_int_equal(module_open(scratch, NULL, &module, &err), -ENOEXEC);
	assert_int_equal(module_open("/nowhere/at/all", NULL, &module, &err), -ENOENT);
}

static void copy_victim(const char *victim, const char *to)
{
	AUTO(mem_freep) char *command = mem_printf("cp '%s/%s' '%s'", victims, victim, to);

	assert_int_equal(system(command), 0);
}

/* A file is opened once in a process, as long as it stays what it was. */
static void test_opened_once(void **state)
{
	AUTO(mem_freep) char *path = mem_printf("%s/program", scratch);
	struct module *first = NULL, *second = NULL, *other = NULL;
	uint8_t before[BUILD_ID_MAX];
	const uint8_t *id;
	struct err err;
	size_t len;

	(void)state;
	copy_victim("stacks", path);
	assert_int_equal(module_open(path, NULL, &first, &err), 0);
	assert_int_equal(module_open(path, NULL, &second, &err), 0);
	assert_ptr_equal(first, second);
	/* Other debug files may belong to it there. */
	assert_int_equal(module_open(path, scratch, &other, &err), 0);
	assert_ptr_not_equal(first, other);
	module_close(other);
	module_close(second);
	module_close(first);
	assert_int_equal(module_open(path, NULL, &second, &err), 0);
	assert_ptr_equal(first, second);

	/* Replaced: the new one is opened, and whoever has the old one keeps it. */
	len = module_build_id(first, &id);
	memcpy(before, id, len);
	assert_int_equal(unlink(path), 0);
	copy_victim("stacks-fixed", path);
	assert_int_equal(module_open(path, NULL, &other, &err), 0);
	assert_ptr_not_equal(first, other);
	assert_int_equal(module_build_id(other, &id), len);
	assert_memory_not_equal(id, before, len);
	assert_int_equal(module_build_id(first, &id), len);
	assert_memory_equal(id, before, len);
	module_close(other);
	module_close(first);
	assert_int_equal(unlink(path), 0);
}

/* How many files of this name libelf has mapped here. */
static int mapped(const char *part)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, part) != NULL;
	assert_int_equal(fclose(maps), 0);
	return count;
}

/* A program that is built again and again at one place. */
static void test_replaced_is_closed(void **state)
{
	AUTO(mem_freep) char *path = mem_printf("%s/rebuilt", scratch);
	struct module *module;
	struct err err;
	int first = 0;

	(void)state;
	for (int i = 0; i < 5; i++) {
		copy_victim(i % 2 ? "stacks" : "stacks-fixed", path);
		assert_int_equal(module_open(path, NULL, &module, &err), 0);
		first = first ? first : mapped("/rebuilt");
		assert_uint_in_range(mapped("/rebuilt"), 1, first);
		module_close(module);
		assert_int_equal(unlink(path), 0);
	}
}

/* What nobody uses any more is not kept for ever. */
static void test_closed_in_the_end(void **state)
{
	enum { FILES = 40 };
	struct module *opened[FILES];
	struct err err;
	int before;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/many%d", scratch, i);

		copy_victim("stacks", path);
		assert_int_equal(module_open(path, NULL, &opened[i], &err), 0);
		assert_int_equal(unlink(path), 0);
	}
	before = mapped("/many");
	assert_uint_in_range(before, FILES, 4 * FILES);
	for (int i = 0; i < FILES; i++)
		module_close(opened[i]);
	assert_uint_in_range(mapped("/many"), 1, before - before / FILES);
}

static void test_no_registers(void **state)
{
	struct symbols *symbols = symbols_for_test();
	struct snapshot empty = { 0 };
	struct stack stack = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(symbols_unwind(symbols, &empty, &stack, &err), -EINVAL);
	assert_non_null(strstr(err.message, "rip"));
	symbols_free(symbols);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_qsort),
		cmocka_unit_test(test_null_call),
		cmocka_unit_test(test_data_call),
		cmocka_unit_test(test_jit),
		cmocka_unit_test(test_jit_leaf),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_tail_chain),
		cmocka_unit_test(test_tail_one_way),
		cmocka_unit_test(test_tail_by_pointer),
		cmocka_unit_test(test_tail_of_two),
		cmocka_unit_test(test_cold_part),
		cmocka_unit_test(test_no_tails),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_bare_trampoline),
		cmocka_unit_test(test_smashed),
		cmocka_unit_test(test_astray),
		cmocka_unit_test(test_astray_in_parts),
		cmocka_unit_test(test_single_addresses),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_build_id_path),
		cmocka_unit_test(test_found_by_build_id),
		cmocka_unit_test(test_no_aranges),
		cmocka_unit_test(test_debuglink),
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_fixed_address),
		cmocka_unit_test(test_dwarf4),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_no_unwind_information),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_modules_only),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_no_registers),
		cmocka_unit_test(test_kept_registers),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_opened_once),
		cmocka_unit_test(test_replaced_is_closed),
		cmocka_unit_test(test_closed_in_the_end),
	};
	int failed;

	victims = argc > 1 ? argv[1] : getenv("VICTIMS");
	if (!victims || !mkdtemp(scratch) || setenv("PERF_MAP_DIR", scratch, 1) != 0)
		return 99;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	{
		AUTO(mem_freep) char *clean = mem_printf("rm -rf '%s'", scratch);

		(void)!system(clean);
	}
	return failed;
}
