#include "arch/operands.h"

#include <string.h>

#include <Zydis/Zydis.h>

/* How far back to look for the load of a bad pointer. */
#define BACK_BYTES 56
#define BACK_INSTRUCTIONS 24

struct decoded {
	uint64_t address;
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

struct code {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
	ZydisDecoder decoder;
};

static bool decode(const struct code *code, uint64_t at, struct decoded *ret)
{
	uint64_t offset = at - code->address;

	if (at < code->address || offset >= code->len)
		return false;
	ret->address = at;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&code->decoder, code->bytes + offset,
						   code->len - offset, &ret->instruction,
						   ret->operands));
}

static void print(const struct decoded *d, char *text, size_t room)
{
	ZydisFormatter formatter;

	text[0] = '\0';
	if (ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)))
		(void)ZydisFormatterFormatInstruction(&formatter, &d->instruction, d->operands,
						      d->instruction.operand_count_visible, text,
						      room, d->address, NULL);
}

/* The 64-bit register that holds this one. */
static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static void add(struct fault_operands *ret, ZydisRegister reg)
{
	const char *name;

	reg = whole(reg);
	if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_RSP)
		return;
	name = ZydisRegisterGetString(reg);
	for (size_t i = 0; i < ret->count; i++)
		if (strcmp(ret->registers[i], name) == 0)
			return;
	if (name && ret->count < OPERANDS_MAX)
		ret->registers[ret->count++] = name;
}

static const ZydisDecodedOperand *memory_operand(const struct decoded *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d->operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM)
			return &d->operands[i];
	return NULL;
}

static bool writes(const struct decoded *d, ZydisRegister reg)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    whole(d->operands[i].reg.value) == reg)
			return true;
	return false;
}

/*
 * The instructions that end exactly at `rip`. Where they begin is not known; decoding from a wrong
 * place soon falls into step with the right one, so the earliest start that arrives is taken.
 */
static size_t instructions_before(const struct code *code, uint64_t rip, struct decoded *ret)
{
	for (uint64_t back = BACK_BYTES; back > 0; back--) {
		uint64_t at = rip - back;
		size_t count = 0;

		while (at < rip && count < BACK_INSTRUCTIONS && decode(code, at, &ret[count]))
			at += ret[count++].instruction.length;
		if (at == rip && count > 1)
			return count;
	}
	return 0;
}

/* From the bad register back to the load that gave it its value, over copies. */
static void walk_back(const struct code *code, uint64_t rip, ZydisRegister bad,
		      struct fault_operands *ret)
{
	struct decoded before[BACK_INSTRUCTIONS];

	for (size_t i = instructions_before(code, rip, before); i-- > 0;) {
		const struct decoded *d = &before[i];
		const ZydisDecodedOperand *memory;

		/* A call changes registers in ways that are not seen here. */
		if (d->instruction.meta.category == ZYDIS_CATEGORY_CALL)
			return;
		if (!writes(d, bad))
			continue;
		memory = memory_operand(d);
		if (memory) {
			print(d, ret->origin, sizeof(ret->origin));
			/* mov rax, [rax+8] has overwritten its own home. */
			if (whole(memory->mem.base) != bad)
				add(ret, memory->mem.base);
			add(ret, memory->mem.index);
			return;
		}
		if (d->instruction.mnemonic != ZYDIS_MNEMONIC_MOV ||
		    d->operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return;
		bad = whole(d->operands[1].reg.value);
		add(ret, bad);
	}
}

bool operands_of_fault(const uint8_t *bytes, size_t len, uint64_t address, uint64_t rip,
		       struct fault_operands *ret)
{
	struct code code = { .bytes = bytes, .len = len, .address = address };
	const ZydisDecodedOperand *memory;
	struct decoded d;

	*ret = (struct fault_operands){ 0 };
	if (ZYAN_FAILED(ZydisDecoderInit(&code.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64)) ||
	    !decode(&code, rip, &d))
		return false;
	print(&d, ret->instruction, sizeof(ret->instruction));
	memory = memory_operand(&d);
	if (!memory)
		return true;
	add(ret, memory->mem.base);
	add(ret, memory->mem.index);
	if (memory->mem.base != ZYDIS_REGISTER_NONE)
		walk_back(&code, rip, whole(memory->mem.base), ret);
	return true;
}
