/* What belongs to functions: variables in their frames, and what keeps the frames together. */
#include "read/backtrack_inside.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/code.h"
#include "base/cstr.h"

#define WORD 8u
#define LEAP_BYTES 2048u /* of a function in which its last jump is looked for */

size_t backtrack_frame_of(const struct machine_frame *frames, size_t count, uint64_t address)
{
	unsigned int sp = arch_native()->sp;

	for (size_t i = 0; i < count; i++)
		if (frames[i].registers.known & 1u << sp &&
		    address >= frames[i].registers.value[sp] && address < frames[i].cfa)
			return i;
	return count;
}

/* As people know it, or where it begins in its file: the same in every run. */
static char *function_name(const struct backtracker *reader, const struct machine_frame *frame)
{
	AUTO(stack_deinit) struct stack stack = { 0 };
	const struct mapping *at = snapshot_mapping(&reader->snapshot, frame->pc);

	symbols_name(reader->symbols, &reader->snapshot, frame->pc, frame->exact ? FRAME_EXACT : 0,
		     &stack);
	if (stack.count > 0 && stack.frames[stack.count - 1].function)
		return mem_strdup(stack.frames[stack.count - 1].function);
	at = at ? backtrack_module(reader, at->path) : NULL;
	if (!at || frame->start == 0)
		return NULL;
	return mem_printf("%s+0x%" PRIx64, cstr_base(at->path), frame->start - at->bias);
}

/* By the end of its frame, which is where the caller's begins: the stack pointer moves, that does
 * not. */
void backtrack_name_slot(const struct backtracker *reader, uint64_t address, bool own,
			 struct backtrack_step *step)
{
	size_t owner = backtrack_frame_of(reader->frames, reader->count, address);

	step->home.kind = HOME_STACK;
	/* Below the stack pointer a function without calls may have its own; or it is a rest of one
	 * that has returned. */
	if (owner == reader->count && own && reader->frames[step->frame].cfa != 0 &&
	    address < reader->frames[step->frame].registers.value[arch_native()->sp])
		owner = step->frame;
	if (owner == reader->count)
		return;
	step->home.offset = (int64_t)(address - reader->frames[owner].cfa);
	step->home.name = function_name(reader, &reader->frames[owner]);
	step->function = reader->frames[owner].start;
}

/* Does this jump lead to where it failed, with the registers that it failed with? */
static bool leads_there(const struct backtracker *reader, const struct trap *trap)
{
	uint64_t bad = reader->record->raw.gregs[LOG_GREG_RIP], address, word = 0;
	struct access access;

	if (!arch_access_at(trap, trap->rip, &access) || !access.jumps)
		return false;
	if (access.target >= 0 && access.target < REGISTERS_MAX)
		return trap->registers->value[access.target] == bad;
	return memory_operand_address(&access.memory, trap->registers, &address) &&
	       symbols_read(reader->symbols, &reader->snapshot, address, &word, WORD) &&
	       word == bad;
}

static bool called_at(const struct machine_frame *frame, uint64_t at, uint64_t *ret)
{
	uint64_t offset = at - frame->code_address;
	struct code_instruction call;

	if (offset >= frame->code_len ||
	    !code_decode(frame->code + offset, frame->code_len - offset, at, &call) ||
	    call.flow != CODE_CALL || !(call.flags & CODE_HAS_TARGET))
		return false;
	*ret = call.target;
	return true;
}

bool backtrack_leapt(struct backtracker *reader, uint64_t at)
{
	struct machine_frame leap = { 0 }, *frame = &reader->frames[0];
	struct code_instruction i = { 0 };
	struct trap trap;
	uint64_t target;
	bool found = false;

	if (reader->count < 2 || !called_at(&reader->frames[1], at, &target))
		return false;
	symbols_machine_frame(reader->symbols, &reader->snapshot, target + 1, &leap);
	trap = backtrack_trap(&leap);
	trap.registers = &frame->registers;
	for (trap.rip = target; !found && leap.start == target && trap.rip - target < LEAP_BYTES;
	     trap.rip += found ? 0 : i.length) {
		uint64_t offset = trap.rip - leap.code_address;

		if (offset >= leap.code_len ||
		    !code_decode(leap.code + offset, leap.code_len - offset, trap.rip, &i))
			break;
		found = i.flow == CODE_JUMP_INDIRECT && leads_there(reader, &trap);
	}
	if (!found) {
		machine_frames_free(&leap, 1);
		return false;
	}
	leap.pc = trap.rip;
	leap.exact = true;
	leap.registers = frame->registers;
	leap.cfa = frame->registers.value[arch_native()->sp] + WORD;
	machine_frames_free(frame, 1);
	*frame = leap;
	return true;
}

static void add_smashed(struct backtracker *reader, const struct machine_frame *frame, uint64_t cfa,
			uint64_t address, const char *what)
{
	struct backtrack_step step = { .width = WORD,
				       .function = frame->start,
				       .home = { .kind = HOME_STACK,
						 .name = function_name(reader, frame),
						 .field = mem_strdup(what),
						 .offset = (int64_t)(address - cfa),
						 .len = WORD,
						 .address = address } };

	(void)symbols_read(reader->symbols, &reader->snapshot, address, &step.value, WORD);
	reader->ret->pointer = step.value;
	VEC_PUSH(&reader->ret->steps, step);
}

/* The C library's alarm: the first function outside of it found its guard changed. */
static bool guard_changed(struct backtracker *reader)
{
	AUTO(mem_freep)
	char *message = event_log_text(reader->record->log, &reader->record->item, LOG_BLOB_ABORT);
	const struct mapping *library = snapshot_mapping(&reader->snapshot, reader->frames[0].pc);
	struct memory_operand guard;
	struct trap trap;
	uint64_t address;
	size_t i = 0;

	if (reader->record->raw.signo != SIGABRT || !library || !library->path || !message ||
	    !strstr(message, "stack smashing detected"))
		return false;
	for (; i < reader->count; i++) {
		const struct mapping *at =
			snapshot_mapping(&reader->snapshot, reader->frames[i].pc);

		if (at && at->path && strcmp(at->path, library->path) != 0)
			break;
	}
	if (i == reader->count || reader->frames[i].cfa == 0 || reader->frames[i].start == 0)
		return false;
	trap = backtrack_trap(&reader->frames[i]);
	if (!arch_frame_guard(&trap, &guard) ||
	    !memory_operand_address(&guard, &reader->frames[i].registers, &address))
		return false;
	add_smashed(reader, &reader->frames[i], reader->frames[i].cfa, address,
		    "the frame's guard");
	return true;
}

/* The function stands at its return, or is gone already, and where it was to return to is nowhere.
 */
static bool return_changed(struct backtracker *reader)
{
	const struct machine_frame *frame = &reader->frames[0];
	const struct log_crash *record = &reader->record->raw;
	uint64_t sp = frame->registers.value[arch_native()->sp];
	struct trap trap = backtrack_trap(frame);

	if (record->flags & LOG_CRASH_SENT)
		return false;
	if (frame->code_len > 0 && frame->start != 0 && arch_returns_at(&trap, frame->pc)) {
		add_smashed(reader, frame, sp + WORD, sp, "the return address");
		reader->ret->executes = true;
		return true;
	}
	if (reader->count < 2 || !reader->frames[1].returned || reader->frames[1].start == 0)
		return false;
	add_smashed(reader, &reader->frames[1], sp, sp - WORD, "the return address");
	reader->ret->executes = true;
	return true;
}

bool backtrack_smashed(struct backtracker *reader)
{
	return guard_changed(reader) || return_changed(reader);
}
