#include "agent/arch/x86_64_store.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/arch/step.h"
#include "agent/arch/x86_64.h"

/* Register numbers as instructions have them. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

static const uint8_t greg_of[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				     REG_RSI, REG_RDI, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15 };

enum encoding { LEGACY, VEX, EVEX };

/* What stands before and around the opcode. */
struct parts {
	const uint8_t *code;
	uint32_t have, at;
	enum encoding encoding;
	bool operand16, repne, rep, rex, segment_fs, segment_other;
	bool w, r, x, b;
	uint8_t rex_at; /* where B stands: with rex, or if it is not 0 */
	uint8_t map;	/* 0: one byte; 1: 0F; 2: 0F38; 3: 0F3A; more: EVEX only */
	uint8_t opcode, vvvv, vector_length, mask;
	uint8_t modrm_at, mod, reg, rm;
};

static bool byte_take(struct parts *p, uint8_t *ret)
{
	if (p->at >= p->have || p->at >= ARCH_INSTRUCTION_MAX)
		return false;
	*ret = p->code[p->at++];
	return true;
}

/* SDM volume 2, 2.3.5 and 2.7: the payload of a vector prefix, `bytes` of it after C5, C4 or 62. */
static bool vector_prefix(struct parts *p, uint8_t first, uint8_t bytes)
{
	uint8_t payload[3] = { 0 }, last;
	uint32_t i;

	for (i = 0; i < bytes; i++)
		if (!byte_take(p, &payload[i]))
			return false;
	p->encoding = first == 0x62 ? EVEX : VEX;
	p->map = 1;
	p->r = !(payload[0] & 0x80);
	last = payload[0];
	if (bytes > 1) {
		p->x = !(payload[0] & 0x40);
		p->b = !(payload[0] & 0x20);
		p->map = payload[0] & (first == 0x62 ? 0x07 : 0x1f);
		p->w = payload[1] & 0x80;
		last = payload[1];
		p->rex_at = (uint8_t)(p->at - bytes);
	}
	p->vvvv = (uint8_t)(~last >> 3 & 15);
	p->operand16 = (last & 3) == 1;
	p->rep = (last & 3) == 2;
	p->repne = (last & 3) == 3;
	p->vector_length = last >> 2 & 1;
	if (first == 0x62) {
		p->vector_length = payload[2] >> 5 & 3;
		p->mask = payload[2] & 7;
	}
	return byte_take(p, &p->opcode) && p->map >= 1;
}

static bool legacy_opcode(struct parts *p, uint8_t byte)
{
	if ((byte & 0xf0) == 0x40) {
		p->rex = true;
		p->w = byte & 8;
		p->r = byte & 4;
		p->x = byte & 2;
		p->b = byte & 1;
		p->rex_at = (uint8_t)(p->at - 1);
		if (!byte_take(p, &byte))
			return false;
	}
	if (byte == 0x0f) {
		p->map = 1;
		if (!byte_take(p, &byte))
			return false;
		if (byte == 0x38 || byte == 0x3a) {
			p->map = byte == 0x38 ? 2 : 3;
			if (!byte_take(p, &byte))
				return false;
		}
	}
	p->opcode = byte;
	return true;
}

static bool opcode_take(struct parts *p)
{
	uint8_t byte, bytes;

	for (;;) {
		if (!byte_take(p, &byte))
			return false;
		switch (byte) {
		case 0x66:
			p->operand16 = true;
			continue;
		case 0xf2:
			p->repne = true;
			continue;
		case 0xf3:
			p->rep = true;
			continue;
		case 0x64:
			p->segment_fs = true;
			continue;
		case 0x65:
			p->segment_other = true;
			continue;
		case 0x67: /* addresses of 32 bits: what is watched lies above */
			return false;
		default:
			if ((byte & 0xe7) == 0x26 || byte == 0xf0) /* other segments, lock */
				continue;
			bytes = byte == 0xc5 ? 1 : byte == 0xc4 ? 2 : byte == 0x62 ? 3 : 0;
			return bytes ? vector_prefix(p, byte, bytes) : legacy_opcode(p, byte);
		}
	}
}

static bool between(uint8_t value, uint8_t low, uint8_t high)
{
	return value >= low && value <= high;
}

static uint16_t operand_bytes(const struct parts *p)
{
	return p->w ? 8 : p->operand16 ? 2 : 4;
}

