#include "debuginfo/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include "arch/arch.h"
#include "base/mem.h"
#include "debuginfo/module.h"

/* libdw finds the rules for an address; evaluating them against the recorded state is done here,
 * because libdwfl's own unwinder ties a session to one process and its load addresses. */

#define STACK_MAX 64
#define STEPS_MAX 1024

struct machine {
	const struct registers *registers;
	memory_reader *read;
	void *arg;
	uint64_t load_bias;
	const taddr *cfa; /* NULL while the CFA itself is computed */
	uint64_t stack[STACK_MAX];
	size_t depth;
};

static int push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		return -EBADMSG;
	m->stack[m->depth++] = value;
	return 0;
}

static int register_get(const struct registers *registers, uint64_t reg, uint64_t *ret)
{
	if (reg >= arch_native()->dwarf_count || !(registers->known & (1u << reg)))
		return -EFAULT;
	*ret = registers->value[reg];
	return 0;
}

static int push_register(struct machine *m, uint64_t reg, uint64_t offset)
{
	uint64_t value;
	int r = register_get(m->registers, reg, &value);

	return r < 0 ? r : push(m, value + offset);
}

static int push_memory(struct machine *m, taddr address, uint64_t size)
{
	uint64_t value = 0;

	if (size == 0 || size > 8)
		return -EBADMSG;
	if (!m->read(m->arg, address, &value, size)) /* little endian, as every CPU in arch/ */
		return -EFAULT;
	return push(m, value);
}

static int compared(uint8_t atom, int64_t x, int64_t y, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_eq:
		*ret = x == y;
		return 0;
	case DW_OP_ne:
		*ret = x != y;
		return 0;
	case DW_OP_lt:
		*ret = x < y;
		return 0;
	case DW_OP_le:
		*ret = x <= y;
		return 0;
	case DW_OP_gt:
		*ret = x > y;
		return 0;
	case DW_OP_ge:
		*ret = x >= y;
		return 0;
	default:
		return -EBADMSG;
	}
}

static int divide(int64_t x, int64_t y, uint64_t *ret)
{
	if (y == 0 || (x == INT64_MIN && y == -1))
		return -EBADMSG;
	*ret = (uint64_t)(x / y);
	return 0;
}

/* Operations that take two values and leave one. */
static int binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (atom) {
	case DW_OP_and:
		*ret = a & b;
		return 0;
	case DW_OP_or:
		*ret = a | b;
		return 0;
	case DW_OP_xor:
		*ret = a ^ b;
		return 0;
	case DW_OP_plus:
		*ret = a + b;
		return 0;
	case DW_OP_minus:
		*ret = a - b;
		return 0;
	case DW_OP_mul:
		*ret = a * b;
		return 0;
	case DW_OP_div:
		return divide(x, y, ret);
	case DW_OP_mod:
		if (b == 0)
			return -EBADMSG;
		*ret = a % b;
		return 0;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return 0;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return 0;
	case DW_OP_shra:
		*ret = (uint64_t)(x >> (b < 64 ? b : 63));
		return 0;
	default:
		return compared(atom, x, y, ret);
	}
}

static int step_binary(struct machine *m, uint8_t atom)
{
	uint64_t value;
	int r;

	if (m->depth < 2)
		return -EBADMSG;
	r = binary(atom, m->stack[m->depth - 2], m->stack[m->depth - 1], &value);
	if (r < 0)
		return r;
	m->depth--;
	m->stack[m->depth - 1] = value;
	return 0;
}

/* Puts the newest one `places` deeper. */
static int turn(struct machine *m, unsigned int places)
{
	uint64_t *top = m->stack + m->depth, newest;

	if (m->depth <= places)
		return -EBADMSG;
	newest = top[-1];
	for (unsigned int i = 1; i <= places; i++)
		top[-(ptrdiff_t)i] = top[-(ptrdiff_t)i - 1];
	top[-(ptrdiff_t)places - 1] = newest;
	return 0;
}

