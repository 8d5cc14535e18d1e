#include "read/crash_report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/store.h"
#include "base/cstr.h"
#include "base/strbuf.h"
#include "read/fault_class.h"
#include "read/pointers.h"

#define CRASHES_MAX 16
#define CALL_CODE_BYTES 128
#define INDEX_MAX (INT64_C(1) << 32)
#define BYTE_INDEX_MAX (INT64_C(1) << 20)

static void read_owned(struct symbols *symbols, struct crash_record *record, const uint64_t *source,
		       enum crash_depth depth, struct crash *ret)
{
	AUTO(pointers_deinit)
	struct pointers pointers = { .log = record->log,
				     .operands = &record->operands,
				     .source = source,
				     .jumped = fault_jumped(&record->raw)
						       ? &record->raw.fault_address
						       : NULL };
	struct log_item item = record->item;

	ret->cut_short = true;
	while (log_next_owned(&record->log->reader, record->item.head.seq, &item)) {
		struct log_block block;
		struct log_crash_done done;

		if (item.head.type == LOG_BLOCK && log_payload(&item, &block, sizeof(block)) &&
		    (depth == CRASH_WHOLE || block.via == LOG_VIA_FAULT ||
		     block.via == LOG_VIA_POISON)) {
			pointers_note(&pointers, &block);
		} else if (item.head.type == LOG_CRASH_DONE &&
			   log_payload(&item, &done, sizeof(done))) {
			ret->write_us = done.write_ns / 1000;
			ret->cut_short = false;
		}
	}
	if (depth == CRASH_WHOLE) {
		pointers_note_source(&pointers);
		pointers_note_former(&pointers);
	}
	pointers_tell(&pointers, symbols, ret);
}

static char *printable(const char *text, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strnlen(text, len));
	return strbuf_take(&sb);
}

static void copy_registers(const struct log_crash *record, struct crash *ret)
{
	for (unsigned int i = 0; i < REGISTER_PLACES; i++) {
		(void)snprintf(ret->registers[i].name, sizeof(ret->registers[i].name), "%s",
			       register_at(i));
		ret->registers[i].value = record->gregs[i];
	}
	ret->register_count = REGISTER_PLACES;
}

/* Frames of the agent's own, between a hooked function and what it ends in, are left out; not where
 * the crash is inside of them. */
static void unwind_crash(struct symbols *symbols, struct event_log *log,
			 const struct snapshot *snapshot, struct stack *ret)
{
	AUTO(stack_deinit) struct stack whole = { 0 };

	(void)symbols_unwind(symbols, snapshot, &whole, NULL);
	for (size_t i = 0; i < whole.count; i++)
		if (i == 0 || !event_log_is_agent(log, whole.frames[i].address))
			(void)stack_push(ret, &whole.frames[i]);
	ret->end = whole.end;
}

/* An array that was NULL: the address is its index. Either register of a sum may be the index, so
 * both are looked at; a pointer is larger. */
static bool adds_to_null(const struct memory_operand *memory, const struct registers *registers)
{
	int64_t index;

	if (memory->base == NO_REGISTER || memory->index == NO_REGISTER ||
	    !(registers->known & (1u << memory->base)) ||
	    !(registers->known & (1u << memory->index)) || registers->value[memory->base] != 0)
		return false;
	index = (int64_t)registers->value[memory->index];
	return memory->scale > 1 ? index < INDEX_MAX && index > -INDEX_MAX
				 : index < BYTE_INDEX_MAX && index > -BYTE_INDEX_MAX;
}

/* Did that call lead there? A return to a bad address leaves any word on top of the stack. */
static bool leads_to(const struct fault_operands *call, const struct snapshot *snapshot,
		     const struct registers *before, uint64_t target)
{
	uint64_t word, address;

	if (call->target != NO_REGISTER)
		return (before->known & (1u << call->target)) &&
		       before->value[call->target] == target;
	return memory_operand_address(&call->jump, before, &address) &&
	       snapshot_read(snapshot, address, &word, sizeof(word)) && word == target;
}

/* A jump to where there is no code: the word on top of the stack tells who made it. */
static void read_call(struct symbols *symbols, const struct snapshot *snapshot,
		      struct crash_record *record)
{
	const struct arch *arch = arch_native();
	struct registers before = snapshot->registers;
	uint64_t top = before.value[arch->sp], end;
	uint8_t code[CALL_CODE_BYTES];
	struct fault_operands operands;

	if ((record->raw.flags & LOG_CRASH_SENT) || record->raw.signo != SIGSEGV ||
	    record->raw.fault_address != before.value[arch->pc] ||
	    !snapshot_read(snapshot, top, &end, sizeof(end)))
		return;
	before.value[arch->sp] = top + sizeof(end);
	for (size_t len = sizeof(code); len >= arch->max_call_len; len /= 2) {
		if (!symbols_read(symbols, snapshot, end - len, code, len))
			continue;
		if (operands_of_call(code, len, end - len, end, &before, &operands) &&
		    leads_to(&operands, snapshot, &before, before.value[arch->pc]))
			record->operands = operands;
		return;
	}
}