/* Bytes behind the operand in memory. */
static uint32_t immediate_bytes(const struct parts *p)
{
	uint32_t z = p->operand16 && !p->w ? 2 : 4;

	if (p->map == 3)
		return 1;
	switch (p->map << 8 | p->opcode) {
	case 0x1a4:
	case 0x1ac:
	case 0x1ba:
		return p->encoding == LEGACY;
	case 0x80:
	case 0x83:
	case 0xc0 ... 0xc1:
	case 0xc6:
	case 0x170 ... 0x173:
	case 0x1c2:
	case 0x1c4 ... 0x1c6:
		return 1;
	case 0x81:
	case 0xc7:
		return z;
	default:
		return 0;
	}
}

/* One-byte opcodes that write to their operand in memory. */
/* Opcodes that store to their operand, and the values of modrm's `reg` with which they do. */
struct stores {
	uint8_t low, high, regs;
};

static const struct stores one_byte_stores[] = {
	{ 0x80, 0x81, 0xff }, { 0x83, 0x83, 0xff }, { 0x86, 0x89, 0xff }, { 0x8c, 0x8c, 0xff },
	{ 0x8f, 0x8f, 0x01 }, { 0xc0, 0xc1, 0xff }, { 0xc6, 0xc7, 0x01 }, { 0xd0, 0xd3, 0xff },
	{ 0xf6, 0xf7, 0x0c }, { 0xfe, 0xff, 0x03 }, { 0, 0, 0 },
};

static const struct stores two_byte_stores[] = {
	{ 0x90, 0x9f, 0xff }, { 0xa4, 0xa5, 0xff }, { 0xab, 0xad, 0xff },
	{ 0xb0, 0xb1, 0xff }, { 0xb3, 0xb3, 0xff }, { 0xba, 0xbb, 0xff },
	{ 0xc0, 0xc1, 0xff }, { 0xc3, 0xc3, 0xff }, { 0, 0, 0 },
};

static bool stores(const struct stores *row, const struct parts *p)
{
	for (; row->regs; row++)
		if (between(p->opcode, row->low, row->high))
			return row->regs >> (p->reg & 7) & 1;
	return false;
}

static enum arch_store_how one_byte(const struct parts *p, uint16_t *ret_width)
{
	uint8_t op = p->opcode;

	*ret_width = op & 1 ? operand_bytes(p) : 1;
	if (op == 0x8c)
		*ret_width = 2;
	if (op == 0x8f)
		*ret_width = p->operand16 ? 2 : 8;
	return (op < 0x38 && (op & 7) < 2) || stores(one_byte_stores, p) ? ARCH_STORE_PLAIN
									 : ARCH_STORE_UNKNOWN;
}

/* D8 to DF with an operand in memory; 0: not one that writes there. */
static enum arch_store_how floating(const struct parts *p, uint16_t *ret_width)
{
	static const uint8_t widths[8][8] = {
		[1] = { [2] = 4, [3] = 4, [6] = 28, [7] = 2 },
		[3] = { [1] = 4, [2] = 4, [3] = 4, [7] = 10 },
		[5] = { [1] = 8, [2] = 8, [3] = 8, [6] = 108, [7] = 2 },
		[7] = { [1] = 2, [2] = 2, [3] = 2, [6] = 10, [7] = 8 },
	};

	*ret_width = widths[p->opcode & 7][p->reg & 7];
	return *ret_width ? ARCH_STORE_STATE : ARCH_STORE_UNKNOWN;
}

/* Stores of whole vectors and their low parts, which the old and the new encodings share. 0: no
 * such one. */
static uint16_t vector_move(const struct parts *p)
{
	uint16_t whole = (uint16_t)(16u << p->vector_length);

	switch (p->map << 8 | p->opcode) {
	case 0x111:
		return p->rep ? 4 : p->repne ? 8 : whole;
	case 0x113:
	case 0x117:
	case 0x1d6:
		return 8;
	case 0x129:
	case 0x12b:
		return whole;
	case 0x17e:
		return p->w ? 8 : 4;
	case 0x17f:
	case 0x1e7:
		return p->encoding == LEGACY && !p->operand16 && !p->rep ? 8 : whole;
	default:
		return 0;
	}
}