static int change_newest(struct machine *m, const Dwarf_Op *op)
{
	uint64_t *newest = m->stack + m->depth - 1;

	if (m->depth < 1)
		return -EBADMSG;
	if (op->atom == DW_OP_not)
		*newest = ~*newest;
	else if (op->atom == DW_OP_plus_uconst)
		*newest += op->number;
	else if (op->atom == DW_OP_neg || (int64_t)*newest < 0)
		*newest = -*newest;
	return 0;
}

static int copy_up(struct machine *m, const Dwarf_Op *op)
{
	uint64_t depth = op->atom == DW_OP_pick ? op->number : op->atom == DW_OP_over;

	return depth < m->depth ? push(m, m->stack[m->depth - 1 - depth]) : -EBADMSG;
}

/* Operations that only move or change what is on the stack. */
static int step_stack(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
	case DW_OP_over:
	case DW_OP_pick:
		return copy_up(m, op);
	case DW_OP_drop:
		if (m->depth < 1)
			return -EBADMSG;
		m->depth--;
		return 0;
	case DW_OP_swap:
		return turn(m, 1);
	case DW_OP_rot:
		return turn(m, 2);
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return change_newest(m, op);
	case DW_OP_deref:
	case DW_OP_deref_size:
		if (m->depth < 1)
			return -EBADMSG;
		m->depth--;
		return push_memory(m, m->stack[m->depth], op->atom == DW_OP_deref ? 8 : op->number);
	default:
		return step_binary(m, op->atom);
	}
}

static int step(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(m, atom - DW_OP_lit0);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(m, atom - DW_OP_breg0, op->number);
	if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31)
		return push_register(m, atom - DW_OP_reg0, 0);
	/* const1u and const1s to constu and consts stand in a row. */
	if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
		return push(m, op->number);
	switch (atom) {
	case DW_OP_nop:
		return 0;
	case DW_OP_addr:
		return push(m, op->number + m->load_bias);
	case DW_OP_bregx:
		return push_register(m, op->number, op->number2);
	case DW_OP_regx:
		return push_register(m, op->number, 0);
	case DW_OP_call_frame_cfa:
		return m->cfa ? push(m, *m->cfa) : -EBADMSG;
	default:
		return step_stack(m, op);
	}
}

/* The operation that a branch goes to; `count` for the end, -1 for none. */
static ptrdiff_t branch_target(const Dwarf_Op *ops, size_t count, const Dwarf_Op *from)
{
	uint64_t offset = from->offset + 3 + (uint64_t)(int64_t)(int16_t)from->number;

	for (size_t i = 0; i < count; i++)
		if (ops[i].offset == offset)
			return (ptrdiff_t)i;
	return -1;
}

/* Runs an expression. *ret_is_value tells a computed value from the address of one. */
static int evaluate(struct machine *m, const Dwarf_Op *ops, size_t count, uint64_t *ret,
		    bool *ret_is_value)
{
	bool is_value = false;
	size_t i = 0;

	m->depth = 0;
	for (unsigned int steps = 0; i < count; steps++) {
		const Dwarf_Op *op = &ops[i];
		int r;

		if (steps > STEPS_MAX)
			return -EBADMSG;
		if (op->atom == DW_OP_skip || op->atom == DW_OP_bra) {
			ptrdiff_t target = branch_target(ops, count, op);

			if (op->atom == DW_OP_bra && m->depth == 0)
				return -EBADMSG;
			if (op->atom == DW_OP_bra && m->stack[--m->depth] == 0) {
				i++;
				continue;
			}
			if (target < 0)
				return -EBADMSG;
			i = (size_t)target;
			continue;
		}
		if (op->atom == DW_OP_stack_value) {
			is_value = true;
			break;
		}
		r = step(m, op);
		if (r < 0)
			return r;
		if ((op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) || op->atom == DW_OP_regx)
			is_value = true; /* "it is in that register", so its content is the value */
		i++;
	}
	if (m->depth == 0)
		return -EBADMSG;
	*ret = m->stack[m->depth - 1];
	*ret_is_value = is_value;
	return 0;
}

