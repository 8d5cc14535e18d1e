#include "arch/code.h"

#include <string.h>

#include <Zydis/Zydis.h>

struct decoded_code {
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *bytes, size_t len, struct decoded_code *ret)
{
	ZydisDecoder decoder;

	return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, &ret->instruction,
						   ret->operands));
}

/* The operand that says where control goes; NULL when there is none. */
static const ZydisDecodedOperand *relative_operand(const struct decoded_code *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    d->operands[i].imm.is_relative)
			return &d->operands[i];
	return NULL;
}

static enum code_flow flow_of(const struct decoded_code *d, bool direct)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return CODE_CALL;
	case ZYDIS_MNEMONIC_JMP:
		return direct ? CODE_JUMP : CODE_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
		return CODE_RETURN;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return CODE_STOP;
	default:
		return direct ? CODE_BRANCH : CODE_NEXT;
	}
}

/* A fixed address: relative to the instruction, or a plain number, as in a table of jumps. */
static void note_address(const struct decoded_code *d, uint64_t at, struct code_instruction *ret)
{
	for (unsigned int i = 0; i < d->instruction.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &d->operands[i];
		ZyanU64 address;

		if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (operand->mem.base == ZYDIS_REGISTER_RIP) {
			if (ZYAN_FAILED(ZydisCalcAbsoluteAddress(&d->instruction, operand, at,
								 &address)))
				continue;
			ret->address = address;
			ret->flags |= CODE_HAS_ADDRESS;
		} else if (operand->mem.segment != ZYDIS_REGISTER_FS &&
			   operand->mem.segment != ZYDIS_REGISTER_GS &&
			   operand->mem.disp.has_displacement && operand->mem.disp.value > 0xffff) {
			ret->address = (uint64_t)operand->mem.disp.value;
			ret->flags |= CODE_HAS_ADDRESS;
		}
	}
}

