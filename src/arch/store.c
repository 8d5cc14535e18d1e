#include "arch/store.h"

#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

/* The trap of a repeated store comes up to 128 bytes late (measured), and only then is looked at.
 */
#define REPEATED_LATE 256u
#define DIRECTION_FLAG 0x400u

const char *store_kind_name(enum store_kind kind)
{
	static const char *const names[] = {
		[STORE_PLAIN] = "plain",	 [STORE_MODIFY] = "modify",
		[STORE_REPEATED] = "repeated",	 [STORE_MASKED] = "masked",
		[STORE_SCATTERED] = "scattered", [STORE_PUSH] = "push",
		[STORE_STATE] = "state",
	};

	return names[kind];
}

void operand_take(const struct decoded *d, const ZydisDecodedOperand *operand,
		  struct memory_operand *ret)
{
	ZyanU64 address;

	*ret = (struct memory_operand){
		.base = register_number(operand->mem.base),
		.index = register_number(operand->mem.index),
		.scale = operand->mem.index != ZYDIS_REGISTER_NONE ? operand->mem.scale : 0,
		.displacement = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0,
		.segment = NO_REGISTER,
	};
	if (operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS)
		ret->segment = register_number(operand->mem.segment);
	if (ret->segment == NO_REGISTER && ret->index == NO_REGISTER &&
	    (ret->base == NO_REGISTER || ret->base == X86_64_RIP) &&
	    ZYAN_SUCCESS(
		    ZydisCalcAbsoluteAddress(&d->instruction, operand, d->address, &address))) {
		ret->fixed = true;
		ret->address = address;
	}
}

static bool is_memory(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
	       operand->mem.type != ZYDIS_MEMOP_TYPE_MIB;
}

