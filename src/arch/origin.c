/* Where a register had its value from: arch_value_origin() of store.h. */
#include "arch/arch.h"
#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

#define BACK_INSTRUCTIONS 400u
#define BACK_JUMPS 12u
#define JOIN_BYTES 4096u /* how far behind it jumps back into it are looked for */

/* The value on its way back: in a register, or in a slot of the stack. */
struct chase {
	const struct code *code;
	const struct trap *trap;
	uint64_t path[BACK_INSTRUCTIONS]; /* nearest first */
	size_t count;
	ZydisRegister reg; /* ZYDIS_REGISTER_NONE while it is in a slot */
	struct memory_operand slot;
	uint32_t written; /* general registers changed since, a bit for each number */
	uint32_t moved;	  /* … those that constants were added to, and which in sum */
	uint64_t moves[REGISTERS_MAX];
	unsigned int jumps; /* followed back */
	bool joined;	    /* another jump leads into a piece that was left by one */
	uint64_t end;	    /* where the piece that is walked ends */
	bool value_known;   /* … that is followed, as it was when the walk began */
	uint64_t value;
	struct origin *ret;
};

#define INDEX_BITS 32u /* of a number that counts elements, by their size */

static const ZydisDecodedOperand *read_memory(const struct decoded *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count_visible; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    d->operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM &&
		    (d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
			return &d->operands[i];
	return NULL;
}

static bool same_operand(const struct memory_operand *a, const struct memory_operand *b)
{
	return a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       a->displacement == b->displacement && a->segment == b->segment &&
	       a->fixed == b->fixed && a->address == b->address;
}

static uint32_t registers_written(const struct decoded *d)
{
	uint32_t mask = 0;

	for (unsigned int i = 0; i < d->instruction.operand_count; i++) {
		const ZydisDecodedOperand *operand = &d->operands[i];
		int number = operand->type == ZYDIS_OPERAND_TYPE_REGISTER
				     ? register_number(operand->reg.value)
				     : NO_REGISTER;

		if (number >= 0 && number < REGISTERS_MAX &&
		    (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			mask |= 1u << number;
	}
	return mask;
}

static uint32_t registers_of(const struct memory_operand *operand)
{
	uint32_t mask = 0;

	if (operand->base >= 0 && operand->base < REGISTERS_MAX)
		mask |= 1u << operand->base;
	if (operand->index >= 0 && operand->index < REGISTERS_MAX)
		mask |= 1u << operand->index;
	return operand->fixed ? 0 : mask;
}

/* The value was in this register before. One that is not followed becomes none. */
static void move_to(struct chase *chase, ZydisRegister reg)
{
	int number = register_number(reg);

	chase->reg = register_of_number(number);
	if (number >= 0 && number < REGISTERS_MAX &&
	    !((chase->written | chase->moved) & (1u << number)))
		chase->ret->through |= 1u << number;
}

static void end_at(struct chase *chase, const struct decoded *d, enum origin_kind kind)
{
	struct origin *ret = chase->ret;

	ret->kind = kind;
	ret->at = d->address;
	ret->reg = register_number(chase->reg);
	decoded_print(d, ret->text, sizeof(ret->text));
}

/* add rax, 16; sub rax, 16; inc rax */
static bool adds_constant(const struct decoded *d, uint64_t *ret)
{
	int reg = d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER
			  ? register_number(d->operands[0].reg.value)
			  : NO_REGISTER;
	bool constant = d->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	if (reg < 0 || reg >= REGISTERS_MAX || d->instruction.operand_width != 64)
		return false;
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		*ret = d->operands[1].imm.value.u;
		return constant;
	case ZYDIS_MNEMONIC_SUB:
		*ret = -d->operands[1].imm.value.u;
		return constant;
	case ZYDIS_MNEMONIC_INC:
		*ret = 1;
		return true;
	case ZYDIS_MNEMONIC_DEC:
		*ret = (uint64_t)-1;
		return true;
	default:
		return false;
	}
}

/* The address that `from` meant at `d`: a pointer that has only been moved on since, by constants,
 * is moved back. */
static bool address_then(struct chase *chase, const struct decoded *d, uint32_t used)
{
	struct registers then;

	if (!chase->trap->registers || (used & (chase->written | registers_written(d))))
		return false;
	then = *chase->trap->registers;
	for (unsigned int i = 0; i < REGISTERS_MAX; i++)
		if (chase->moved & 1u << i)
			then.value[i] -= chase->moves[i];
	return memory_operand_address(&chase->ret->from, &then, &chase->ret->from_address);
}

/* Registers that the instruction changed, for what was followed back until now. */
static void note_written(struct chase *chase, const struct decoded *d)
{
	uint64_t by;
	int reg;

	if (!adds_constant(d, &by)) {
		chase->written |= registers_written(d);
		return;
	}
	reg = register_number(d->operands[0].reg.value);
	chase->moved |= 1u << reg;
	chase->moves[reg] += by;
}

/* `from`: which registers of it still hold what they held, and what that means. */
static void tell_operand(struct chase *chase, const struct decoded *d,
			 const ZydisDecodedOperand *operand)
{
	struct origin *ret = chase->ret;
	uint32_t used;

	operand_take(d, operand, &ret->from);
	used = registers_of(&ret->from);
	/* mov rax, [rax+8] has overwritten its own home. */
	ret->from_kept = used & ~(chase->written | chase->moved | registers_written(d));
	ret->from_known = address_then(chase, d, used);
}

/* A slot of the frame: addressed by the stack or frame pointer and nothing else. */
static bool is_slot(const struct memory_operand *operand)
{
	return (operand->base == X86_64_RSP || operand->base == X86_64_RBP) &&
	       operand->index == NO_REGISTER && operand->segment == NO_REGISTER;
}

static bool is_copy(ZydisMnemonic mnemonic)
{
	static const ZydisMnemonic copies[] = {
		ZYDIS_MNEMONIC_MOV,	  ZYDIS_MNEMONIC_MOVZX,	    ZYDIS_MNEMONIC_MOVSX,
		ZYDIS_MNEMONIC_MOVSXD,	  ZYDIS_MNEMONIC_MOVAPS,    ZYDIS_MNEMONIC_MOVAPD,
		ZYDIS_MNEMONIC_MOVUPS,	  ZYDIS_MNEMONIC_MOVUPD,    ZYDIS_MNEMONIC_MOVDQA,
		ZYDIS_MNEMONIC_MOVDQU,	  ZYDIS_MNEMONIC_MOVQ,	    ZYDIS_MNEMONIC_MOVD,
		ZYDIS_MNEMONIC_MOVSS,	  ZYDIS_MNEMONIC_MOVSD,	    ZYDIS_MNEMONIC_LDDQU,
		ZYDIS_MNEMONIC_VMOVAPS,	  ZYDIS_MNEMONIC_VMOVAPD,   ZYDIS_MNEMONIC_VMOVUPS,
		ZYDIS_MNEMONIC_VMOVUPD,	  ZYDIS_MNEMONIC_VMOVDQA,   ZYDIS_MNEMONIC_VMOVDQA32,
		ZYDIS_MNEMONIC_VMOVDQA64, ZYDIS_MNEMONIC_VMOVDQU,   ZYDIS_MNEMONIC_VMOVDQU8,
		ZYDIS_MNEMONIC_VMOVDQU16, ZYDIS_MNEMONIC_VMOVDQU32, ZYDIS_MNEMONIC_VMOVDQU64,
		ZYDIS_MNEMONIC_VMOVQ,	  ZYDIS_MNEMONIC_VMOVD,	    ZYDIS_MNEMONIC_VMOVSS,
		ZYDIS_MNEMONIC_VMOVSD,
	};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		if (copies[i] == mnemonic)
			return true;
	return false;
}

/* xor eax, eax and sub eax, eax */
static bool is_zeroing(const struct decoded *d)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VPXORD:
	case ZYDIS_MNEMONIC_VPXORQ:
		break;
	default:
		return false;
	}
	for (unsigned int i = 1; i < d->instruction.operand_count_visible; i++)
		if (d->operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    d->operands[i].reg.value !=
			    d->operands[d->instruction.operand_count_visible - 1].reg.value)
			return false;
	return d->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (d->instruction.operand_count_visible > 2 ||
		d->operands[0].reg.value == d->operands[1].reg.value);
}

