/*
 * Does a pointer run: arch_pointer_runs() of store.h.
 *
 * In a loop the register is moved on, at once (add rax, 4) or by way of others (lea rdx, [rax-4] …
 * mov rax, rdx). Which register has its value from which is a graph of a few nodes; a pointer runs
 * if the way back from it comes to a circle that something is added on.
 */

#include "arch/arch.h"
#include "arch/store_inside.h"

struct flow {
	uint32_t from[REGISTERS_MAX]; /* bit N: it has, or may have, its value from register N */
	uint32_t up[REGISTERS_MAX];   /* … and a constant was added on the way */
	uint32_t down[REGISTERS_MAX]; /* … or taken off */
	uint32_t some[REGISTERS_MAX]; /* … or something that is not known */
};

static void note_added(struct flow *flow, int to, int from, bool constant, int64_t by)
{
	flow->from[to] |= 1u << from;
	if (!constant)
		flow->some[to] |= 1u << from;
	else if (by > 0)
		flow->up[to] |= 1u << from;
	else if (by < 0)
		flow->down[to] |= 1u << from;
}

static int number_of(const ZydisDecodedOperand *operand)
{
	int number = operand->type == ZYDIS_OPERAND_TYPE_REGISTER
			     ? register_number(operand->reg.value)
			     : NO_REGISTER;

	return number >= 0 && number < REGISTERS_MAX ? number : NO_REGISTER;
}

static void note(struct flow *flow, const struct decoded *d)
{
	int to = number_of(&d->operands[0]), from = number_of(&d->operands[1]);
	const ZydisDecodedOperand *source = &d->operands[1];

	if (to == NO_REGISTER || d->instruction.operand_width != 64)
		return;
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (from != NO_REGISTER)
			flow->from[to] |= 1u << from;
		break;
	case ZYDIS_MNEMONIC_LEA:
		from = register_number(source->mem.base);
		if (from >= 0 && from < REGISTERS_MAX)
			note_added(flow, to, from, source->mem.index == ZYDIS_REGISTER_NONE,
				   source->mem.disp.value);
		break;
	case ZYDIS_MNEMONIC_ADD:
		note_added(flow, to, to, source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE,
			   source->imm.value.s);
		break;
	case ZYDIS_MNEMONIC_SUB:
		note_added(flow, to, to, source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE,
			   -source->imm.value.s);
		break;
	case ZYDIS_MNEMONIC_INC:
		note_added(flow, to, to, true, 1);
		break;
	case ZYDIS_MNEMONIC_DEC:
		note_added(flow, to, to, true, -1);
		break;
	default:
		break;
	}
}

/* All registers that the value of those in `set` may have come through. */
static uint32_t reached(const struct flow *flow, uint32_t set)
{
	for (uint32_t before = 0; before != set;) {
		before = set;
		for (unsigned int i = 0; i < REGISTERS_MAX; i++)
			if (set & 1u << i)
				set |= flow->from[i];
	}
	return set;
}

static unsigned int comes_round(const struct flow *flow, int reg)
{
	uint32_t way = reached(flow, 1u << reg);
	unsigned int runs = 0;

	for (unsigned int i = 0; i < REGISTERS_MAX; i++) {
		if (!(way & 1u << i))
			continue;
		if (reached(flow, flow->up[i]) & 1u << i)
			runs |= RUNS_UP;
		if (reached(flow, flow->down[i]) & 1u << i)
			runs |= RUNS_DOWN;
		if (reached(flow, flow->some[i]) & 1u << i)
			runs |= RUNS_SOMEWHERE;
	}
	return runs;
}

static bool jump_target(const struct decoded *d, uint64_t *ret)
{
	return (d->instruction.meta.category == ZYDIS_CATEGORY_COND_BR ||
		d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
	       d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       ZYAN_SUCCESS(
		       ZydisCalcAbsoluteAddress(&d->instruction, &d->operands[0], d->address, ret));
}

unsigned int arch_pointer_runs(const struct trap *trap, uint64_t at, int reg)
{
	struct code code;
	struct decoded jump, d;
	uint64_t target;
	unsigned int runs = 0;

	if (reg < 0 || reg >= REGISTERS_MAX || trap->start_hint == 0 || at < trap->start_hint ||
	    !code_init(&code, trap->code, trap->code_len, trap->code_address))
		return 0;
	/* Each jump back over the instruction closes a loop around it. */
	for (uint64_t end = at; decoded_at(&code, end, &jump); end += jump.instruction.length) {
		struct flow flow = { 0 };

		if (!jump_target(&jump, &target) || target > at || target < trap->start_hint)
			continue;
		for (uint64_t in = target; in < end && decoded_at(&code, in, &d);
		     in += d.instruction.length)
			note(&flow, &d);
		/* The innermost loop is the one that it runs in. */
		runs = comes_round(&flow, reg);
		if (runs)
			break;
	}
	return runs;
}
