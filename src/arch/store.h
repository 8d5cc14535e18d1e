#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/registers.h"
#include "model/snapshot.h"

/*
 * Instructions that write to memory: where, how wide, what, and where they had it from.
 */

/* An address as an instruction has it: [base + index * scale + displacement]. */
struct memory_operand {
	int base, index;
	unsigned int scale;   /* 0 without an index */
	int64_t displacement; /* of [rip + …] the distance, as in the code */
	int segment;	      /* fs_base or gs_base, which is added; else NO_REGISTER */
	bool fixed;	      /* no register takes part: it is `address` */
	uint64_t address;
};

enum store_kind {
	STORE_PLAIN,
	STORE_MODIFY,	 /* reads, changes, writes back: and, inc, xadd, xchg, cmpxchg, bts */
	STORE_REPEATED,	 /* rep stos, rep movs */
	STORE_MASKED,	 /* some elements of a vector; `width` is that of all */
	STORE_SCATTERED, /* elements of a vector, each to a place of its own */
	STORE_PUSH,	 /* push, call, enter: below the stack pointer */
	STORE_STATE,	 /* fxsave, xsave and their kin */
};

enum store_source {
	SOURCE_OTHER, /* flags, floating point stack, a result without a home */
	SOURCE_REGISTER,
	SOURCE_IMMEDIATE,
	SOURCE_MEMORY, /* movs, push [mem] */
};

/* Which elements of a vector are stored. */
enum mask_kind {
	MASK_NONE,  /* all, or nothing is known about it */
	MASK_BITS,  /* element n if bit n of k register `register_number` is set */
	MASK_FRONT, /* as many as it has bits, one behind the other (vpcompress) */
	MASK_SIGNS, /* those whose top bit is set in a vector register (vmaskmov) */
};

struct store_mask {
	enum mask_kind kind;
	int register_number;
	unsigned int element; /* bytes */
	unsigned int count;   /* of elements */
};

struct store {
	uint64_t at; /* address of the instruction */
	unsigned int length;
	enum store_kind kind;
	unsigned int width;   /* bytes; 0: the code alone does not tell */
	unsigned int element; /* of a string instruction: bytes that one step of it writes */
	bool locked;
	bool string; /* stos, movs: rdi moves on by itself */
	/* Before the instruction. Of a push the displacement is minus its width. */
	struct memory_operand to;
	bool moves_base;	/* the instruction itself changes a register of `to` */
	struct store_mask mask; /* STORE_MASKED */
	enum store_source source;
	int source_register;	    /* SOURCE_REGISTER */
	uint64_t immediate;	    /* SOURCE_IMMEDIATE, extended by its sign if it has one */
	struct memory_operand from; /* SOURCE_MEMORY */
	char text[INSTRUCTION_TEXT];
};

/* Identifiers as the JSON documents have them: "plain", "modify" … */
const char *store_kind_name(enum store_kind kind);

/* The instruction at `at`, if it is a store. `code` are bytes of the target at `address`. */
bool store_decode(const uint8_t *code, size_t len, uint64_t address, uint64_t at,
		  struct store *ret);

/* The address that an operand means with these registers; false when one it needs is not known. */
bool memory_operand_address(const struct memory_operand *operand, const struct registers *registers,
			    uint64_t *ret);

/* The bytes that the store wrote, by the registers right after it. False when they do not tell:
 * an unknown register, or one that the instruction overwrote. Of a repeated or scattered one, and
 * one of unknown width, it is where the last bytes can be. */
bool store_range_after(const struct store *store, const struct registers *after, uint64_t *ret_low,
		       uint64_t *ret_high);

/* The same by the registers right before it. */
bool store_range_before(const struct store *store, const struct registers *before,
			uint64_t *ret_low, uint64_t *ret_high);

/* What masks can be in. */
struct mask_registers {
	uint64_t masks[8];	 /* k0 to k7 */
	uint8_t vectors[16][32]; /* ymm0 to ymm15 */
};

/*
 * A thread right after a write to watched memory. A hardware watchpoint stops it behind the
 * instruction; a rep-prefixed one that is not finished stays at the instruction pointer.
 */
struct trap {
	const uint8_t *code; /* bytes around rip, as they were then */
	size_t code_len;
	uint64_t code_address;
	uint64_t rip;
	/* The address of an instruction before rip: the start of its function, or of the piece of
	 * emitted code. 0 when unknown; it only helps when `code` reaches back that far. */
	uint64_t start_hint;
	const struct registers *registers;  /* NULL when unknown */
	uint64_t low, high;		    /* the watched bytes; low == high when unknown */
	const struct mask_registers *masks; /* NULL when unknown */
};

struct writer {
	struct store store;
	bool system_call;     /* no store but `syscall` stands before rip: the kernel wrote */
	bool certain;	      /* found from the start of the function, or nothing else fits */
	bool covers;	      /* by the registers it wrote some of the watched bytes */
	unsigned int share;   /* percent of the ways through the code before that lead to it */
	unsigned int others;  /* further instructions that end at rip and would fit as well */
	uint64_t low, high;   /* what it wrote, by store_range_after(); equal when unknown. Of a
			       * masked store whose mask is not known, what it can have been */
	bool mask_known;      /* of a masked store: low and high are its first and last byte… */
	unsigned int written; /* …and it wrote so many of those in between, which may be none */
};