/* The register a call gives its result in, and those it leaves alone. True when the walk ends. */
static bool at_call(struct chase *chase, const struct decoded *d)
{
	int number = register_number(chase->reg);

	if (number == X86_64_RAX || number == VECTOR_REGISTER) {
		end_at(chase, d, ORIGIN_CALL);
		return true;
	}
	/* What the caller keeps in its frame stays as well; what it passes there may not. */
	if (chase->reg == ZYDIS_REGISTER_NONE || (number >= 0 && number < REGISTERS_MAX &&
						  (arch_native()->callee_saved & (1u << number)))) {
		chase->written |= ~arch_native()->callee_saved & ~(1u << X86_64_RSP);
		return false;
	}
	return true;
}

/* While the value is in a slot: the instruction that put it there. True when the walk ends. */
static bool step_slot(struct chase *chase, const struct decoded *d)
{
	struct store store;

	if (registers_written(d) & registers_of(&chase->slot))
		return true; /* the slot has another name before this */
	if (!store_take(d, &store) || !same_operand(&store.to, &chase->slot))
		return false;
	if (!is_copy(d->instruction.mnemonic))
		return true; /* changed in place: the load is the last that is sure */
	if (store.source == SOURCE_IMMEDIATE) {
		end_at(chase, d, ORIGIN_IMMEDIATE);
		chase->ret->immediate = store.immediate;
		return true;
	}
	move_to(chase, register_of_number(store.source_register));
	return chase->reg == ZYDIS_REGISTER_NONE;
}

