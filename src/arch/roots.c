/*
 * What an address was made from: arch_roots() of store.h.
 *
 * Back from the instruction, by all ways through the function, to what first stood in each register
 * that the address was added up from: a constant, a place in the frame, an argument. Where two ways
 * put different things there nothing is told.
 */
#include "arch/arch.h"
#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

#define INSTRUCTIONS_MAX 1024u
#define STEPS_MAX 2048u
#define DEPTH_MAX 24u
#define LOWEST_ADDRESS 0x10000 /* that can be mapped: less is a number */

/* A register, or a slot of the frame. */
struct kept_at {
	int reg; /* NO_REGISTER: the slot */
	struct memory_operand slot;
};

struct made_of {
	struct roots roots;
	bool open; /* a way round a loop, which adds nothing to what came in */
};

/* An instruction of the function. */
struct root_step {
	uint64_t address, target; /* that it jumps to; 0: nowhere that is known */
	bool goes_on;		  /* to the next one */
};

struct root_search {
	const struct trap *trap;
	struct code code;
	bool framed;
	struct root_step list[INSTRUCTIONS_MAX];
	size_t count;
	size_t active[DEPTH_MAX]; /* what they put somewhere is being looked for */
	unsigned int depth, steps;
};

static const struct made_of unknown = { .roots.several = true }, number = { 0 };

static struct made_of value_before(struct root_search *search, const struct kept_at *place,
				   size_t at);

static bool same_place(const struct kept_at *a, const struct kept_at *b)
{
	return a->reg == b->reg &&
	       (a->reg != NO_REGISTER ||
		(a->slot.base == b->slot.base && a->slot.displacement == b->slot.displacement));
}

static bool same_roots(const struct roots *a, const struct roots *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].argument != b->list[i].argument ||
		    a->list[i].address != b->list[i].address || a->list[i].reg != b->list[i].reg)
			return false;
	return true;
}

/* Either of them may stand there. */
static struct made_of either(struct made_of a, struct made_of b)
{
	if (a.open || b.open)
		return a.open ? b : a;
	a.roots.several |= b.roots.several || !same_roots(&a.roots, &b.roots);
	return a;
}

static struct made_of sum(struct made_of a, struct made_of b)
{
	a.roots.several |= b.roots.several || a.roots.count + b.roots.count > ROOTS_MAX;
	for (size_t i = 0; i < b.roots.count && a.roots.count < ROOTS_MAX; i++)
		a.roots.list[a.roots.count++] = b.roots.list[i];
	a.open |= b.open;
	return a;
}

static struct made_of root_at(uint64_t at, uint64_t address)
{
	return (struct made_of){ .roots = { .list = { { .at = at, .address = address } },
					    .count = 1 } };
}

static bool is_frame(const struct root_search *search, int reg)
{
	return reg == X86_64_RSP || (reg == X86_64_RBP && search->framed);
}

static bool is_slot(const struct root_search *search, const struct memory_operand *operand)
{
	return is_frame(search, operand->base) && operand->index == NO_REGISTER &&
	       operand->segment == NO_REGISTER && !operand->fixed;
}

static struct made_of value_of(struct root_search *search, int reg, size_t at)
{
	return value_before(search, &(struct kept_at){ .reg = reg }, at);
}

/* Of the address that an operand means, as the instruction has it. A scaled register is a number.
 */
static struct made_of value_of_address(struct root_search *search,
				       const struct memory_operand *operand, size_t at)
{
	const struct registers *now = search->trap->registers;
	uint64_t where = search->list[at].address;
	struct made_of value = number;

	if (operand->fixed)
		return root_at(where, operand->address);
	if (operand->segment != NO_REGISTER)
		return unknown;
	if (is_frame(search, operand->base)) {
		if (!now || !(now->known & 1u << operand->base))
			return unknown;
		value = root_at(where, now->value[operand->base] + (uint64_t)operand->displacement);
	} else {
		if (operand->displacement >= LOWEST_ADDRESS)
			value = root_at(where, (uint64_t)operand->displacement);
		if (operand->base != NO_REGISTER)
			value = sum(value, value_of(search, operand->base, at));
	}
	return operand->index != NO_REGISTER && operand->scale == 1
		       ? sum(value, value_of(search, operand->index, at))
		       : value;
}

static const ZydisDecodedOperand *memory_of(const struct decoded *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count_visible; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return &d->operands[i];
	return NULL;
}

/* What a 64-bit operand holds before the instruction. */
static struct made_of value_of_operand(struct root_search *search, const struct decoded *d,
				       const ZydisDecodedOperand *operand, size_t at)
{
	struct memory_operand memory;

	if (operand->size < 64 && operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return number;
	if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return value_of(search, register_number(operand->reg.value), at);
	if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return operand->imm.value.u >= LOWEST_ADDRESS && !operand->imm.is_signed
			       ? root_at(d->address, operand->imm.value.u)
			       : number;
	operand_take(d, operand, &memory);
	return is_slot(search, &memory)
		       ? value_before(search,
				      &(struct kept_at){ .reg = NO_REGISTER, .slot = memory }, at)
		       : number;
}

/* What the instruction leaves in its first operand. */
static struct made_of result_of(struct root_search *search, const struct decoded *d, size_t at)
{
	bool constant = d->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	struct memory_operand memory;
	struct made_of value;

	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		/* The upper half is cleared: an address of a program that is not moved. */
		return value_of_operand(search, d, &d->operands[1], at);
	case ZYDIS_MNEMONIC_LEA:
		operand_take(d, &d->operands[1], &memory);
		return value_of_address(search, &memory, at);
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		return value_of_operand(search, d, &d->operands[0], at);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		value = value_of_operand(search, d, &d->operands[0], at);
		return constant ? value
				: sum(value, value_of_operand(search, d, &d->operands[1], at));
	default:
		return number;
	}
}