static bool adds_registers(const struct decoded_code *d)
{
	const ZydisDecodedOperand *o = d->operands;

	if (d->instruction.mnemonic == ZYDIS_MNEMONIC_LEA)
		return o[1].mem.base != ZYDIS_REGISTER_NONE &&
		       o[1].mem.index != ZYDIS_REGISTER_NONE;
	return d->instruction.mnemonic == ZYDIS_MNEMONIC_ADD &&
	       o[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

bool code_decode(const uint8_t *bytes, size_t len, uint64_t at, struct code_instruction *ret)
{
	const ZydisDecodedOperand *relative;
	struct decoded_code d;

	if (!decode(bytes, len, &d))
		return false;
	*ret = (struct code_instruction){ .at = at, .length = d.instruction.length };
	relative = relative_operand(&d);
	ret->flow = (uint8_t)flow_of(&d, relative != NULL);
	if (relative) {
		ret->target = at + d.instruction.length + (uint64_t)relative->imm.value.s;
		ret->flags |= CODE_HAS_TARGET;
	}
	note_address(&d, at, ret);
	switch (d.instruction.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		ret->flags |= CODE_NOP;
		break;
	case ZYDIS_MNEMONIC_XCHG: /* 66 90: two bytes that do nothing */
		if (d.instruction.opcode == 0x90)
			ret->flags |= CODE_NOP;
		break;
	case ZYDIS_MNEMONIC_INT3:
		ret->flags |= CODE_BREAKPOINT;
		break;
	case ZYDIS_MNEMONIC_ENDBR64:
		ret->flags |= CODE_ENTRY_MARK;
		break;
	default:
		break;
	}
	if (adds_registers(&d))
		ret->flags |= CODE_ADDS;
	if (ret->flow == CODE_JUMP_INDIRECT && d.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		ret->flags |= CODE_IN_REGISTER;
	return true;
}

static bool put(struct code_moved *moved, const void *bytes, size_t len)
{
	if (len > sizeof(moved->bytes) - moved->len)
		return false;
	memcpy(moved->bytes + moved->len, bytes, len);
	moved->len += len;
	return true;
}

/* A field of four bytes at the end of what was put so far; `after` more belong to it. */
static bool put_fixup(struct code_moved *moved, enum code_fixup_kind kind, size_t at, size_t after,
		      uint64_t target)
{
	if (moved->fixup_count == CODE_FIXUPS_MAX)
		return false;
	moved->fixups[moved->fixup_count++] = (struct code_fixup){
		.at = (uint16_t)at, .kind = (uint8_t)kind, .after = (uint8_t)after, .target = target
	};
	return true;
}

/* An opcode of one or two bytes and the distance to a target. */
static bool put_relative(struct code_moved *moved, const void *opcode, size_t len, uint64_t target)
{
	static const uint8_t zero[4];

	return put(moved, opcode, len) && put(moved, zero, sizeof(zero)) &&
	       put_fixup(moved, CODE_FIX_RELATIVE, moved->len - 4, 0, target);
}

bool code_move_jump(struct code_moved *moved, uint64_t target)
{
	return put_relative(moved, "\xe9", 1, target);
}

/* push low; mov dword [rsp+4], high: eight bytes on the stack, flags and registers as they were. */
static bool put_return_address(struct code_moved *moved, uint64_t address)
{
	static const uint8_t push[] = { 0x68, 0, 0, 0, 0 };
	static const uint8_t high[] = { 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0 };

	moved->pushes = true;
	return put(moved, push, sizeof(push)) &&
	       put_fixup(moved, CODE_FIX_LOW, moved->len - 4, 0, address) &&
	       put(moved, high, sizeof(high)) &&
	       put_fixup(moved, CODE_FIX_HIGH, moved->len - 4, 0, address);
}

static bool put_branch(struct code_moved *moved, const struct decoded_code *d, uint64_t target)
{
	uint8_t condition[2] = { 0x0f, (uint8_t)(0x80 | (d->instruction.opcode & 0x0f)) };

	return put_relative(moved, condition, sizeof(condition), target);
}

/* loop and jrcxz reach 127 bytes only: over a jump, to another. */
static bool put_counted_branch(struct code_moved *moved, const uint8_t *bytes,
			       const struct decoded_code *d, uint64_t target)
{
	static const uint8_t over[] = { 0xeb, CODE_JUMP_BYTES };
	size_t before = d->instruction.length - 1;

	return put(moved, bytes, before) && put(moved, "\x02", 1) &&
	       put(moved, over, sizeof(over)) && code_move_jump(moved, target);
}

static const ZydisDecodedOperand *memory_operand(const struct decoded_code *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &d->operands[i];
	return NULL;
}

/* The instruction's own bytes; an address relative to it is made relative to its new place. */
static bool put_copy(struct code_moved *moved, const uint8_t *bytes, const struct decoded_code *d,
		     uint64_t at)
{
	const ZydisDecodedInstruction *instruction = &d->instruction;
	const ZydisDecodedOperand *memory = memory_operand(d);
	size_t start = moved->len;

	if (!put(moved, bytes, instruction->length))
		return false;
	if (!memory || memory->mem.base != ZYDIS_REGISTER_RIP)
		return true;
	return put_fixup(moved, CODE_FIX_RELATIVE, start + instruction->raw.disp.offset,
			 instruction->length - instruction->raw.disp.offset - 4u,
			 at + instruction->length + (uint64_t)memory->mem.disp.value);
}

/* call r/m (FF /2) becomes jmp r/m (FF /4), after a push that moves the stack pointer. */
static const char *move_indirect_call(struct code_moved *moved, const uint8_t *bytes,
				      const struct decoded_code *d, uint64_t at)
{
	const ZydisDecodedOperand *memory =
		d->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? &d->operands[0] : NULL;
	uint8_t jump[ZYDIS_MAX_INSTRUCTION_LENGTH];

	if (d->instruction.opcode != 0xff || d->instruction.raw.modrm.reg != 2)
		return "it makes a far call";
	if ((memory && (memory->mem.base == ZYDIS_REGISTER_RSP)) ||
	    (!memory && d->operands[0].reg.value == ZYDIS_REGISTER_RSP))
		return "it calls through its own stack";
	memcpy(jump, bytes, d->instruction.length);
	jump[d->instruction.raw.modrm.offset] =
		(uint8_t)((jump[d->instruction.raw.modrm.offset] & ~0x38) | 4 << 3);
	if (!put_return_address(moved, at + d->instruction.length) || !put_copy(moved, jump, d, at))
		return "it does not fit";
	return NULL;
}

static const char *move_direct(struct code_moved *moved, const uint8_t *bytes,
			       const struct decoded_code *d, uint64_t at, uint64_t target)
{
	bool fits;

	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		fits = put_return_address(moved, at + d->instruction.length) &&
		       code_move_jump(moved, target);
		break;
	case ZYDIS_MNEMONIC_JMP:
		fits = code_move_jump(moved, target);
		break;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
		fits = put_counted_branch(moved, bytes, d, target);
		break;
	default:
		if (d->instruction.meta.category != ZYDIS_CATEGORY_COND_BR ||
		    d->instruction.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
			return "it begins a transaction";
		fits = put_branch(moved, d, target);
		break;
	}
	return fits ? NULL : "it does not fit";
}

static const char *move_one(struct code_moved *moved, const uint8_t *bytes,
			    const struct decoded_code *d, uint64_t at)
{
	const ZydisDecodedOperand *relative = relative_operand(d);
	const ZydisDecodedOperand *memory = memory_operand(d);

	if (d->instruction.mnemonic == ZYDIS_MNEMONIC_INT3)
		return "there is a breakpoint in it";
	if (memory && memory->mem.base == ZYDIS_REGISTER_EIP)
		return "it uses addresses of 32 bits";
	if (relative)
		return move_direct(moved, bytes, d, at,
				   at + d->instruction.length + (uint64_t)relative->imm.value.s);
	if (d->instruction.mnemonic == ZYDIS_MNEMONIC_CALL)
		return move_indirect_call(moved, bytes, d, at);
	return put_copy(moved, bytes, d, at) ? NULL : "it does not fit";
}

const char *code_move(struct code_moved *moved, const uint8_t *bytes, size_t len, uint64_t at)
{
	struct code_moved before = *moved;
	struct code_instruction instruction;
	const char *why;
	struct decoded_code d;

	if (moved->ended)
		return "control never gets there";
	if (!decode(bytes, len, &d) || !code_decode(bytes, len, at, &instruction))
		return "it is no instruction";
	if (moved->mark_count == CODE_MARKS_MAX)
		return "it does not fit";
	moved->marks[moved->mark_count].moved = (uint16_t)moved->len;
	moved->marks[moved->mark_count++].original = at;
	why = move_one(moved, bytes, &d, at);
	if (why) {
		*moved = before;
		return why;
	}
	moved->ended = instruction.flow != CODE_NEXT && instruction.flow != CODE_BRANCH;
	return NULL;
}