/*
 * The instruction that made the write. Where instructions begin is not known from their end, so
 * all that end at rip are looked at: those that write what was watched, and among them the one that
 * most ways through the code before it lead to. -ENOENT when none is a store (and none a system
 * call); then some other thread or the kernel wrote, or the trap came late.
 */
int arch_decode_before(const struct trap *trap, struct writer *ret);

/* The same where trap->rip is the instruction itself, not yet run, and the registers are those
 * before it. -ENOENT when it is no store. */
int arch_decode_at(const struct trap *trap, struct writer *ret);

/* "read"; NULL when there is no such system call. */
const char *arch_system_call_name(unsigned int number);

/* The call instruction that ends at trap->rip, a return address. False when there is none. */
bool arch_call_before(const struct trap *trap, uint64_t *ret_at);

/* What an instruction does with memory, and through which pointers it goes on. */
struct access {
	bool reads, writes;	      /* its operand in memory */
	bool jumps;		      /* to an address out of a register or memory */
	struct memory_operand memory; /* when it reads or writes */
	unsigned int width;
	int target; /* jumps: the register with the address; NO_REGISTER when it is in memory */
	bool divides;
	int divisor; /* divides: the register; NO_REGISTER when it is in memory */
};

/* The instruction at `at`; false when there is none or it has nothing to do with either. */
bool arch_access_at(const struct trap *trap, uint64_t at, struct access *ret);

/* Is the instruction at `at` a return? */
bool arch_returns_at(const struct trap *trap, uint64_t at);

/* Where the function that trap->start_hint begins keeps the guard of its frame, the word that the
 * compiler lets it compare before it returns (-fstack-protector); false: it has none, or the code
 * up to trap->rip does not show it. */
bool arch_frame_guard(const struct trap *trap, struct memory_operand *ret);

enum origin_kind {
	ORIGIN_UNKNOWN,
	ORIGIN_LOAD,	  /* from memory: `from`, `width` */
	ORIGIN_IMMEDIATE, /* `immediate` */
	ORIGIN_ADDRESS,	  /* the address of something: lea */
	ORIGIN_CALL,	  /* what the call at `at` returned */
	ORIGIN_ENTRY,	  /* in register `reg` already when the function began: an argument */
};

struct origin {
	enum origin_kind kind;
	uint64_t at; /* the instruction it came with; of ORIGIN_ENTRY the function's start */
	char text[INSTRUCTION_TEXT];
	int reg;		    /* ORIGIN_ENTRY; else where the value was followed to */
	struct memory_operand from; /* ORIGIN_LOAD, ORIGIN_ADDRESS */
	unsigned int width;
	uint32_t from_kept; /* bit N: register N of `from` still holds what it held then */
	bool from_known;    /* all of them do, so it is `from_address` */
	uint64_t from_address;
	uint64_t immediate;
	uint32_t through; /* bit N: the value came through register N, which still holds it */
	bool changed;	  /* arithmetic on the way: not the very value that was loaded */
	bool shifted;	  /* … and all of it was constants that were added: `added` in sum */
	uint64_t added;
	/* The value, but for a constant that was added, was loaded from this slot of the stack,
	 * where it still stands. */
	bool slot_known;
	uint64_t slot_address;
	uint64_t slot_added;
	bool slot_joined; /* a jump leads in between that load and rip */
	bool joined;	  /* a jump leads in between: it may have come another way */
	bool certain;	  /* the instructions were found from the start of the function */
};

/*
 * Where register `reg` had its value from when the instruction at `at` ran: back through straight
 * code, over moves between registers, arithmetic, and slots of the stack that it was kept in, to
 * the load that brought it. trap->registers are those at rip, after `at`; trap->low and high are
 * not used.
 */
void arch_value_origin(const struct trap *trap, uint64_t at, int reg, struct origin *ret);

/*
 * What register `reg` held when the instruction at `at` ran, worked out anew from registers that
 * nobody has written since (trap->registers, at rip). False: not everything is left that it was
 * computed from, or it may have come another way.
 */
bool arch_value_computed(const struct trap *trap, uint64_t at, int reg, uint64_t *ret);

#define ROOTS_MAX 3u

/* What an address was added up from: an address, or an argument of the function. */
struct root {
	uint64_t at; /* the instruction that put it there; of an argument 0 */
	bool argument;
	int reg;	  /* argument */
	uint64_t address; /* else */
};

struct roots {
	struct root list[ROOTS_MAX];
	size_t count;
	bool several; /* not the same by all ways, or not known: `list` says nothing */
};

/*
 * What the address in `operand` of the instruction at `at` was made from, by all ways through its
 * function. Numbers are left out, and so is what was loaded from elsewhere than the frame.
 * trap->start_hint is needed; trap->registers are asked for the stack and, if the function is
 * `framed`, the frame pointer.
 */
void arch_roots(const struct trap *trap, uint64_t at, const struct memory_operand *operand,
		bool framed, struct roots *ret);

enum runs {
	RUNS_UP = 1 << 0,
	RUNS_DOWN = 1 << 1,
	RUNS_SOMEWHERE = 1 << 2, /* by what is in a register */
};

/* Does register `reg`, as the instruction at `at` uses it, run over memory: is there a loop around
 * that instruction in which it is moved on? Which ways, enum runs; 0: it does not. Only where the
 * function's start is known. */
unsigned int arch_pointer_runs(const struct trap *trap, uint64_t at, int reg);
