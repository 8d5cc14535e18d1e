#include "arch/linear_sweep.h"

#include "arch/store_inside.h"
#include "arch/x86_64_cpu.h"

/* No store is wider, but for those whose width the code does not tell. */
#define WIDEST 64

/* So many zeros are no code, though they would decode as stores to [rax]. */
#define ZEROS 16

/* One instruction on the way; operands are decoded when the cheap questions leave it in. */
struct sweep_step {
	struct decoded d;
	ZydisDecoderContext context;
	bool has_memory; /* an operand with an address of its own in the code */
	bool has_operands;
};

static bool take_operands(const struct code *code, struct sweep_step *step)
{
	if (!step->has_operands)
		step->has_operands = ZYAN_SUCCESS(ZydisDecoderDecodeOperands(
			&code->decoder, &step->context, &step->d.instruction, step->d.operands,
			step->d.instruction.operand_count));
	return step->has_operands;
}

static void report(struct sweep *sweep, enum scan_match match, const struct sweep_step *step)
{
	struct sweep_hit hit = { .match = match };

	hit.store.at = step->d.address;
	hit.store.length = step->d.instruction.length;
	hit.store.to.base = hit.store.to.index = hit.store.to.segment = NO_REGISTER;
	decoded_print(&step->d, hit.store.text, sizeof(hit.store.text));
	sweep->found(sweep->ctx, &hit);
}

/* Instructions that store without naming the memory. */
static bool stores_unnamed(const struct scan_query *query,
			   const ZydisDecodedInstruction *instruction)
{
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_CALL:
		return query->stack;
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_CLZERO:
	case ZYDIS_CATEGORY_MOVDIR:
		return true;
	default:
		return instruction->mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU ||
		       instruction->mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU ||
		       instruction->mnemonic == ZYDIS_MNEMONIC_MASKMOVQ;
	}
}

