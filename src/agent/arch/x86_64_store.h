/*
 * Carrying out a store somewhere else than it says.
 *
 * An instruction that writes to memory which lies twice in the address space (pages.h) is run from
 * a copy whose base register is another one, that holds the base moved to the second place. Since
 * only the base is exchanged, nothing needs to be known of what the instruction does: scale, index
 * and displacement stay as they are. All other registers, the flags and the vector registers are
 * those of the interrupted code. It runs inside the handler: one signal per store, no single step,
 * and it is the instruction itself that runs, once, so what is atomic stays so.
 *
 * Everything here is _sigsafe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#define ARCH_INSTRUCTION_MAX 15u
#define ARCH_STORE_PROBE 64u /* the widest store whose bytes are found out by trying */

enum arch_store_how {
	ARCH_STORE_UNKNOWN, /* cannot be run elsewhere */
	ARCH_STORE_PLAIN,   /* by general registers and flags alone */
	ARCH_STORE_VECTOR,  /* needs the vector registers, and leaves them as they are */
	ARCH_STORE_STATE,   /* changes the floating-point state, too */
	ARCH_STORE_STRING,  /* movs, stos: by rdi */
};

/* One instruction, decoded. */
struct arch_store {
	enum arch_store_how how;
	uint8_t length;
	uint8_t base;	 /* the register that stands for the base in `code` */
	bool repeated;	 /* STRING: rep */
	bool copies;	 /* STRING: movs */
	uint16_t width;	 /* bytes; 0: to be found out with arch_store_probe() */
	uint64_t origin; /* what `base` is to hold, before it is moved */
	uint64_t low;	 /* first byte; where width is 0, not known */
	uint8_t code[ARCH_INSTRUCTION_MAX];
};

/* Memory of one thread that code is run in; 0 from mmap is a good start. */
struct arch_scratch;
#define ARCH_SCRATCH_BYTES (4096u + 4 * 4096u)

/* NULL: the kernel gives no memory that is both written and run. */
struct arch_scratch *arch_scratch_new(void);

/* The instruction at the interrupted rip, of which `have` bytes could be read; `address` is what it
 * faulted at. False: unknown. */
bool arch_store_decode(const uint8_t *code, uint32_t have, const ucontext_t *context,
		       uint64_t address, struct arch_store *ret);

/* Runs it with its memory `distance` away. The registers, flags and state after it are written to
 * `context`, and rip is behind it. */
void arch_store_run(struct arch_scratch *scratch, const struct arch_store *store,
		    ucontext_t *context, uint64_t distance);

/* Which bytes a vector store writes, as masks have it: found out by running it against two
 * backgrounds. *ret_low is the address of bit 0 of *ret_mask. */
void arch_store_probe(struct arch_scratch *scratch, const struct arch_store *store,
		      const ucontext_t *context, uint64_t address, uint64_t *ret_low,
		      uint64_t ret_mask[2]);
