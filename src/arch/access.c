/* What an instruction does with memory: arch_call_before() and arch_access_at() of store.h. */
#include "arch/store_inside.h"

bool arch_call_before(const struct trap *trap, uint64_t *ret_at)
{
	struct decoded d;
	struct code code;
	uint64_t at;
	struct before how;

	if (!code_init(&code, trap->code, trap->code_len, trap->code_address) ||
	    code_before(&code, trap->rip, trap->start_hint, &at, 1, &how) == 0 ||
	    !decoded_at(&code, at, &d) || d.instruction.meta.category != ZYDIS_CATEGORY_CALL)
		return false;
	*ret_at = at;
	return true;
}

static void take_jump(const struct decoded *d, struct access *ret)
{
	ret->target = NO_REGISTER;
	if (d->instruction.meta.category != ZYDIS_CATEGORY_CALL &&
	    d->instruction.meta.category != ZYDIS_CATEGORY_UNCOND_BR)
		return;
	if (d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    d->instruction.operand_count_visible == 0)
		return;
	ret->jumps = true;
	if (d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		ret->target = register_number(d->operands[0].reg.value);
}

static void take_divisor(const struct decoded *d, struct access *ret)
{
	ret->divisor = NO_REGISTER;
	if (d->instruction.mnemonic != ZYDIS_MNEMONIC_DIV &&
	    d->instruction.mnemonic != ZYDIS_MNEMONIC_IDIV)
		return;
	ret->divides = true;
	ret->width = d->operands[0].size / 8;
	if (d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		ret->divisor = register_number(register_whole(d->operands[0].reg.value));
}

bool arch_access_at(const struct trap *trap, uint64_t at, struct access *ret)
{
	struct decoded d;
	struct code code;

	*ret = (struct access){ .target = NO_REGISTER, .divisor = NO_REGISTER };
	if (!code_init(&code, trap->code, trap->code_len, trap->code_address) ||
	    !decoded_at(&code, at, &d))
		return false;
	take_jump(&d, ret);
	take_divisor(&d, ret);
	for (unsigned int i = 0; i < d.instruction.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &d.operands[i];

		if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    operand->mem.type != ZYDIS_MEMOP_TYPE_MEM)
			continue;
		operand_take(&d, operand, &ret->memory);
		ret->width = operand->size / 8;
		ret->reads |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
		ret->writes |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
		break;
	}
	return ret->reads || ret->writes || ret->jumps || ret->divides;
}

bool arch_returns_at(const struct trap *trap, uint64_t at)
{
	struct decoded d;
	struct code code;

	return code_init(&code, trap->code, trap->code_len, trap->code_address) &&
	       decoded_at(&code, at, &d) && d.instruction.meta.category == ZYDIS_CATEGORY_RET;
}

/* Of the thread's guard word, by the ABI of the C libraries for Linux. */
#define GUARD_OFFSET 0x28

/* mov reg, fs:[0x28] */
static ZydisRegister loads_guard(const struct decoded *d)
{
	const ZydisDecodedOperand *to = &d->operands[0], *from = &d->operands[1];

	if (d->instruction.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    to->type != ZYDIS_OPERAND_TYPE_REGISTER || from->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    from->mem.segment != ZYDIS_REGISTER_FS || from->mem.base != ZYDIS_REGISTER_NONE ||
	    from->mem.index != ZYDIS_REGISTER_NONE || from->mem.disp.value != GUARD_OFFSET)
		return ZYDIS_REGISTER_NONE;
	return to->reg.value;
}

bool arch_frame_guard(const struct trap *trap, struct memory_operand *ret)
{
	ZydisRegister guard = ZYDIS_REGISTER_NONE;
	struct decoded d;
	struct code code;

	if (!code_init(&code, trap->code, trap->code_len, trap->code_address))
		return false;
	for (uint64_t at = trap->start_hint; at < trap->rip && decoded_at(&code, at, &d);
	     at += d.instruction.length) {
		const ZydisDecodedOperand *to = &d.operands[0];

		if (guard == ZYDIS_REGISTER_NONE) {
			guard = loads_guard(&d);
			continue;
		}
		if (d.instruction.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    to->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    d.operands[1].reg.value == guard) {
			operand_take(&d, to, ret);
			return true;
		}
		if (decoded_writes(&d, register_whole(guard)))
			guard = ZYDIS_REGISTER_NONE;
	}
	return false;
}