/* Does the instruction jump to somewhere after `from`, up to `to`? */
static bool jumps_between(const struct decoded *d, uint64_t from, uint64_t to)
{
	ZyanU64 target;

	return (d->instruction.meta.category == ZYDIS_CATEGORY_COND_BR ||
		d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
	       d->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&d->instruction, &d->operands[0], d->address,
						     &target)) &&
	       target > from && target <= to;
}

static bool is_joined(const struct chase *chase, uint64_t from, uint64_t to)
{
	struct decoded d;

	for (size_t i = 0; i < chase->count; i++)
		if (decoded_at(chase->code, chase->path[i], &d) && jumps_between(&d, from, to))
			return true;
	for (uint64_t at = to; at - to < JOIN_BYTES && decoded_at(chase->code, at, &d);
	     at += d.instruction.length)
		if (jumps_between(&d, from, to))
			return true;
	return false;
}

/* Was the slot that was loaded from left alone since? */
static void note_slot(struct chase *chase, const struct decoded *load)
{
	struct origin *ret = chase->ret;
	struct decoded d;
	struct store store;
	uint64_t at = load->address;

	if (ret->slot_known || (ret->changed && !ret->shifted) || !ret->from_known ||
	    ret->width != 8 || at >= chase->trap->rip)
		return;
	for (; at < chase->trap->rip; at += d.instruction.length)
		if (!decoded_at(chase->code, at, &d) ||
		    (store_take(&d, &store) && same_operand(&store.to, &ret->from)))
			return;
	ret->slot_known = true;
	ret->slot_address = ret->from_address;
	ret->slot_added = ret->added;
	ret->slot_joined = is_joined(chase, load->address, chase->trap->rip);
}

/* add rax, 16 and the like can be undone. */
static void note_change(struct origin *ret, const struct decoded *d)
{
	bool shifted = !ret->changed || ret->shifted;
	uint64_t by = 0;

	ret->changed = true;
	ret->shifted = adds_constant(d, &by) && shifted;
	ret->added += by;
}

/* add rax, rdx: which of the two was the pointer? The other one, if what was in rax is the smaller
 * number, an index, and rdx still holds what it added. */
static bool leads_aside(const struct chase *chase, const struct decoded *d, int *ret)
{
	const struct registers *now = chase->trap->registers;
	int source = d->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER
			     ? register_number(d->operands[1].reg.value)
			     : NO_REGISTER;
	uint64_t before;

	if (!chase->value_known || d->instruction.mnemonic != ZYDIS_MNEMONIC_ADD ||
	    d->instruction.operand_width != 64 || source < 0 || source >= REGISTERS_MAX || !now ||
	    !(now->known & 1u << source) || ((chase->written | chase->moved) & 1u << source))
		return false;
	before = chase->value - now->value[source];
	*ret = source;
	return now->value[source] >> INDEX_BITS != 0 &&
	       before + (1ull << INDEX_BITS) < 2ull << INDEX_BITS;
}

