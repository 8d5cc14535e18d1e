/*
 * What a register held at an instruction that has run: arch_value_computed() of store.h.
 *
 * A loop that computes an address anew each time leaves it in a register that the next call
 * overwrites. What it was computed from is often still there: from the last place that a jump can
 * lead to, the instructions are gone through again.
 */
#include "arch/arch.h"
#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

#define PIECE_INSTRUCTIONS 100u
#define FUNCTION_BYTES 16384u

static bool ends_piece(const struct decoded *d)
{
	switch (d->instruction.meta.category) {
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		return false;
	}
}

/* Where the instruction may lead to besides the next one; 0: nowhere that is known. */
static uint64_t target_of(const struct decoded *d)
{
	ZyanU64 target = 0;

	if ((d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	     d->instruction.meta.category == ZYDIS_CATEGORY_COND_BR) &&
	    d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		(void)ZydisCalcAbsoluteAddress(&d->instruction, &d->operands[0], d->address,
					       &target);
	return target;
}

/* The last place before `at` that is not only come to from the instruction before it. 0: it cannot
 * be told, or somebody may come in between `at` and `end`. */
static uint64_t piece_begin(const struct code *code, const struct trap *trap, uint64_t at,
			    uint64_t end)
{
	uint64_t path[PIECE_INSTRUCTIONS], begin = at;
	struct before how;
	struct decoded d;
	size_t count = code_before(code, at, trap->start_hint, path, PIECE_INSTRUCTIONS, &how);

	if (!how.certain || trap->start_hint == 0)
		return 0;
	for (size_t i = 0; i < count && decoded_at(code, path[i], &d) && !ends_piece(&d); i++)
		begin = path[i];
	for (uint64_t from = trap->start_hint;
	     from - trap->start_hint < FUNCTION_BYTES && decoded_at(code, from, &d);
	     from += d.instruction.length) {
		uint64_t to = target_of(&d);

		if (to > at && to < end)
			return 0;
		if (to > begin && to <= at)
			begin = to;
	}
	return begin;
}

/* Registers that are written from `from` on, up to `to`; all of them where that is no straight
 * way. */
static uint32_t written_between(const struct code *code, uint64_t from, uint64_t to)
{
	uint32_t written = 0;
	struct decoded d;

	for (; from < to; from += d.instruction.length) {
		if (!decoded_at(code, from, &d) ||
		    d.instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		    d.instruction.meta.category == ZYDIS_CATEGORY_RET)
			return UINT32_MAX;
		for (int reg = 0; reg < REGISTERS_MAX; reg++)
			if (decoded_writes(&d, register_of_number(reg)))
				written |= 1u << reg;
	}
	return written;
}

static bool operand_value(const struct decoded *d, unsigned int which,
			  const struct registers *registers, uint64_t *ret)
{
	const ZydisDecodedOperand *operand = &d->operands[which];
	int reg;

	if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*ret = operand->imm.value.u;
		return true;
	}
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER || operand->size < 32)
		return false;
	reg = register_number(operand->reg.value);
	if (reg < 0 || reg >= REGISTERS_MAX || !(registers->known & 1u << reg))
		return false;
	*ret = operand->size == 32 ? (uint32_t)registers->value[reg] : registers->value[reg];
	return true;
}

static bool combine(ZydisMnemonic mnemonic, unsigned int width, uint64_t a, uint64_t b,
		    uint64_t *ret)
{
	unsigned int shift = (unsigned int)b & (width - 1);

	switch (mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		*ret = a + b;
		return true;
	case ZYDIS_MNEMONIC_SUB:
		*ret = a - b;
		return true;
	case ZYDIS_MNEMONIC_IMUL:
		*ret = a * b;
		return true;
	case ZYDIS_MNEMONIC_AND:
		*ret = a & b;
		return true;
	case ZYDIS_MNEMONIC_SHL:
		*ret = a << shift;
		return true;
	case ZYDIS_MNEMONIC_SHR:
		*ret = a >> shift;
		return true;
	case ZYDIS_MNEMONIC_SAR:
		*ret = width == 32 ? (uint64_t)((int32_t)a >> shift)
				   : (uint64_t)((int64_t)a >> shift);
		return true;
	default:
		return false;
	}
}

/* What it leaves in its first operand. */
static bool result_of(const struct decoded *d, const struct registers *registers, uint64_t *ret)
{
	unsigned int count = d->instruction.operand_count_visible;
	unsigned int width = d->operands[0].size;
	bool three = count == 3;
	struct memory_operand memory;
	uint64_t a, b;

	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
		operand_take(d, &d->operands[1], &memory);
		return memory_operand_address(&memory, registers, ret);
	case ZYDIS_MNEMONIC_MOV:
		return operand_value(d, 1, registers, ret);
	case ZYDIS_MNEMONIC_MOVSXD:
		if (!operand_value(d, 1, registers, &a))
			return false;
		*ret = (uint64_t)(int64_t)(int32_t)a;
		return true;
	case ZYDIS_MNEMONIC_CDQE:
		if (!(registers->known & 1u << X86_64_RAX))
			return false;
		*ret = (uint64_t)(int64_t)(int32_t)registers->value[X86_64_RAX];
		return true;
	default:
		return count >= 2 && operand_value(d, three ? 1 : 0, registers, &a) &&
		       operand_value(d, three ? 2 : 1, registers, &b) &&
		       combine(d->instruction.mnemonic, width, a, b, ret);
	}
}

static void run_again(const struct decoded *d, struct registers *registers)
{
	const ZydisDecodedOperand *to = &d->operands[0];
	bool whole = d->instruction.mnemonic == ZYDIS_MNEMONIC_CDQE;
	int reg = whole ? X86_64_RAX : NO_REGISTER;
	unsigned int width = 64;
	uint64_t value = 0;
	bool known;

	if (!whole && to->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		reg = register_number(to->reg.value);
		width = to->size;
	}
	known = reg >= 0 && reg < REGISTERS_MAX && width >= 32 && result_of(d, registers, &value);
	for (int i = 0; i < REGISTERS_MAX; i++)
		if (decoded_writes(d, register_of_number(i)))
			registers->known &= ~(1u << i);
	if (!known || !decoded_writes(d, register_of_number(reg)))
		return;
	registers->value[reg] = width == 32 ? (uint32_t)value : value;
	registers->known |= 1u << reg;
}

bool arch_value_computed(const struct trap *trap, uint64_t at, int reg, uint64_t *ret)
{
	struct registers then;
	struct decoded d;
	struct code code;
	uint64_t from;

	if (!trap->registers || reg < 0 || reg >= REGISTERS_MAX || at >= trap->rip ||
	    !code_init(&code, trap->code, trap->code_len, trap->code_address))
		return false;
	from = piece_begin(&code, trap, at, trap->rip);
	if (from == 0)
		return false;
	then = *trap->registers;
	then.known &= ~written_between(&code, from, trap->rip);
	for (; from < at && decoded_at(&code, from, &d); from += d.instruction.length)
		run_again(&d, &then);
	if (from != at || !(then.known & 1u << reg))
		return false;
	*ret = then.value[reg];
	return true;
}
