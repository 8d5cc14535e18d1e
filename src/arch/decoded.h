#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

#include "arch/registers.h"

/*
 * Bytes of the target as instructions. Private to arch/: the rest of redhand sees what they mean,
 * in store.h, linear_sweep.h and operands.h.
 */
struct code {
	const uint8_t *bytes;
	size_t len;
	uint64_t address; /* of the first byte, in the target */
	ZydisDecoder decoder;
};

struct decoded {
	uint64_t address;
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool code_init(struct code *code, const uint8_t *bytes, size_t len, uint64_t address);

/* The instruction at an address; false when there is none, or its bytes are not all known. */
bool decoded_at(const struct code *code, uint64_t at, struct decoded *ret);

/* Intel syntax; "" when it cannot be told. */
void decoded_print(const struct decoded *d, char *text, size_t room);

/* Does it write this register, or a part of it? `reg` as register_whole() gives it. */
bool decoded_writes(const struct decoded *d, ZydisRegister reg);

/* The largest register that holds this one: rax for al, zmm0 for xmm0. */
ZydisRegister register_whole(ZydisRegister reg);

/* To and from the numbers of registers.h; -1 and ZYDIS_REGISTER_NONE for none. */
int register_number(ZydisRegister reg);
ZydisRegister register_of_number(int number);

/* How they were found. */
struct before {
	bool certain;	    /* from the hint on */
	unsigned int share; /* percent of all ways that come through the nearest one */
};

/*
 * The addresses of the instructions that lead up to `end`, the nearest first; returns how many.
 *
 * From `hint` on, when that is the address of an instruction (a function's start) and the bytes
 * since then are known, they are certain. Without it all ways through the bytes
 * before `end` are looked at. Decoding from a wrong place soon falls into step with the right one,
 * so at each step back the instruction is taken that most ways come through.
 */
size_t code_before(const struct code *code, uint64_t end, uint64_t hint, uint64_t *ret, size_t room,
		   struct before *ret_how);