/* The instruction loads the register. True when the walk ends. */
static bool step_load(struct chase *chase, const struct decoded *d,
		      const ZydisDecodedOperand *memory, bool copy)
{
	chase->ret->changed |= !copy;
	chase->ret->shifted &= copy;
	end_at(chase, d, ORIGIN_LOAD);
	tell_operand(chase, d, memory);
	chase->ret->width = memory->size / 8;
	if (!copy || !is_slot(&chase->ret->from))
		return true;
	note_slot(chase, d);
	chase->slot = chase->ret->from;
	chase->reg = ZYDIS_REGISTER_NONE;
	return false;
}

/* cltq: the same number, wider. */
static bool is_widening(ZydisMnemonic mnemonic)
{
	return mnemonic == ZYDIS_MNEMONIC_CDQE || mnemonic == ZYDIS_MNEMONIC_CWDE;
}

/* The instruction writes the register. True when the walk ends. */
static bool step_register(struct chase *chase, const struct decoded *d)
{
	const ZydisDecodedOperand *memory = read_memory(d), *source = &d->operands[1];
	bool copy = is_copy(d->instruction.mnemonic);
	int source_number;

	if (is_widening(d->instruction.mnemonic))
		return false;
	/* Only the first operand is a result that is understood here; xchg and the like are not. */
	if (d->operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    register_whole(d->operands[0].reg.value) != chase->reg)
		return true;
	if (memory && (copy || d->instruction.operand_count_visible >= 2))
		return step_load(chase, d, memory, copy);
	if (is_zeroing(d) || (copy && source->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)) {
		end_at(chase, d, ORIGIN_IMMEDIATE);
		chase->ret->immediate = is_zeroing(d) ? 0 : source->imm.value.u;
		return true;
	}
	if (copy && source->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		move_to(chase, source->reg.value);
		return chase->reg == ZYDIS_REGISTER_NONE;
	}
	if (d->instruction.mnemonic == ZYDIS_MNEMONIC_LEA) {
		end_at(chase, d, ORIGIN_ADDRESS);
		tell_operand(chase, d, source);
		return true;
	}
	if (leads_aside(chase, d, &source_number)) {
		chase->ret->changed = chase->ret->shifted = true;
		chase->ret->added += chase->value - chase->trap->registers->value[source_number];
		chase->value_known = false;
		move_to(chase, register_of_number(source_number));
		return chase->reg == ZYDIS_REGISTER_NONE;
	}
	chase->value_known = false;
	/* add, and, shl …: the value was in the register before, too. */
	if (d->operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
		note_change(chase->ret, d);
		return false;
	}
	return true;
}

/* mov rbx, rdi while rdi is followed: rbx holds the value as well, unless it was changed since. */
static void note_copy(struct chase *chase, const struct decoded *d)
{
	int copy;

	if (d->instruction.mnemonic != ZYDIS_MNEMONIC_MOV || d->instruction.operand_width != 64 ||
	    d->operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    d->operands[1].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    d->operands[1].reg.value != chase->reg)
		return;
	copy = register_number(d->operands[0].reg.value);
	if (copy >= 0 && copy < REGISTERS_MAX &&
	    !((chase->written | chase->moved) & (1u << copy)) && !chase->ret->changed)
		chase->ret->through |= 1u << copy;
}

static bool step(struct chase *chase, const struct decoded *d)
{
	bool ends = false;

	switch (d->instruction.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return at_call(chase, d);
	case ZYDIS_CATEGORY_SYSCALL:
		if (register_number(chase->reg) == X86_64_RAX) {
			end_at(chase, d, ORIGIN_CALL);
			return true;
		}
		break;
	default:
		break;
	}
	if (chase->reg == ZYDIS_REGISTER_NONE)
		ends = step_slot(chase, d);
	else if (decoded_writes(d, chase->reg))
		ends = step_register(chase, d);
	else
		note_copy(chase, d);
	note_written(chase, d);
	return ends;
}