/* The extended state's size as the kernel saves it is what xsave writes at most. */
static uint16_t state_bytes(const ucontext_t *context)
{
	const uint8_t *area = (const uint8_t *)context->uc_mcontext.fpregs;
	uint32_t size = 0;

	if (area)
		memcpy(&size, area + 480, sizeof(size));
	return size < 576 || size > UINT16_MAX ? 576 : (uint16_t)size;
}

/* 0F AE and 0F C7, whose modrm says what they are. */
static enum arch_store_how state_store(const struct parts *p, const ucontext_t *context,
				       uint16_t *ret_width)
{
	uint8_t reg = p->reg & 7;

	if (p->opcode == 0xae) { /* fxsave, stmxcsr, xsave, xsaveopt */
		*ret_width = reg == 0 ? 512 : reg == 3 ? 4 : state_bytes(context);
		return 0x59 >> reg & 1 ? ARCH_STORE_VECTOR : ARCH_STORE_UNKNOWN;
	}
	/* cmpxchg8b; xsavec, xsaves */
	*ret_width = reg != 1 ? state_bytes(context) : p->w ? 16 : 8;
	return reg == 1 ? ARCH_STORE_PLAIN : reg >> 1 == 2 ? ARCH_STORE_VECTOR : ARCH_STORE_UNKNOWN;
}

static enum arch_store_how two_bytes(const struct parts *p, const ucontext_t *context,
				     uint16_t *ret_width)
{
	uint8_t op = p->opcode;

	if (stores(two_byte_stores, p)) {
		bool byte = between(op, 0x90, 0x9f) || op == 0xb0 || op == 0xc0;

		*ret_width = byte ? 1 : operand_bytes(p);
		return ARCH_STORE_PLAIN;
	}
	if (op == 0xae || op == 0xc7)
		return state_store(p, context, ret_width);
	*ret_width = vector_move(p);
	if (!*ret_width)
		return ARCH_STORE_UNKNOWN;
	/* Without a prefix: of the old registers that share the floating point's. */
	return (op == 0x7e || op == 0x7f || op == 0xe7) && !p->operand16 && !p->rep
		       ? ARCH_STORE_STATE
		       : ARCH_STORE_VECTOR;
}

static enum arch_store_how vector_coded(const struct parts *p, uint16_t *ret_width)
{
	*ret_width = p->mask ? 0 : vector_move(p);
	if (p->map == 2 && p->encoding == EVEX && between(p->opcode, 0xa0, 0xa3))
		return ARCH_STORE_UNKNOWN; /* scatters: a base for each element */
	if (p->map == 2 && p->encoding == VEX && p->opcode == 0x4b)
		return ARCH_STORE_UNKNOWN; /* tiles: rows that are far apart */
	if (p->map == 2 && p->encoding == VEX && between(p->opcode, 0xe0, 0xef)) {
		*ret_width = p->w ? 8 : 4; /* compare and add */
		return ARCH_STORE_PLAIN;
	}
	return ARCH_STORE_VECTOR;
}

static enum arch_store_how classify(const struct parts *p, const ucontext_t *context,
				    uint16_t *ret_width)
{
	*ret_width = 0;
	if (p->encoding != LEGACY)
		return vector_coded(p, ret_width);
	switch (p->map) {
	case 0:
		return between(p->opcode, 0xd8, 0xdf) ? floating(p, ret_width)
						      : one_byte(p, ret_width);
	case 1:
		return two_bytes(p, context, ret_width);
	case 2:
		*ret_width = operand_bytes(p);
		return p->opcode == 0xf1 || p->opcode == 0xf9 ? ARCH_STORE_PLAIN
							      : ARCH_STORE_UNKNOWN;
	default: /* pextrb, pextrw, pextrd, extractps */
		return between(p->opcode, 0x14, 0x17) ? ARCH_STORE_VECTOR : ARCH_STORE_UNKNOWN;
	}
}

/* A register that the instruction has nothing to do with: neither named nor, as rax, rbx, rcx and
 * rdx may be, implied. Below 8, so that it needs no prefix. */
static uint8_t base_choose(const struct parts *p, uint8_t index)
{
	static const uint8_t candidates[] = { RSI, RDI, RBX, RDX };
	uint8_t reg = (uint8_t)(p->reg | (p->r ? 8 : 0));
	size_t i;

	for (i = 0; i < sizeof(candidates); i++) {
		uint8_t c = candidates[i];

		if (c == reg || c == index || (p->encoding != LEGACY && c == p->vvvv))
			continue;
		/* ah, ch, dh, bh */
		if (p->encoding == LEGACY && !p->rex && p->reg >= 4 && c == p->reg - 4)
			continue;
		return c;
	}
	return RSI;
}

