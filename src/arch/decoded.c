#include "arch/decoded.h"

#include "arch/x86_64_cpu.h"

/* How far back ways through unknown code are looked at. */
#define WINDOW 256u
/* No function is so long that following it from its start would take noticeable time. */
#define FOLLOW_BYTES (1u << 20)

bool code_init(struct code *code, const uint8_t *bytes, size_t len, uint64_t address)
{
	*code = (struct code){ .bytes = bytes, .len = len, .address = address };
	return ZYAN_SUCCESS(
		ZydisDecoderInit(&code->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

bool decoded_at(const struct code *code, uint64_t at, struct decoded *ret)
{
	uint64_t offset = at - code->address;

	if (at < code->address || offset >= code->len)
		return false;
	ret->address = at;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&code->decoder, code->bytes + offset,
						   code->len - offset, &ret->instruction,
						   ret->operands));
}

/* Only its length, 0 for none: cheaper than all of it. */
static unsigned int length_at(const struct code *code, uint64_t at)
{
	uint64_t offset = at - code->address;
	ZydisDecodedInstruction instruction;
	ZydisDecoderContext context;

	if (at < code->address || offset >= code->len ||
	    ZYAN_FAILED(ZydisDecoderDecodeInstruction(&code->decoder, &context,
						      code->bytes + offset, code->len - offset,
						      &instruction)))
		return 0;
	return instruction.length;
}

void decoded_print(const struct decoded *d, char *text, size_t room)
{
	ZydisFormatter formatter;

	text[0] = '\0';
	if (ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)))
		(void)ZydisFormatterFormatInstruction(&formatter, &d->instruction, d->operands,
						      d->instruction.operand_count_visible, text,
						      room, d->address, NULL);
}

ZydisRegister register_whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

bool decoded_writes(const struct decoded *d, ZydisRegister reg)
{
	for (unsigned int i = 0; i < d->instruction.operand_count; i++)
		if (d->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (d->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    register_whole(d->operands[i].reg.value) == reg)
			return true;
	return false;
}

/* In the order of the CPU's own numbers, as Zydis has them. */
static const uint8_t general[] = {
	X86_64_RAX, X86_64_RCX, X86_64_RDX, X86_64_RBX, X86_64_RSP, X86_64_RBP,
	X86_64_RSI, X86_64_RDI, X86_64_R8,  X86_64_R9,	X86_64_R10, X86_64_R11,
	X86_64_R12, X86_64_R13, X86_64_R14, X86_64_R15,
};

int register_number(ZydisRegister reg)
{
	ZydisRegister whole;

	if (reg == ZYDIS_REGISTER_NONE)
		return NO_REGISTER;
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		return X86_64_RIP;
	if (reg == ZYDIS_REGISTER_FS)
		return X86_64_FS_BASE;
	if (reg == ZYDIS_REGISTER_GS)
		return X86_64_GS_BASE;
	whole = register_whole(reg);
	if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
		return general[whole - ZYDIS_REGISTER_RAX];
	if (whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31)
		return VECTOR_REGISTER + (int)(whole - ZYDIS_REGISTER_ZMM0);
	return NO_REGISTER;
}

ZydisRegister register_of_number(int number)
{
	for (unsigned int i = 0; i < sizeof(general); i++)
		if (general[i] == number)
			return (ZydisRegister)(ZYDIS_REGISTER_RAX + i);
	if (number >= VECTOR_REGISTER && number < VECTOR_REGISTER + 32)
		return (ZydisRegister)(ZYDIS_REGISTER_ZMM0 + (number - VECTOR_REGISTER));
	return ZYDIS_REGISTER_NONE;
}

static void reverse(uint64_t *items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t swap = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = swap;
	}
}

/* Forward from a place that is known; keeps the last `room` on the way. */
static size_t follow(const struct code *code, uint64_t from, uint64_t end, uint64_t *ret,
		     size_t room)
{
	size_t seen = 0, kept, turn;
	uint64_t at = from;

	if (end - from > FOLLOW_BYTES)
		return 0;
	while (at < end) {
		unsigned int length = length_at(code, at);

		if (length == 0)
			return 0;
		ret[seen++ % room] = at;
		at += length;
	}
	if (at != end)
		return 0;
	/* The ring starts anywhere: with both parts turned round, the newest comes first. */
	kept = seen < room ? seen : room;
	turn = seen > room ? seen % room : 0;
	reverse(ret, turn);
	reverse(ret + turn, kept - turn);
	return kept;
}

/* Where the instruction before `at` begins, by the way that most lead along; `at`: there is none.
 */
static uint64_t likeliest_before(const uint8_t *length, const uint32_t *ways, uint64_t at)
{
	uint64_t best = at;

	for (uint64_t back = 1; back <= ZYDIS_MAX_INSTRUCTION_LENGTH && back <= at; back++)
		if (length[at - back] == back && (best == at || ways[at - back] >= ways[best]))
			best = at - back;
	return best;
}

size_t code_before(const struct code *code, uint64_t end, uint64_t hint, uint64_t *ret, size_t room,
		   struct before *ret_how)
{
	uint8_t length[WINDOW] = { 0 };	   /* of the instruction at `from` + i; 0: none */
	uint32_t ways[WINDOW + 1] = { 0 }; /* how many lead through it */
	uint64_t from;
	size_t count = 0;

	*ret_how = (struct before){ 0 };
	if (room == 0 || end <= code->address || end - code->address > code->len)
		return 0;
	if (hint >= code->address && hint < end) {
		count = follow(code, hint, end, ret, room);
		if (count > 0) {
			*ret_how = (struct before){ .certain = true, .share = 100 };
			return count;
		}
	}
	from = end - code->address > WINDOW ? end - WINDOW : code->address;
	for (uint64_t i = 0; i < end - from; i++) {
		unsigned int len = length_at(code, from + i);

		ways[i]++;
		if (len == 0 || i + len > end - from)
			continue;
		length[i] = (uint8_t)len;
		ways[i + len] += ways[i];
	}
	for (uint64_t at = end - from; at > 0 && count < room;) {
		uint64_t best = likeliest_before(length, ways, at);

		if (best == at)
			break;
		if (count == 0)
			ret_how->share = ways[best] * 100 / (ways[at] ? ways[at] : 1);
		ret[count++] = from + best;
		at = best;
	}
	return count;
}