/* Nobody comes from this instruction to the one behind it. */
static bool leaves(const struct decoded *d)
{
	return d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       d->instruction.meta.category == ZYDIS_CATEGORY_RET;
}

static bool jumps_to(const struct decoded *d, uint64_t to)
{
	return jumps_between(d, to - 1, to);
}

/* The one jump of the function that leads to `to`; false when there is none, or more than one. */
static bool find_jump(const struct chase *chase, uint64_t to, uint64_t *ret)
{
	unsigned int found = 0;
	struct decoded d;

	if (!chase->ret->certain)
		return false;
	for (uint64_t at = chase->trap->start_hint; decoded_at(chase->code, at, &d);
	     at += d.instruction.length) {
		if (!jumps_to(&d, to))
			continue;
		*ret = at;
		found++;
	}
	return found == 1;
}

/* The same of a piece that begins at `from`, where the compiler may have put padding before it. */
static bool find_jump_into(const struct chase *chase, uint64_t from, uint64_t end, uint64_t *ret)
{
	struct decoded d;

	for (uint64_t at = from; at <= end; at += d.instruction.length) {
		if (find_jump(chase, at, ret))
			return true;
		if (!decoded_at(chase->code, at, &d) ||
		    d.instruction.mnemonic != ZYDIS_MNEMONIC_NOP)
			return false;
	}
	return false;
}

/* Back through the instructions before `at`, until one tells. True when that is all. */
static bool walk(struct chase *chase, uint64_t at)
{
	struct before how;
	bool ended = false;

	chase->end = at;
	if (at == chase->trap->start_hint) { /* nothing before it */
		chase->ret->certain = true;
		chase->count = 0;
		return false;
	}
	chase->count = code_before(chase->code, at, chase->trap->start_hint, chase->path,
				   BACK_INSTRUCTIONS, &how);
	chase->ret->certain = how.certain;
	for (size_t i = 0; i < chase->count && !ended; i++) {
		uint64_t behind = i > 0 ? chase->path[i - 1] : at, jump;
		struct decoded d;

		if (!decoded_at(chase->code, chase->path[i], &d))
			return true;
		if (!leaves(&d)) {
			ended = step(chase, &d);
			continue;
		}
		/* A jump leads here: on from there, if there is only one. */
		if (chase->jumps++ == BACK_JUMPS || !find_jump_into(chase, behind, at, &jump))
			return true;
		chase->joined |= is_joined(chase, behind, at);
		return walk(chase, jump);
	}
	return ended;
}

void arch_value_origin(const struct trap *trap, uint64_t at, int reg, struct origin *ret)
{
	struct chase chase = { .trap = trap, .reg = register_of_number(reg), .ret = ret };
	struct code code;
	bool ended;

	*ret = (struct origin){ .reg = reg };
	if (chase.reg == ZYDIS_REGISTER_NONE ||
	    !code_init(&code, trap->code, trap->code_len, trap->code_address))
		return;
	chase.code = &code;
	/* The registers are those of now: only then is the value known. */
	if (at == trap->rip && trap->registers && reg < REGISTERS_MAX &&
	    (trap->registers->known & 1u << reg)) {
		chase.value_known = true;
		chase.value = trap->registers->value[reg];
	}
	ended = walk(&chase, at);
	if (!ended && ret->certain &&
	    (chase.count == 0 || chase.path[chase.count - 1] == trap->start_hint) &&
	    chase.reg != ZYDIS_REGISTER_NONE)
		*ret = (struct origin){ .kind = ORIGIN_ENTRY,
					.at = trap->start_hint,
					.reg = register_number(chase.reg),
					.through = ret->through,
					.changed = ret->changed,
					.shifted = ret->shifted,
					.slot_known = ret->slot_known,
					.slot_address = ret->slot_address,
					.slot_added = ret->slot_added,
					.slot_joined = ret->slot_joined,
					.added = ret->added,
					.certain = true };
	if (ret->kind != ORIGIN_UNKNOWN)
		ret->joined = chase.joined || is_joined(&chase, ret->at, chase.end);
}
