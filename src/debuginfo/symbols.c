#include "debuginfo/symbols.h"

#include <errno.h>

#include "arch/arch.h"
#include "base/mem.h"
#include "debuginfo/code_layout.h"
#include "debuginfo/functions.h"
#include "debuginfo/jit_names.h"
#include "debuginfo/module.h"
#include "debuginfo/open_modules.h"
#include "debuginfo/python_frames.h"
#include "debuginfo/space.h"
#include "debuginfo/tails.h"
#include "debuginfo/unwinder.h"
#include "wire/python_layout.h"

#define DEFAULT_MAX_FRAMES 512

struct symbols {
	char *perf_map_dir;
	size_t max_frames;
	bool no_python;
	struct modules *modules;
	struct jit_names *jit; /* of the process asked for last; NULL before the first */
	uint64_t jit_stamp;
};

struct symbols *symbols_new(const struct symbols_options *options)
{
	struct symbols *symbols = mem_alloc(sizeof(*symbols));

	symbols->perf_map_dir = mem_strdup(options->perf_map_dir ? options->perf_map_dir : "/tmp");
	symbols->max_frames = options->max_frames ? options->max_frames : DEFAULT_MAX_FRAMES;
	symbols->no_python = options->no_python;
	symbols->modules = modules_new(options->debug_path);
	for (size_t i = 0; options->at_hand && i < options->at_hand->count; i++)
		modules_add(symbols->modules, options->at_hand->items[i]);
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	jit_names_free(symbols->jit);
	modules_free(symbols->modules);
	mem_free(symbols->perf_map_dir);
	mem_free(symbols);
}

/* Names of emitted code, read again only when the files are others: process ids come back. */
static struct jit_names *symbols_jit(struct symbols *symbols, const struct snapshot *snapshot)
{
	uint64_t stamp = jit_names_stamp(snapshot, symbols->perf_map_dir);

	if (!symbols->jit || symbols->jit_stamp != stamp) {
		jit_names_free(symbols->jit);
		symbols->jit = jit_names_load(snapshot, symbols->perf_map_dir);
		symbols->jit_stamp = stamp;
	}
	return symbols->jit;
}

/* A frame in a file whose own names can be trusted. */
static void name_native(const struct place *place, taddr address, taddr cfa, unsigned int flags,
			struct stack *stack)
{
	/* A trampoline is returned to, not called: the byte before it belongs to somebody else. */
	bool before = !(flags & (FRAME_EXACT | FRAME_SIGNAL));
	size_t count;
	const struct frame *named = module_name(place->module, place->vaddr - before, &count);

	for (size_t i = 0; i < count; i++) {
		struct frame frame = named[i];

		frame.module = (char *)place->mapping->path; /* copied by stack_push() */
		frame.offset = place->vaddr;
		frame.address = address;
		frame.cfa = cfa;
		frame.flags = flags;
		if (place->kernel && frame.kind == FRAME_NATIVE)
			frame.kind = FRAME_KERNEL;
		if ((flags & FRAME_SIGNAL) && !frame.function)
			frame.function = (char *)"<signal handler called>";
		(void)stack_push(stack, &frame);
	}
}

static void name_other(struct symbols *symbols, const struct snapshot *snapshot,
		       const struct place *place, taddr address, struct frame *frame)
{
	struct jit_name name;

	if (place->mapping && place->mapping->path && place->mapping->path[0] == '/') {
		frame->module = (char *)place->mapping->path;
		frame->offset = place->vaddr;
	}
	if (place->match == MODULE_REPLACED) {
		frame->flags |= FRAME_FILE_REPLACED;
		return;
	}
	if (place->kernel) {
		frame->kind = FRAME_KERNEL;
		frame->module = (char *)place->mapping->path;
		frame->offset = place->vaddr;
		return;
	}
	/* Nothing is mapped there, or only data: no emitted code either. */
	if (!place->mapping || !(place->mapping->perms & MAPPING_EXEC))
		return;
	frame->kind = FRAME_JIT;
	if (jit_names_find(symbols_jit(symbols, snapshot), address - !(frame->flags & FRAME_EXACT),
			   &name)) {
		frame->function = (char *)name.function;
		frame->file = (char *)name.file;
		frame->line = name.line;
		frame->offset = frame->module ? frame->offset : address - name.start;
	}
}

static void name_frame(struct symbols *symbols, struct space *space, const struct raw_frame *raw,
		       struct stack *stack)
{
	struct frame frame = { .address = raw->pc, .cfa = raw->cfa, .flags = raw->flags };
	struct place place;

	space_find(space, raw->pc, &place);
	/* A call at the very end of a mapping returns to the byte after it. */
	if (!place.mapping && !(raw->flags & FRAME_EXACT))
		space_find(space, raw->pc - 1, &place);
	if (place.match == MODULE_FOUND && (place.mapping->perms & MAPPING_EXEC)) {
		name_native(&place, raw->pc, raw->cfa, raw->flags, stack);
		return;
	}
	name_other(symbols, space->snapshot, &place, raw->pc, &frame);
	if ((frame.flags & FRAME_SIGNAL) && !frame.function)
		frame.function = (char *)"<signal handler called>";
	(void)stack_push(stack, &frame);
}

