#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

/*
 * What differs from CPU to CPU, as one table of facts and functions.
 *
 * A new CPU needs: a file here with its table; a row in arch_native(); a way to fill
 * struct registers in the agent's own arch folder with the same numbers.
 *
 * Registers are numbered as DWARF does for this CPU, as far as DWARF's numbers are below
 * `dwarf_count`; the ones after that have no DWARF number.
 */
struct arch {
	const char *name;
	unsigned int elf_machine; /* EM_… */
	const char *const *register_names;
	unsigned int register_count;
	unsigned int dwarf_count; /* registers 0 … dwarf_count-1 can stand in unwind information */
	unsigned int pc, sp, fp;
	uint32_t callee_saved;	     /* bit per register that a function must leave as it was */
	size_t max_call_len;	     /* longest call instruction */
	size_t sigreturn_len;	     /* bytes that is_sigreturn() looks at */
	unsigned int thread_pointer; /* register number of it */

	/* Do the `len` bytes, which end at a presumed return address, end in a call instruction? */
	bool (*ends_in_call)(const uint8_t *code, size_t len);

	/* Is this the code that a signal handler returns to? */
	bool (*is_sigreturn)(const uint8_t *code, size_t len);

	/* Where the register stands in the kernel's list of saved registers (gregs in
	 * <sys/ucontext.h>); negative for one that is not in it. */
	int (*saved_index)(unsigned int reg);
	size_t sigframe_saved; /* from the stack pointer at that code to that list */

	/* From the code of a function that has no unwind information: `before` are the bytes up to
	 * the instruction pointer, `at` those from it on. Sets where the return address is, as an
	 * offset from the stack pointer, when the frame is not set up (or already gone). False when
	 * the function keeps a frame pointer and it is valid here, or nothing can be told. */
	bool (*return_slot)(const uint8_t *before, size_t before_len, const uint8_t *at,
			    size_t at_len, size_t *ret_offset);

	/* Do these bytes, from a function's code, set up a frame pointer? */
	bool (*sets_frame_pointer)(const uint8_t *code, size_t len);
};

/* Takes over the registers out of such a list. */
void arch_registers_from_saved(const struct arch *arch, const uint64_t *saved, size_t count,
			       struct registers *ret);

/* The CPU that redhand was built for. */
const struct arch *arch_native(void);

/* "rax", or NULL. */
const char *arch_register_name(const struct arch *arch, unsigned int reg);

/* The number of a register by name, or -1. */
int arch_register_find(const struct arch *arch, const char *name);
