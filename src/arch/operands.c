#include "arch/operands.h"

#include <string.h>

#include "arch/arch.h"
#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

static void add(struct fault_operands *ret, int number)
{
	const char *name;

	if (number < 0 || number == X86_64_RIP || number == X86_64_RSP)
		return;
	name = arch_register_name(arch_native(), (unsigned int)number);
	for (size_t i = 0; name && i < ret->count; i++)
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

/* Was somebody called after the load? Then what it loaded from may have been given back since, and
 * says nothing about what was loaded. */
static bool calls_since(const struct trap *trap, uint64_t load)
{
	struct decoded d;
	struct code code;

	if (load >= trap->rip || !code_init(&code, trap->code, trap->code_len, trap->code_address))
		return true;
	for (uint64_t at = load; at < trap->rip; at += d.instruction.length)
		if (!decoded_at(&code, at, &d) ||
		    d.instruction.meta.category == ZYDIS_CATEGORY_CALL)
			return true;
	return false;
}

/* mov rax, [rbp-8]; add rax, 16; mov rax, [rax]: the variable still has what was loaded through. */
static void find_slot(const struct trap *trap, const struct origin *origin,
		      struct fault_operands *ret)
{
	struct origin pointer;

	arch_value_origin(trap, origin->at, origin->from.base, &pointer);
	ret->has_source_slot = pointer.slot_known && !pointer.slot_joined;
	ret->source_slot = pointer.slot_address;
	ret->source_added = pointer.slot_added;
}

/* A register of the load's address that still has its value. */
static bool is_kept(const struct origin *origin, int reg)
{
	return reg != NO_REGISTER && (origin->from_kept & (1u << reg));
}

/* From the bad register back to the load that gave it its value. */
static void walk_back(const struct trap *trap, int bad, struct fault_operands *ret)
{
	struct origin origin;
	bool straight;

	arch_value_origin(trap, trap->rip, bad, &origin);
	for (int reg = 0; reg < REGISTERS_MAX; reg++)
		if (origin.through & (1u << reg))
			add(ret, reg);
	if (origin.kind != ORIGIN_LOAD)
		return;
	(void)memcpy(ret->origin, origin.text, sizeof(ret->origin));
	straight = !origin.joined && !origin.changed && !calls_since(trap, origin.at);
	if (is_kept(&origin, origin.from.base)) {
		add(ret, origin.from.base);
		if (straight)
			ret->source = arch_register_name(arch_native(), (unsigned)origin.from.base);
	} else if (origin.from.base != NO_REGISTER && origin.from.base != X86_64_RIP && straight) {
		find_slot(trap, &origin, ret);
	}
	if (is_kept(&origin, origin.from.index))
		add(ret, origin.from.index);
	/* By a byte it may be two pointers, one and their distance. */
	ret->has_load = ret->source && origin.from.scale > 1 && is_kept(&origin, origin.from.index);
	ret->load = origin.from;
}

/* Where it goes, if that is not written in the instruction itself. */
static void take_jump(const struct trap *trap, struct fault_operands *ret)
{
	struct access access;

	ret->target = NO_REGISTER;
	if (arch_access_at(trap, trap->rip, &access) && access.jumps) {
		ret->jumps = true;
		ret->target = access.target;
		ret->jump = access.memory;
	} else if (arch_returns_at(trap, trap->rip)) {
		ret->jumps = true;
		ret->jump = (struct memory_operand){ .base = X86_64_RSP,
						     .index = NO_REGISTER,
						     .segment = NO_REGISTER };
	}
}

bool operands_of_fault(const uint8_t *bytes, size_t len, uint64_t address, uint64_t rip,
		       const struct registers *registers, struct fault_operands *ret)
{
	struct trap trap = { .code = bytes,
			     .code_len = len,
			     .code_address = address,
			     .rip = rip,
			     .registers = registers };
	const ZydisDecodedOperand *memory;
	struct decoded d;
	struct code code;

	*ret = (struct fault_operands){ 0 };
	if (!code_init(&code, bytes, len, address) || !decoded_at(&code, rip, &d))
		return false;
	decoded_print(&d, ret->instruction, sizeof(ret->instruction));
	take_jump(&trap, ret);
	memory = memory_operand(&d);
	if (!memory)
		return true;
	operand_take(&d, memory, &ret->memory);
	ret->has_memory = true;
	add(ret, ret->memory.base);
	add(ret, ret->memory.index);
	if (ret->memory.base != NO_REGISTER && ret->memory.base != X86_64_RIP)
		ret->base = arch_register_name(arch_native(), (unsigned int)ret->memory.base);
	if (ret->memory.base != NO_REGISTER)
		walk_back(&trap, ret->memory.base, ret);
	return true;
}

bool operands_of_call(const uint8_t *bytes, size_t len, uint64_t address, uint64_t end,
		      const struct registers *registers, struct fault_operands *ret)
{
	struct trap trap = {
		.code = bytes, .code_len = len, .code_address = address, .registers = registers
	};
	struct access access;
	struct before how;
	struct decoded d;
	struct code code;

	*ret = (struct fault_operands){ .target = NO_REGISTER };
	if (!code_init(&code, bytes, len, address) ||
	    code_before(&code, end, 0, &trap.rip, 1, &how) == 0 ||
	    !decoded_at(&code, trap.rip, &d) ||
	    d.instruction.meta.category != ZYDIS_CATEGORY_CALL ||
	    !arch_access_at(&trap, trap.rip, &access) || !access.jumps)
		return false;
	ret->jumps = true;
	ret->target = access.target;
	ret->jump = access.memory;
	if (access.target != NO_REGISTER) {
		add(ret, access.target);
		walk_back(&trap, access.target, ret);
		return true;
	}
	decoded_print(&d, ret->origin, sizeof(ret->origin));
	add(ret, access.memory.base);
	add(ret, access.memory.index);
	if (access.memory.base != NO_REGISTER && access.memory.base != X86_64_RIP)
		ret->source = arch_register_name(arch_native(), (unsigned int)access.memory.base);
	return true;
}