/* What nearly all instructions fail, told without their operands. */
static bool may_store(const struct scan_query *query, const struct sweep_step *step)
{
	const ZydisDecodedInstruction *instruction = &step->d.instruction;
	int64_t displacement = instruction->raw.disp.value;

	if (!step->has_memory)
		return stores_unnamed(query, instruction);
	/* The displacement of EVEX is scaled by what only the operands tell. */
	if (instruction->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
		return true;
	if (displacement >= query->offset + (int64_t)(query->width ? query->width : 1))
		return false;
	return displacement > query->offset - WIDEST ||
	       instruction->meta.category == ZYDIS_CATEGORY_BITBYTE ||
	       instruction->meta.category == ZYDIS_CATEGORY_X87_ALU ||
	       instruction->meta.category == ZYDIS_CATEGORY_XSAVE ||
	       instruction->meta.category == ZYDIS_CATEGORY_XSAVEOPT ||
	       instruction->mnemonic == ZYDIS_MNEMONIC_FXSAVE ||
	       instruction->mnemonic == ZYDIS_MNEMONIC_FXSAVE64;
}

static bool base_allowed(struct sweep *sweep, const struct store *store)
{
	const struct scan_query *query = sweep->query;
	int base = store->to.segment != NO_REGISTER ? store->to.segment : store->to.base;

	if (store->to.fixed)
		return false;
	if (query->registers)
		return base != NO_REGISTER && (query->registers & (1u << base));
	if (store->to.segment != NO_REGISTER)
		return false; /* thread-local variables are no fields */
	if (base == X86_64_RSP && !query->stack) {
		sweep->stack_left_out++;
		return false;
	}
	return true;
}

static bool match_field(struct sweep *sweep, const struct code *code, struct sweep_step *step)
{
	const struct scan_query *query = sweep->query;
	struct sweep_hit hit = { .match = SCAN_STORE };

	if (!may_store(query, step) || !take_operands(code, step) ||
	    !store_take(&step->d, &hit.store))
		return false;
	/* A push writes wherever the stack pointer is: it has no displacement to compare. */
	if (hit.store.kind == STORE_PUSH) {
		if (!query->stack)
			return false;
		hit.fit = SCAN_FIT_ANY;
	} else if (!store_fit(query->offset, query->width, hit.store.to.displacement,
			      hit.store.width, &hit.fit) ||
		   !base_allowed(sweep, &hit.store)) {
		return false;
	}
	sweep->found(sweep->ctx, &hit);
	return true;
}

static bool is_fixed(const struct sweep_step *step)
{
	const ZydisDecodedInstruction *instruction = &step->d.instruction;

	if (!step->has_memory)
		return false;
	if (!(instruction->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return true; /* mov [moffs], eax */
	if (instruction->raw.modrm.mod != 0)
		return false;
	return instruction->raw.modrm.rm == 5 ||
	       (instruction->raw.modrm.rm == 4 && instruction->raw.sib.base == 5);
}

static bool overlaps(const struct scan_query *query, uint64_t low, uint64_t bytes)
{
	return low < query->high && query->low < low + (bytes ? bytes : 1);
}

/* The address that an operand begins with: its own, or in code that is not position-independent
 * that of a table, [rcx*8 + table]. */
static bool fixed_part(const struct memory_operand *operand, uint64_t *ret)
{
	*ret = operand->fixed ? operand->address : (uint64_t)operand->displacement;
	return operand->fixed || (operand->base == NO_REGISTER && operand->segment == NO_REGISTER);
}

static bool match_store_to(struct sweep *sweep, const struct sweep_step *step)
{
	const struct scan_query *query = sweep->query;
	struct sweep_hit hit = { .match = SCAN_STORE };
	uint64_t address;

	if (!store_take(&step->d, &hit.store) || !fixed_part(&hit.store.to, &address) ||
	    !overlaps(query, address, hit.store.width))
		return false;
	(void)store_fit(0, query->high - query->low, (int64_t)(address - query->low),
			hit.store.width, &hit.fit);
	if (!hit.store.to.fixed)
		hit.fit = SCAN_FIT_ANY; /* the index tells where */
	sweep->found(sweep->ctx, &hit);
	return true;
}

static bool has_operand_at(const struct scan_query *query, const struct sweep_step *step)
{
	for (unsigned int i = 0; i < step->d.instruction.operand_count_visible; i++) {
		const ZydisDecodedOperand *operand = &step->d.operands[i];
		struct memory_operand memory;
		uint64_t address;

		if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		operand_take(&step->d, operand, &memory);
		if (fixed_part(&memory, &address) && overlaps(query, address, operand->size / 8))
			return true;
	}
	return false;
}

/* As an immediate, or as the target of a jump or call. */
static bool has_immediate_in(const struct scan_query *query, const struct sweep_step *step)
{
	const ZydisDecodedInstruction *instruction = &step->d.instruction;

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t value = instruction->raw.imm[i].value.u;

		if (instruction->raw.imm[i].is_relative)
			value += step->d.address + instruction->length;
		else if (instruction->raw.imm[i].size < 32)
			continue;
		if (instruction->raw.imm[i].size > 0 && value >= query->low && value < query->high)
			return true;
	}
	return false;
}

static bool match_address(struct sweep *sweep, const struct code *code, struct sweep_step *step)
{
	bool fixed = is_fixed(step) && take_operands(code, step);

	if (fixed && match_store_to(sweep, step))
		return true;
	if (!(fixed && has_operand_at(sweep->query, step)) && !has_immediate_in(sweep->query, step))
		return false;
	(void)take_operands(code, step);
	report(sweep, SCAN_REFERENCE, step);
	return true;
}

static bool match_value(struct sweep *sweep, const struct code *code, struct sweep_step *step)
{
	const ZydisDecodedInstruction *instruction = &step->d.instruction;
	uint64_t asked = sweep->query->value;

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t value = instruction->raw.imm[i].value.u, mask;

		if (instruction->raw.imm[i].size == 0 || instruction->raw.imm[i].is_relative)
			continue;
		/* and byte [rbx], 0xfe and its like: the same value, written with and without the
		 * sign's extension. */
		if (((asked ^ value) & 0xff) != 0 || !take_operands(code, step))
			continue;
		mask = step->d.operands[0].size >= 64 || step->d.operands[0].size == 0
			       ? UINT64_MAX
			       : (UINT64_C(1) << step->d.operands[0].size) - 1;
		if (value != asked && (value & mask) != asked)
			continue;
		report(sweep, SCAN_IMMEDIATE, step);
		return true;
	}
	return false;
}

static void match(struct sweep *sweep, const struct code *code, struct sweep_step *step)
{
	const struct scan_query *query = sweep->query;
	bool found = false;

	if (query->store)
		found = match_field(sweep, code, step);
	if (!found && query->low < query->high)
		found = match_address(sweep, code, step);
	if (!found && query->has_value)
		(void)match_value(sweep, code, step);
}

static unsigned int decode_step(const struct code *code, uint64_t offset, size_t room,
				struct sweep_step *ret)
{
	ZydisDecodedInstruction *instruction = &ret->d.instruction;

	ret->has_operands = false;
	ret->d.address = code->address + offset;
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&code->decoder, &ret->context,
						      code->bytes + offset, room, instruction)))
		return 0;
	ret->has_memory = (instruction->attributes & ZYDIS_ATTRIB_HAS_MODRM)
				  ? instruction->raw.modrm.mod != 3
				  : instruction->raw.disp.size > 0;
	return instruction->length;
}

/* How many zeros begin here; 0 when they are few enough to be a part of instructions. */
static size_t zeros_at(const uint8_t *bytes, size_t len)
{
	size_t count = 0;

	while (count < len && bytes[count] == 0)
		count++;
	return count >= ZEROS ? count : 0;
}

size_t sweep_code(struct sweep *sweep, const uint8_t *bytes, size_t len, uint64_t address,
		  const uint64_t *starts, size_t start_count)
{
	struct sweep_step step;
	struct code code;
	uint64_t at = 0;
	size_t next = 0;

	if (!code_init(&code, bytes, len, address))
		return len;
	while (at < len && (sweep->stop == 0 || address + at < sweep->stop)) {
		uint64_t room = len - at;
		unsigned int length;
		size_t passed;

		while (next < start_count && starts[next] <= address + at)
			next++;
		/* No instruction reaches into the next function. */
		if (next < start_count && starts[next] - (address + at) < room)
			room = starts[next] - (address + at);
		passed = zeros_at(bytes + at, room);
		length = passed ? 0 : decode_step(&code, at, room, &step);
		if (length == 0) {
			passed += passed == 0;
			sweep->undecoded += passed;
			at += passed;
			continue;
		}
		sweep->instructions++;
		match(sweep, &code, &step);
		at += length;
	}
	return at;
}