static void tell_operands(const struct crash_record *record, const struct snapshot *snapshot,
			  struct fault_facts *facts)
{
	const struct fault_operands *operands = &record->operands;
	uint64_t word;

	facts->has_wanted =
		operands->has_memory &&
		memory_operand_address(&operands->memory, &snapshot->registers, &facts->wanted);
	facts->has_load =
		operands->has_load &&
		memory_operand_address(&operands->load, &snapshot->registers, &facts->load);
	facts->null_based = facts->has_wanted && facts->wanted == record->raw.fault_address &&
			    adds_to_null(&operands->memory, &snapshot->registers);
	facts->has_source_value =
		operands->has_source_slot &&
		snapshot_read(snapshot, operands->source_slot, &facts->source_value, 8);
	facts->source_value += operands->source_added;
	if (!operands->jumps)
		return;
	if (operands->target != NO_REGISTER) {
		facts->has_jump = snapshot->registers.known & (1u << operands->target);
		facts->jump = snapshot->registers.value[operands->target];
	} else if (memory_operand_address(&operands->jump, &snapshot->registers, &word)) {
		facts->has_jump = snapshot_read(snapshot, word, &facts->jump, 8);
	}
}

/* What the instruction divided by, in a register or in recorded memory. */
static void tell_divisor(const struct crash_record *record, const struct snapshot *snapshot,
			 struct fault_facts *facts)
{
	uint64_t rip = record->raw.gregs[LOG_GREG_RIP], address, value = 0;
	struct access access;
	struct trap trap;

	if (record->raw.signo != SIGFPE || record->pieces.count == 0)
		return;
	trap = (struct trap){ .code = record->pieces.items[0].bytes,
			      .code_len = record->pieces.items[0].len,
			      .code_address = record->pieces.items[0].address,
			      .rip = rip,
			      .registers = &snapshot->registers };
	if (!arch_access_at(&trap, rip, &access) || !access.divides || access.width > 8)
		return;
	if (access.divisor == NO_REGISTER)
		facts->has_divisor =
			memory_operand_address(&access.memory, &snapshot->registers, &address) &&
			snapshot_read(snapshot, address, &value, access.width);
	else
		facts->has_divisor = snapshot->registers.known & 1u << access.divisor;
	if (access.divisor != NO_REGISTER && facts->has_divisor)
		value = snapshot->registers.value[access.divisor];
	facts->divisor = access.width < 8 ? value & ((UINT64_C(1) << access.width * 8) - 1) : value;
}

static void build_crash(struct symbols *symbols, const struct crash_place *place,
			enum crash_depth depth, struct crash *ret)
{
	AUTO(crash_record_deinit) struct crash_record record = { 0 };
	struct event_log *log = place->log;
	struct fault_facts facts;
	struct snapshot snapshot;

	crash_record_open(place, &record);
	ret->pid = (int)log->reader.header.pid;
	ret->tid = (int)record.raw.tid;
	ret->program = cstr_dup(log->program);
	ret->command = cstr_dup(log->command);
	ret->thread = printable(record.raw.thread_name, sizeof(record.raw.thread_name));
	ret->signal = record.raw.signo;
	ret->ended_by = place->ended_by;
	ret->code = record.raw.code;
	ret->address = record.raw.fault_address;
	ret->from_outside = (record.raw.flags & LOG_CRASH_SENT) &&
			    record.raw.sender_pid != log->reader.header.pid;
	ret->realtime_ns = record.raw.realtime_ns;
	ret->abort_message = event_log_text(log, &place->item, LOG_BLOB_ABORT);
	crash_record_snapshot(&record, &snapshot);
	if (record.operands.instruction[0] != '\0')
		ret->instruction = mem_strdup(record.operands.instruction);
	read_call(symbols, &snapshot, &record);
	if (record.operands.origin[0] != '\0')
		ret->origin = mem_strdup(record.operands.origin);
	copy_registers(&record.raw, ret);
	unwind_crash(symbols, log, &snapshot, &ret->stack);
	facts = (struct fault_facts){ .crash = &record.raw,
				      .mappings = &record.mappings,
				      .files = record.files,
				      .file_count = record.file_count,
				      .source = record.operands.source,
				      .base = record.operands.base };
	tell_operands(&record, &snapshot, &facts);
	tell_divisor(&record, &snapshot, &facts);
	read_owned(symbols, &record, facts.has_source_value ? &facts.source_value : NULL, depth,
		   ret);
	fault_classify(&facts, ret);
}

void crash_report_read(const struct crash_places *places, const struct said_list *notes,
		       struct symbols *symbols, enum crash_depth depth, struct crash_report *ret)
{
	for (size_t i = 0; i < places->list.count && i < CRASHES_MAX; i++) {
		struct crash crash = { 0 };

		if (depth == CRASH_SITE && i > 0)
			break;
		build_crash(symbols, &places->list.items[i], depth, &crash);
		VEC_PUSH(&ret->crashes, crash);
	}
	said_list_copy(&ret->notes, notes);
}