/* What the caller had in register `reg`. 1: known; 0: not recoverable. */
static int recover(Dwarf_Frame *frame, struct machine *m, unsigned int reg, uint64_t *ret)
{
	Dwarf_Op mem[3], *ops;
	uint64_t value;
	bool is_value;
	size_t count;
	int r;

	if (dwarf_frame_register(frame, (int)reg, mem, &ops, &count) != 0)
		return -EBADMSG;
	/* No rule: what a function must leave as it was, it did. elfutils has that as a default for
	 * all of these but rbx (0.188: its table names rax there). */
	if (count == 0 && ops == mem && !(arch_native()->callee_saved & 1u << reg))
		return 0;
	if (count == 0)
		return register_get(m->registers, reg, ret) == 0;
	r = evaluate(m, ops, count, &value, &is_value);
	if (r < 0)
		return r;
	if (!is_value) {
		m->depth = 0;
		r = push_memory(m, value, 8);
		if (r < 0)
			return r;
		value = m->stack[0];
	}
	*ret = value;
	return 1;
}

static int find_frame(struct module *module, uint64_t vaddr, Dwarf_Frame **ret)
{
	uint64_t bias;
	struct Dwfl_Module *mod = module_dwfl(module, &bias);
	Dwarf_Addr cfi_bias;
	Dwarf_CFI *cfi;

	cfi = dwfl_module_eh_cfi(mod, &cfi_bias);
	if (cfi && dwarf_cfi_addrframe(cfi, vaddr + bias - cfi_bias, ret) == 0)
		return 0;
	cfi = dwfl_module_dwarf_cfi(mod, &cfi_bias);
	if (cfi && dwarf_cfi_addrframe(cfi, vaddr + bias - cfi_bias, ret) == 0)
		return 0;
	return -ENOENT;
}

int cfi_unwind(struct module *module, uint64_t vaddr, uint64_t load_bias, memory_reader *read,
	       void *arg, struct registers *registers, struct cfi_step *ret)
{
	const struct arch *arch = arch_native();
	AUTO(mem_freep) Dwarf_Frame *frame = NULL;
	struct machine m = { .registers = registers, .read = read, .arg = arg };
	struct registers caller = { 0 };
	struct cfi_step result = { 0 };
	bool is_value, signal = false;
	Dwarf_Addr low, high;
	Dwarf_Op *ops;
	size_t count;
	int column, r;

	m.load_bias = load_bias;
	r = find_frame(module, vaddr, &frame);
	if (r < 0)
		return r;
	column = dwarf_frame_info(frame, &low, &high, &signal);
	if (column < 0 || (unsigned int)column >= arch->dwarf_count ||
	    dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0)
		return -EBADMSG;
	r = evaluate(&m, ops, count, &result.cfa, &is_value);
	if (r < 0)
		return r;
	m.cfa = &result.cfa;

	for (unsigned int reg = 0; reg < arch->dwarf_count; reg++) {
		r = recover(frame, &m, reg, &caller.value[reg]);
		/* Lost memory for some register is only bad for the frames that need it. */
		if (r == 1)
			caller.known |= 1u << reg;
		else if (reg == (unsigned int)column)
			return r;
	}
	if (!(caller.known & (1u << arch->sp))) {
		caller.value[arch->sp] = result.cfa;
		caller.known |= 1u << arch->sp;
	}
	caller.value[arch->pc] = caller.value[column];
	caller.known |= 1u << arch->pc;
	/* The thread pointer and its like do not change on the way up. */
	for (unsigned int reg = arch->dwarf_count; reg < arch->register_count; reg++)
		caller.value[reg] = registers->value[reg];
	caller.known |= registers->known & ~((1u << arch->dwarf_count) - 1);
	result.signal = signal;
	*registers = caller;
	*ret = result;
	return 1;
}