/* Where the interpreter keeps its state, and how it is laid out. */
static bool find_python(struct space *space, struct python_layout *layout, taddr *ret_runtime)
{
	taddr version_at, runtime = space->snapshot->python_runtime;
	uint64_t version = space->snapshot->python_version;
	uint8_t head[PYTHON_OFFSETS_BYTES];
	struct place place;

	if (!runtime && !space_symbol(space, "python", "_PyRuntime", &runtime))
		return false;
	if (!version && (!space_symbol(space, "python", "Py_Version", &version_at) ||
			 !space_read(space, version_at, &version, sizeof(version))))
		return false;
	if (!python_layout_find(version, layout))
		return false;
	*ret_runtime = runtime;
	/* The published offsets never change after the link, so the file has them too. */
	space_find(space, runtime, &place);
	if (snapshot_read(space->snapshot, runtime, head, sizeof(head)) ||
	    (place.match == MODULE_FOUND &&
	     module_read(place.module, place.vaddr, head, sizeof(head))))
		(void)python_layout_refine(layout, head, sizeof(head));
	return true;
}

static void add_python(struct space *space, struct stack *stack)
{
	const struct snapshot *snapshot = space->snapshot;
	const struct arch *arch = arch_native();
	struct python_thread thread = { .kernel_tid = (uint64_t)snapshot->tid };
	struct python_frames frames = { 0 };
	struct python_layout layout;

	if (!find_python(space, &layout, &thread.runtime))
		return;
	if (snapshot->registers.known & (1u << arch->thread_pointer))
		thread.pthread = snapshot->registers.value[arch->thread_pointer];
	if (python_frames_read(&layout, &thread, space_read, space, &frames) == 0)
		python_frames_merge(&frames, stack);
	python_frames_deinit(&frames);
}

int symbols_unwind(struct symbols *symbols, const struct snapshot *snapshot, struct stack *ret,
		   struct err *err)
{
	const struct arch *arch = arch_native();
	AUTO(mem_freep) struct raw_frame *raw = NULL;
	struct stack stack = { 0 };
	struct space space;
	enum stack_end end;
	size_t count;

	if (!(snapshot->registers.known & (1u << arch->pc)) ||
	    !(snapshot->registers.known & (1u << arch->sp)))
		return err_set(err, -EINVAL, "the record has no %s",
			       arch_register_name(arch, snapshot->registers.known & (1u << arch->pc)
								? arch->sp
								: arch->pc));
	space_init(&space, symbols->modules, snapshot);
	raw = mem_alloc(symbols->max_frames * sizeof(*raw));
	count = unwind(&space, symbols_jit(symbols, snapshot), raw, symbols->max_frames, &end);
	for (size_t i = 0; i < count; i++)
		name_frame(symbols, &space, &raw[i], &stack);
	tails_insert(&space, &stack);
	if (!symbols->no_python)
		add_python(&space, &stack);
	space_deinit(&space);
	stack.end = end;
	*ret = stack;
	return 0;
}

#define CODE_NEAR 4096u /* to either side, where nobody knows how far the function goes */
#define CODE_FAR                                                                         \
	(256u << 10) /* the whole function, up to so much: an interpreter's loop is long \
		      */

/* Where the function around an address ends, by its unwind information; 0 when nobody knows. */
static taddr function_end(struct space *space, taddr inside)
{
	struct function_range piece;
	struct place place;

	space_find(space, inside, &place);
	return place.match == MODULE_FOUND &&
			       functions_known_piece(place.module, place.vaddr, &piece)
		       ? inside + (piece.high - place.vaddr)
		       : 0;
}

static taddr function_start(struct symbols *symbols, struct space *space, taddr inside)
{
	struct jit_name name;
	struct place place;
	uint64_t start;

	space_find(space, inside, &place);
	if (place.match == MODULE_FOUND)
		return module_function_start(place.module, place.vaddr, &start)
			       ? inside - (place.vaddr - start)
			       : 0;
	return jit_names_find(symbols_jit(symbols, space->snapshot), inside, &name) ? name.start
										    : 0;
}

static void fill_machine_frame(struct symbols *symbols, struct space *space,
			       const struct raw_frame *raw, struct machine_frame *ret)
{
	taddr inside = raw->flags & FRAME_EXACT ? raw->pc : raw->pc - 1;
	size_t before = CODE_NEAR, behind = CODE_NEAR, got, after;
	taddr end = function_end(space, inside);

	*ret = (struct machine_frame){ .pc = raw->pc,
				       .exact = (raw->flags & FRAME_EXACT) != 0,
				       .returned = (raw->flags & FRAME_RETURNED) != 0,
				       .registers = raw->registers,
				       .cfa = raw->cfa,
				       .start = function_start(symbols, space, inside) };
	/* What a call may have changed is not what the caller had. */
	if (!ret->exact)
		ret->registers.known &= arch_native()->callee_saved | 1u << arch_native()->pc |
					1u << arch_native()->sp |
					1u << arch_native()->thread_pointer;
	if (ret->start != 0 && raw->pc - ret->start <= CODE_FAR)
		before = (size_t)(raw->pc - ret->start);
	/* Jumps back to before it may stand there. */
	if (end > raw->pc + CODE_NEAR && end - raw->pc <= CODE_FAR)
		behind = (size_t)(end - raw->pc);
	ret->code = mem_alloc(before + behind);
	got = space_read_before(space, raw->pc, ret->code, before);
	/* What could be read ends at pc: it is put to the front. */
	after = space_read_after(space, raw->pc, ret->code + got, behind);
	ret->code_len = got + after;
	ret->code_address = raw->pc - got;
}