static uint64_t value_of(const ucontext_t *context, uint8_t number)
{
	return (uint64_t)context->uc_mcontext.gregs[greg_of[number]];
}

/* The operand: where it is, and the same with another base. */
#define NO_INDEX 255

/* What modrm and the bytes behind it say. */
struct operand {
	uint8_t sib, index, base, scale;
	bool has_base, relative;
	int64_t distance;
};

static bool sib_take(struct parts *p, struct operand *o)
{
	*o = (struct operand){ .index = NO_INDEX, .base = p->rm, .has_base = true };
	if (p->rm != RSP)
		return true;
	if (!byte_take(p, &o->sib))
		return false;
	o->base = o->sib & 7;
	o->scale = o->sib >> 6;
	o->index = (uint8_t)((o->sib >> 3 & 7) | (p->x ? 8 : 0));
	if (o->index == RSP)
		o->index = NO_INDEX;
	return true;
}

/* EVEX: of the stores whose width is known, it is the factor of a displacement of one byte. */
static bool displacement_take(struct parts *p, uint16_t width, struct operand *o)
{
	uint32_t bytes = p->mod == 1 ? 1 : p->mod == 2 ? 4 : 0;
	int32_t wide;

	if (p->mod == 0 && o->base == RBP) {
		o->has_base = false;
		o->relative = p->rm == RBP;
		bytes = 4;
	}
	if (p->at + bytes > p->have)
		return false;
	memcpy(&wide, p->code + p->at, bytes == 4 ? 4 : 0);
	o->distance = bytes == 1 ? (int8_t)p->code[p->at] : bytes == 4 ? wide : 0;
	if (bytes == 1 && p->encoding == EVEX)
		o->distance *= width;
	p->at += bytes;
	return true;
}

/* The same instruction by another base register. */
static void code_rebase(const struct parts *p, const struct operand *o, struct arch_store *ret)
{
	uint8_t at = p->modrm_at;

	if (p->rm == RSP)
		ret->code[at + 1] = (uint8_t)((o->sib & ~7) | ret->base);
	if (!o->has_base)
		ret->code[at] = (uint8_t)(0x80 | p->reg << 3 | (o->relative ? ret->base : RSP));
	else if (p->rm != RSP)
		ret->code[at] = (uint8_t)((ret->code[at] & ~7) | ret->base);
	if (p->rex)
		ret->code[p->rex_at] &= (uint8_t)~1;
	else if (p->rex_at)
		ret->code[p->rex_at] |= 0x20;
}

/* pop [rsp + ...]: by rsp after it. */
static bool pops_to_stack(const struct parts *p, const struct operand *o)
{
	return p->encoding == LEGACY && p->map == 0 && p->opcode == 0x8f && o->has_base &&
	       o->base == RSP && !p->b;
}

static bool operand_take(struct parts *p, const ucontext_t *context, struct arch_store *ret)
{
	struct operand o;

	if (p->mod == 3 || !sib_take(p, &o) || !displacement_take(p, ret->width, &o))
		return false;
	ret->length = (uint8_t)(p->at + immediate_bytes(p));
	if (ret->length > ARCH_INSTRUCTION_MAX || ret->length > p->have)
		return false;
	memcpy(ret->code, p->code, ret->length);

	ret->base = base_choose(p, o.index);
	if (o.has_base)
		ret->origin = value_of(context, (uint8_t)(o.base | (p->b ? 8 : 0)));
	else if (o.relative)
		ret->origin = (uint64_t)context->uc_mcontext.gregs[REG_RIP] + ret->length;
	if (pops_to_stack(p, &o))
		ret->origin += ret->width;
	ret->low = ret->origin + (uint64_t)o.distance +
		   (o.index == NO_INDEX ? 0 : value_of(context, o.index) << o.scale);
	if (p->segment_fs)
		ret->low += arch_fs_base();
	code_rebase(p, &o, ret);
	return true;
}

static bool string_take(const struct parts *p, struct arch_store *ret)
{
	if (p->encoding != LEGACY || p->map ||
	    !(between(p->opcode, 0xa4, 0xa5) || between(p->opcode, 0xaa, 0xab)))
		return false;
	ret->how = ARCH_STORE_STRING;
	ret->copies = p->opcode < 0xaa;
	ret->repeated = p->rep || p->repne;
	ret->width = p->opcode & 1 ? operand_bytes(p) : 1;
	ret->length = (uint8_t)p->at;
	return !p->segment_fs && !p->segment_other;
}