static bool caller_keeps(int reg)
{
	return reg >= 0 && reg < REGISTERS_MAX && arch_native()->callee_saved & 1u << reg;
}

static bool sets_slot(const struct root_search *search, const struct decoded *d,
		      const struct kept_at *place, bool *ret_given)
{
	const ZydisDecodedOperand *memory = memory_of(d);
	struct memory_operand to;

	*ret_given = false;
	if (!memory)
		return false;
	operand_take(d, memory, &to);
	if (!is_slot(search, &to) ||
	    !same_place(place, &(struct kept_at){ .reg = NO_REGISTER, .slot = to }))
		return false;
	*ret_given = d->instruction.mnemonic == ZYDIS_MNEMONIC_LEA;
	return memory == &d->operands[0] && memory->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

/* Does the instruction put something there? */
static bool sets(const struct root_search *search, const struct decoded *d,
		 const struct kept_at *place)
{
	bool given;

	if (place->reg == NO_REGISTER)
		return sets_slot(search, d, place, &given);
	return decoded_writes(d, register_of_number(place->reg)) ||
	       (d->instruction.meta.category == ZYDIS_CATEGORY_CALL && !caller_keeps(place->reg));
}

static struct made_of set_by(struct root_search *search, const struct decoded *d,
			     const struct kept_at *place, size_t at)
{
	const ZydisDecodedOperand *to = &d->operands[0];
	struct made_of value;

	if (d->instruction.meta.category == ZYDIS_CATEGORY_CALL ||
	    (place->reg != NO_REGISTER && (to->type != ZYDIS_OPERAND_TYPE_REGISTER ||
					   register_number(to->reg.value) != place->reg)))
		return number;
	for (unsigned int i = 0; i < search->depth; i++)
		if (search->active[i] == at)
			return (struct made_of){ .open = true };
	if (search->depth == DEPTH_MAX)
		return unknown;
	search->active[search->depth++] = at;
	value = result_of(search, d, at);
	search->depth--;
	return value;
}

static bool leads_to(const struct root_search *search, size_t from, size_t to)
{
	const struct root_step *step = &search->list[from];

	return (from + 1 == to && step->goes_on) ||
	       (step->target != 0 && step->target == search->list[to].address);
}

/* Whoever is given the address of a slot may change what is there. */
static bool is_given(const struct root_search *search, const struct kept_at *place)
{
	struct decoded d;
	bool given = false;

	for (size_t i = 0; place->reg == NO_REGISTER && i < search->count && !given; i++)
		if (decoded_at(&search->code, search->list[i].address, &d))
			(void)sets_slot(search, &d, place, &given);
	return given;
}

static struct made_of entered_with(const struct kept_at *place)
{
	return place->reg == NO_REGISTER
		       ? number
		       : (struct made_of){
				 .roots = { .list = { { .argument = true, .reg = place->reg } },
					    .count = 1 }
			 };
}

/* All instructions that may have put there what stands there, back from this one. */
static struct made_of value_before(struct root_search *search, const struct kept_at *place,
				   size_t at)
{
	bool met[INSTRUCTIONS_MAX] = { 0 };
	uint16_t queue[INSTRUCTIONS_MAX + 1];
	struct made_of value = { .open = true };
	size_t count = 0, ways;

	if (search->steps++ == STEPS_MAX || is_given(search, place))
		return unknown;
	queue[count++] = (uint16_t)at;
	for (size_t next = 0; next < count; next++) {
		ways = queue[next] == 0;
		if (ways > 0)
			value = either(value, entered_with(place));
		for (size_t i = 0; i < search->count; i++) {
			struct decoded d;

			if (!leads_to(search, i, queue[next]) ||
			    !decoded_at(&search->code, search->list[i].address, &d))
				continue;
			ways++;
			if (sets(search, &d, place))
				value = either(value, set_by(search, &d, place, i));
			else if (!met[i])
				queue[count++] = (uint16_t)i;
			met[i] = true;
		}
		if (ways == 0) /* a table of jumps leads here */
			return unknown;
	}
	return value;
}

static void add_step(struct root_search *search, const struct decoded *d)
{
	bool jumps = d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	struct root_step step = { .address = d->address,
				  .goes_on = !jumps &&
					     d->instruction.meta.category != ZYDIS_CATEGORY_RET };
	ZyanU64 target;

	if ((jumps || d->instruction.meta.category == ZYDIS_CATEGORY_COND_BR) &&
	    d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&d->instruction, &d->operands[0], d->address,
						  &target)))
		step.target = target;
	search->list[search->count++] = step;
}

void arch_roots(const struct trap *trap, uint64_t at, const struct memory_operand *operand,
		bool framed, struct roots *ret)
{
	struct root_search search;
	struct decoded d;
	size_t from = 0;

	search.trap = trap;
	search.framed = framed;
	search.count = 0;
	search.depth = search.steps = 0;
	*ret = (struct roots){ .several = true };
	if (trap->start_hint == 0 ||
	    !code_init(&search.code, trap->code, trap->code_len, trap->code_address))
		return;
	for (uint64_t next = trap->start_hint;
	     search.count < INSTRUCTIONS_MAX && decoded_at(&search.code, next, &d);
	     next += d.instruction.length) {
		add_step(&search, &d);
		if (next == at)
			from = search.count;
	}
	if (from > 0)
		*ret = value_of_address(&search, operand, from - 1).roots;
}