static const ZydisDecodedOperand *written_memory(const struct decoded *d)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (is_memory(&d->operands[i]) &&
		    (d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			return &d->operands[i];
	return NULL;
}

static bool is_repeated(const ZydisDecodedInstruction *instruction)
{
	return (instruction->attributes &
		(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

static bool is_masked(const struct decoded *d)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return true;
	default:
		return d->instruction.meta.category == ZYDIS_CATEGORY_COMPRESS ||
		       (d->instruction.avx.mask.mode != ZYDIS_MASK_MODE_INVALID &&
			d->instruction.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED);
	}
}

static bool is_state(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->mnemonic) {
	case ZYDIS_MNEMONIC_FXSAVE:
	case ZYDIS_MNEMONIC_FXSAVE64:
	case ZYDIS_MNEMONIC_FNSAVE:
	case ZYDIS_MNEMONIC_FNSTENV:
		return true;
	default:
		return instruction->meta.category == ZYDIS_CATEGORY_XSAVE ||
		       instruction->meta.category == ZYDIS_CATEGORY_XSAVEOPT;
	}
}

static enum store_kind kind_of(const struct decoded *d, const ZydisDecodedOperand *to)
{
	const ZydisDecodedInstruction *instruction = &d->instruction;

	if (to->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
		return STORE_SCATTERED;
	if (instruction->meta.category == ZYDIS_CATEGORY_STRINGOP && is_repeated(instruction))
		return STORE_REPEATED;
	if (to->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	    register_number(to->mem.base) == X86_64_RSP)
		return STORE_PUSH;
	if (is_state(instruction))
		return STORE_STATE;
	if (is_masked(d))
		return STORE_MASKED;
	if (to->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		return STORE_MODIFY;
	return STORE_PLAIN;
}

/* bts [mem], reg: the register may lead far away from the operand. */
static bool is_bit_string(const struct decoded *d)
{
	switch (d->instruction.mnemonic) {
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC:
		return d->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
	default:
		return false;
	}
}

static unsigned int width_of(const struct decoded *d, const ZydisDecodedOperand *to,
			     enum store_kind kind)
{
	if (kind == STORE_REPEATED || kind == STORE_SCATTERED || is_bit_string(d) ||
	    d->instruction.meta.category == ZYDIS_CATEGORY_XSAVE ||
	    d->instruction.meta.category == ZYDIS_CATEGORY_XSAVEOPT)
		return 0;
	return to->size / 8;
}

static bool source_from(const struct decoded *d, const ZydisDecodedOperand *operand,
			struct store *ret)
{
	if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
		return false;
	if (is_memory(operand)) {
		ret->source = SOURCE_MEMORY;
		operand_take(d, operand, &ret->from);
		return true;
	}
	if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		ret->source = SOURCE_IMMEDIATE;
		ret->immediate = operand->imm.value.u;
		return true;
	}
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    register_number(operand->reg.value) == NO_REGISTER ||
	    register_number(operand->reg.value) == X86_64_RIP)
		return false;
	ret->source = SOURCE_REGISTER;
	ret->source_register = register_number(operand->reg.value);
	return true;
}

/* The operand that is stored: a visible one, of several the last (vmaskmovps [m], mask, value);
 * of string instructions a hidden one. */
static void take_source(const struct decoded *d, const ZydisDecodedOperand *to, struct store *ret)
{
	bool found = false;

	for (unsigned int i = d->instruction.operand_count_visible; !found && i-- > 0;)
		found = &d->operands[i] != to && source_from(d, &d->operands[i], ret);
	if (d->instruction.meta.category != ZYDIS_CATEGORY_STRINGOP)
		return;
	for (unsigned int i = 0; !found && i < d->instruction.operand_count; i++)
		if (is_memory(&d->operands[i]) ||
		    register_number(d->operands[i].reg.value) == X86_64_RAX)
			found = &d->operands[i] != to && source_from(d, &d->operands[i], ret);
}

bool store_take(const struct decoded *d, struct store *ret)
{
	const ZydisDecodedOperand *to = written_memory(d);

	if (!to)
		return false;
	*ret = (struct store){
		.at = d->address,
		.length = d->instruction.length,
		.kind = kind_of(d, to),
		.locked = (d->instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0,
		.string = d->instruction.meta.category == ZYDIS_CATEGORY_STRINGOP,
		.source_register = NO_REGISTER,
	};
	ret->width = width_of(d, to, ret->kind);
	ret->element = ret->string ? to->size / 8 : 0;
	operand_take(d, to, &ret->to);
	if (ret->kind == STORE_PUSH)
		ret->to.displacement = -(int64_t)ret->width;
	ret->moves_base =
		(ret->to.base != NO_REGISTER && ret->to.base != X86_64_RIP &&
		 decoded_writes(d, register_whole(to->mem.base))) ||
		(ret->to.index != NO_REGISTER && decoded_writes(d, register_whole(to->mem.index)));
	if (ret->kind == STORE_MASKED)
		store_mask_take(d, to, &ret->mask);
	take_source(d, to, ret);
	decoded_print(d, ret->text, sizeof(ret->text));
	return true;
}

bool store_decode(const uint8_t *bytes, size_t len, uint64_t address, uint64_t at,
		  struct store *ret)
{
	struct decoded d;
	struct code code;

	return code_init(&code, bytes, len, address) && decoded_at(&code, at, &d) &&
	       store_take(&d, ret);
}

static bool register_value(const struct registers *registers, int reg, uint64_t *ret)
{
	if (reg < 0 || reg >= REGISTERS_MAX || !(registers->known & (1u << reg)))
		return false;
	*ret = registers->value[reg];
	return true;
}

bool memory_operand_address(const struct memory_operand *operand, const struct registers *registers,
			    uint64_t *ret)
{
	uint64_t base = 0, index = 0, segment = 0;

	if (operand->fixed) {
		*ret = operand->address;
		return true;
	}
	if ((operand->base != NO_REGISTER && !register_value(registers, operand->base, &base)) ||
	    (operand->index != NO_REGISTER && !register_value(registers, operand->index, &index)) ||
	    (operand->segment != NO_REGISTER &&
	     !register_value(registers, operand->segment, &segment)))
		return false;
	*ret = segment + base + index * operand->scale + (uint64_t)operand->displacement;
	return true;
}

/* rdi has moved past what was stored; which way, the direction flag tells. */
static bool string_range(const struct store *store, const struct registers *after,
			 uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t to, flags = 0, reach = store->width ? store->width : REPEATED_LATE;

	if (!register_value(after, X86_64_RDI, &to))
		return false;
	(void)register_value(after, X86_64_RFLAGS, &flags);
	if (flags & DIRECTION_FLAG) {
		/* It stands one element below the last one; of a repeated one the element's width
		 * is not known here, but at least one byte. */
		*ret_low = to + (store->width ? store->width : 1);
		*ret_high = *ret_low + reach;
		return true;
	}
	*ret_low = to > reach ? to - reach : 0;
	*ret_high = to;
	return true;
}

bool store_range_after(const struct store *store, const struct registers *after, uint64_t *ret_low,
		       uint64_t *ret_high)
{
	uint64_t low, width = store->width;

	if (store->kind == STORE_PUSH) {
		if (!register_value(after, X86_64_RSP, ret_low))
			return false;
		*ret_high = *ret_low + width;
		return true;
	}
	if (store->string)
		return string_range(store, after, ret_low, ret_high);
	if (store->moves_base || store->kind == STORE_SCATTERED ||
	    !memory_operand_address(&store->to, after, &low))
		return false;
	/* Only the beginning is known: a page is a fair guess at how far a bit string or a saved
	 * state reaches. */
	*ret_low = low;
	*ret_high = low + (width ? width : 4096);
	return *ret_high > low;
}

/* Of a repeated one, all that is left to do. */
static bool string_range_before(const struct store *store, const struct registers *before,
				uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t to, flags = 0, count = 1, element = store->element, bytes;

	if (!register_value(before, X86_64_RDI, &to) || element == 0 ||
	    (store->kind == STORE_REPEATED && !register_value(before, X86_64_RCX, &count)) ||
	    __builtin_mul_overflow(count, element, &bytes))
		return false;
	(void)register_value(before, X86_64_RFLAGS, &flags);
	*ret_low = flags & DIRECTION_FLAG ? to + element - bytes : to;
	*ret_high = *ret_low + bytes;
	return *ret_high > *ret_low;
}

bool store_range_before(const struct store *store, const struct registers *before,
			uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t low;

	if (store->string)
		return string_range_before(store, before, ret_low, ret_high);
	if (store->kind == STORE_SCATTERED || !memory_operand_address(&store->to, before, &low))
		return false;
	*ret_low = low;
	*ret_high = low + (store->width ? store->width : 4096);
	return *ret_high > low;
}