/* maskmovq, maskmovdqu: both operands are registers, and memory is at rdi. */
static bool masked_take(const struct parts *p, const ucontext_t *context, struct arch_store *ret)
{
	if (p->map != 1 || p->opcode != 0xf7 || p->mod != 3 || p->encoding == EVEX ||
	    p->segment_fs || p->segment_other)
		return false;
	ret->how = p->operand16 ? ARCH_STORE_VECTOR : ARCH_STORE_STATE;
	ret->length = (uint8_t)p->at;
	ret->base = RDI;
	ret->origin = value_of(context, RDI);
	memcpy(ret->code, p->code, ret->length);
	return true;
}

bool arch_store_decode(const uint8_t *code, uint32_t have, const ucontext_t *context,
		       uint64_t address, struct arch_store *ret)
{
	struct parts p = { .code = code, .have = have };
	uint8_t modrm;

	memset(ret, 0, sizeof(*ret));
	if (!opcode_take(&p))
		return false;
	if (string_take(&p, ret))
		return true;
	p.modrm_at = (uint8_t)p.at;
	if (!byte_take(&p, &modrm))
		return false;
	p.mod = modrm >> 6;
	p.reg = modrm >> 3 & 7;
	p.rm = modrm & 7;
	if (masked_take(&p, context, ret))
		return true;
	ret->how = classify(&p, context, &ret->width);
	if (ret->how == ARCH_STORE_UNKNOWN || !operand_take(&p, context, ret))
		return false;
	/* Bits that a register counts may lie anywhere; of other segments we do not know the base.
	 */
	if (p.segment_other || (p.encoding == LEGACY && p.map == 1 &&
				(p.opcode == 0xab || p.opcode == 0xb3 || p.opcode == 0xbb)))
		ret->low = address;
	/* Should it ever be computed wrongly, no harm is done: the address is the CPU's. */
	if (ret->width && address - ret->low >= ret->width)
		ret->low = address;
	return true;
}

/* Known to x86_64_store.S. */
struct byte_run {
	uint64_t gregs[16]; /* as in ucontext: up to rsp */
	uint64_t flags;
	uint64_t own_rsp, leave;
	void *state; /* NULL: not needed */
	uint64_t state_mask, state_saved;
	uint64_t code;
};

_Static_assert(offsetof(struct byte_run, flags) == 128 && offsetof(struct byte_run, state) == 152 &&
		       offsetof(struct byte_run, code) == 176,
	       "known to x86_64_store.S");

#define BOUNCE (3 * PAGE) /* from here on, and a page to both sides */
#define INSTRUCTION_AT 7u
#define INSTRUCTION_ROOM 16u

struct arch_scratch {
	uint8_t code[256];
	struct byte_run run;
	uint8_t rest[ARCH_SCRATCH_BYTES - 256 - sizeof(struct byte_run)];
};

_Static_assert(sizeof(struct arch_scratch) == ARCH_SCRATCH_BYTES, "");

void arch_store_enter(struct byte_run *run) __attribute__((visibility("hidden")));

/* "mov rdi, [rip + …]" and the like, to a field of `run`. */
static uint8_t *relative_put(struct arch_scratch *scratch, uint8_t *at, const char *opcode,
			     uint32_t bytes, size_t field)
{
	int32_t distance = (int32_t)(offsetof(struct arch_scratch, run) + field -
				     (size_t)(at - scratch->code) - bytes - 4);

	memcpy(at, opcode, bytes);
	memcpy(at + bytes, &distance, 4);
	return at + bytes + 4;
}

