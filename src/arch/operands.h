#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/store.h"

/*
 * What a faulting instruction did with which registers, read from the code bytes around it.
 */
#define OPERANDS_MAX 6

struct fault_operands {
	char instruction[INSTRUCTION_TEXT];
	char origin[INSTRUCTION_TEXT]; /* the instruction that loaded the bad register; "" when not
					  found */
	/* Names of the registers that matter, the most telling last loaded first: those that form
	 * the address, then the one behind which the bad value was found. Static strings. */
	const char *registers[OPERANDS_MAX];
	size_t count;
	const char *source; /* the one behind which the bad value was found; NULL: not known */
	/* … what it was read from, where an index was counted in elements and both registers still
	 * hold what they held. */
	struct memory_operand load;
	bool has_load;
	/* Or the slot of the stack that still has the pointer behind which it was found:
	 * unoptimised code loads over the register that it loads through. */
	uint64_t source_slot;
	uint64_t source_added; /* what was added to it before */
	bool has_source_slot;
	const char *base;	      /* of the address that it wanted to touch; NULL: none */
	struct memory_operand memory; /* what the instruction wanted to touch */
	bool has_memory;
	/* A jump, call or return to what a register or a word holds: `target` is the register, or
	 * NO_REGISTER where `jump` is the word. */
	bool jumps;
	int target;
	struct memory_operand jump;
};

/* `code` are bytes of the target at `address`; `rip` is where it stopped, with these registers
 * (NULL: not known). False when there is no instruction to be decoded there. */
bool operands_of_fault(const uint8_t *code, size_t len, uint64_t address, uint64_t rip,
		       const struct registers *registers, struct fault_operands *ret);

/* The same for a jump to where there is no code: what the call used that ends at `end`, the return
 * address. `registers` are those before it. False when no such call is there. */
bool operands_of_call(const uint8_t *code, size_t len, uint64_t address, uint64_t end,
		      const struct registers *registers, struct fault_operands *ret);