size_t symbols_machine_frames(struct symbols *symbols, const struct snapshot *snapshot,
			      struct machine_frame *ret, size_t room)
{
	AUTO(mem_freep) struct raw_frame *raw = mem_alloc(room * sizeof(*raw));
	struct space space;
	enum stack_end end;
	size_t count;

	space_init(&space, symbols->modules, snapshot);
	count = unwind(&space, symbols_jit(symbols, snapshot), raw, room, &end);
	for (size_t i = 0; i < count; i++)
		fill_machine_frame(symbols, &space, &raw[i], &ret[i]);
	space_deinit(&space);
	return count;
}

void symbols_machine_frame(struct symbols *symbols, const struct snapshot *snapshot, taddr back,
			   struct machine_frame *ret)
{
	struct raw_frame raw = { .pc = back };
	struct space space;

	space_init(&space, symbols->modules, snapshot);
	fill_machine_frame(symbols, &space, &raw, ret);
	space_deinit(&space);
}

taddr symbols_function_start(struct symbols *symbols, const struct snapshot *snapshot, taddr inside)
{
	struct space space;
	taddr start;

	space_init(&space, symbols->modules, snapshot);
	start = function_start(symbols, &space, inside);
	space_deinit(&space);
	return start;
}

void machine_frames_free(struct machine_frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(frames[i].code);
}

void symbols_name(struct symbols *symbols, const struct snapshot *snapshot, taddr address,
		  unsigned int flags, struct stack *stack)
{
	struct raw_frame raw = { .pc = address, .flags = flags };
	struct space space;

	space_init(&space, symbols->modules, snapshot);
	name_frame(symbols, &space, &raw, stack);
	space_deinit(&space);
}

void symbols_complete(struct symbols *symbols, const struct snapshot *snapshot, struct stack *stack)
{
	struct space space;

	space_init(&space, symbols->modules, snapshot);
	tails_insert(&space, stack);
	space_deinit(&space);
}

char *symbols_global(struct symbols *symbols, const struct mapping *mapping, uint64_t vaddr,
		     uint64_t *ret_offset)
{
	struct module *module;

	if (modules_find(symbols->modules, mapping, &module) != MODULE_FOUND)
		return NULL;
	return module_global(module, vaddr, ret_offset);
}

bool symbols_covers(struct symbols *symbols, const struct mapping *mapping, uint64_t vaddr)
{
	struct module *module;

	return modules_find(symbols->modules, mapping, &module) != MODULE_FOUND ||
	       module_covers(module, vaddr);
}

/* From the file's own addresses to those of the process, as far as they are in the mapping. */
static void layout_in_mapping(const struct code_layout *own, const struct mapping *mapping,
			      uint64_t bias, struct code_layout *ret)
{
	VEC_FOREACH (&own->ranges, range) {
		struct code_range here = { range->low + bias, range->high + bias };

		if (here.low < mapping->start)
			here.low = mapping->start;
		if (here.high > mapping->end)
			here.high = mapping->end;
		if (here.low < here.high)
			VEC_PUSH(&ret->ranges, here);
	}
	VEC_FOREACH (&own->starts, start)
		if (*start + bias >= mapping->start && *start + bias < mapping->end)
			VEC_PUSH(&ret->starts, *start + bias);
}

bool symbols_code(struct symbols *symbols, const struct snapshot *snapshot,
		  const struct mapping *mapping, struct code_layout *ret)
{
	AUTO(code_layout_deinit) struct code_layout own = { 0 };
	struct code_range whole = { mapping->start, mapping->end };
	struct space space;
	struct place place;

	space_init(&space, symbols->modules, snapshot);
	space_find(&space, mapping->start, &place);
	space_deinit(&space);
	if (place.match == MODULE_FOUND && place.mapping == mapping) {
		code_layout_of_module(place.module, &own);
		layout_in_mapping(&own, mapping, mapping->start - place.vaddr, ret);
		return true;
	}
	if (whole.low < whole.high)
		VEC_PUSH(&ret->ranges, whole);
	jit_names_starts(symbols_jit(symbols, snapshot), mapping->start, mapping->end, ret);
	code_layout_sort(ret);
	return false;
}

bool symbols_read(struct symbols *symbols, const struct snapshot *snapshot, taddr address,
		  void *buf, size_t len)
{
	struct space space;
	bool read;

	space_init(&space, symbols->modules, snapshot);
	read = space_read(&space, address, buf, len);
	space_deinit(&space);
	return read;
}