struct arch_scratch *arch_scratch_new(void)
{
	long r = raw_syscall6(SYS_mmap, 0, ARCH_SCRATCH_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct arch_scratch *scratch = (void *)r;
	uint8_t *at;

	if (r < 0 && r > -4096)
		return NULL;
	at = relative_put(scratch, scratch->code, "\x48\x8b\x3d", 3, REG_RDI * 8);
	memset(at, 0x90, INSTRUCTION_ROOM);
	at += INSTRUCTION_ROOM;
	at = relative_put(scratch, at, "\x48\x89\x3d", 3, REG_RDI * 8);
	at = relative_put(scratch, at, "\x48\x89\x25", 3, REG_RSP * 8);
	at = relative_put(scratch, at, "\x48\x8b\x25", 3, offsetof(struct byte_run, own_rsp));
	(void)relative_put(scratch, at, "\xff\x25", 2, offsetof(struct byte_run, leave));
	scratch->run.code = (uint64_t)scratch->code;
	return scratch;
}

#define FLAG_RESUME 0x10000u
#define FLAG_ALIGNMENT 0x40000u
#define STATE_MAGIC 0x46505853u
#define STATE_COMPONENTS 0xe7u /* x87, SSE, AVX, and the three of AVX-512 */

/* Where the kernel saved the vector registers (arch/x86/include/uapi/asm/sigcontext.h): the frame
 * says at 464 that there is more than the old 512 bytes, and at 472 what. */
static void state_aim(struct byte_run *run, const ucontext_t *context, bool saved)
{
	uint8_t *area = (uint8_t *)context->uc_mcontext.fpregs;
	uint64_t features;
	uint32_t magic;

	run->state = NULL;
	run->state_saved = 0;
	if (!area)
		return;
	memcpy(&magic, area + 464, sizeof(magic));
	memcpy(&features, area + 472, sizeof(features));
	if (magic != STATE_MAGIC)
		return;
	run->state = area;
	run->state_mask = features & STATE_COMPONENTS;
	run->state_saved = saved;
}

static void scratch_run(struct arch_scratch *scratch, const struct arch_store *store,
			const ucontext_t *context, uint64_t distance)
{
	uint8_t *at = scratch->code + INSTRUCTION_AT;
	struct byte_run *run = &scratch->run;

	/* A CPU that finds its code rewritten starts over: mostly it is the same one again. */
	if (memcmp(at, store->code, store->length) != 0 ||
	    (store->length < INSTRUCTION_ROOM && at[store->length] != 0x90)) {
		memset(at, 0x90, INSTRUCTION_ROOM);
		memcpy(at, store->code, store->length);
	}
	memcpy(run->gregs, context->uc_mcontext.gregs, sizeof(run->gregs));
	run->gregs[greg_of[store->base]] = store->origin + distance;
	run->flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL] &
		     ~(uint64_t)(FLAG_TRAP | FLAG_RESUME | FLAG_ALIGNMENT);
	if (store->how == ARCH_STORE_PLAIN)
		run->state = NULL, run->state_saved = 0;
	else
		state_aim(run, context, store->how == ARCH_STORE_STATE);
	arch_store_enter(run);
}

#define FLAGS_ARITHMETIC 0xcd5ull /* and the direction */

void arch_store_run(struct arch_scratch *scratch, const struct arch_store *store,
		    ucontext_t *context, uint64_t distance)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	greg_t kept = gregs[greg_of[store->base]];

	scratch_run(scratch, store, context, distance);
	memcpy(gregs, scratch->run.gregs, sizeof(scratch->run.gregs));
	gregs[greg_of[store->base]] = kept;
	gregs[REG_EFL] = (greg_t)(((uint64_t)gregs[REG_EFL] & ~(FLAGS_ARITHMETIC | FLAG_RESUME)) |
				  (scratch->run.flags & FLAGS_ARITHMETIC));
	gregs[REG_RIP] += store->length;
}

void arch_store_probe(struct arch_scratch *scratch, const struct arch_store *store,
		      const ucontext_t *context, uint64_t address, uint64_t *ret_low,
		      uint64_t ret_mask[2])
{
	uint8_t *bounce = (uint8_t *)scratch + BOUNCE;
	uint64_t page = address & ~(uint64_t)(PAGE - 1);
	uint8_t *from = bounce + (address - page) - ARCH_STORE_PROBE;
	uint64_t distance = (uint64_t)bounce - page;
	uint32_t pass, i;

	ret_mask[0] = ret_mask[1] = 0;
	*ret_low = address - ARCH_STORE_PROBE;
	for (pass = 0; pass < 2; pass++) {
		uint8_t background = pass ? 0xff : 0;

		memset(from, background, 2 * ARCH_STORE_PROBE);
		scratch_run(scratch, store, context, distance);
		for (i = 0; i < 2 * ARCH_STORE_PROBE; i++)
			if (from[i] != background)
				ret_mask[i / 64] |= 1ull << i % 64;
	}
}
