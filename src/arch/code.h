#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Instructions, as far as it matters where control goes and what addresses they name; and their
 * equivalents at another place.
 */
enum code_flow {
	CODE_NEXT,	    /* goes on behind itself */
	CODE_CALL,	    /* comes back behind itself */
	CODE_BRANCH,	    /* goes on, or to `target` */
	CODE_JUMP,	    /* to `target` */
	CODE_JUMP_INDIRECT, /* to an address in a register or in memory */
	CODE_RETURN,
	CODE_STOP, /* ud2, hlt: control ends here */
};

enum code_flags {
	CODE_HAS_TARGET = 1 << 0,  /* a direct jump, branch or call */
	CODE_HAS_ADDRESS = 1 << 1, /* names a fixed address of memory, relative to itself or not */
	CODE_NOP = 1 << 2,
	CODE_BREAKPOINT = 1 << 3,  /* int3 */
	CODE_ADDS = 1 << 4,	   /* register + register: an address may be computed here */
	CODE_IN_REGISTER = 1 << 5, /* an indirect jump whose target is in a register */
	CODE_ENTRY_MARK = 1 << 6,  /* endbr64 */
};

struct code_instruction {
	uint64_t at;
	uint64_t target;
	uint64_t address;
	uint8_t length;
	uint8_t flags; /* enum code_flags */
	uint8_t flow;  /* enum code_flow */
};

/* Decodes the instruction at the start of `bytes`, which lie at `at`. False when there is none. */
bool code_decode(const uint8_t *bytes, size_t len, uint64_t at, struct code_instruction *ret);

/* How long an unconditional jump to any place within 2 GiB is. */
#define CODE_JUMP_BYTES 5

enum code_fixup_kind {
	CODE_FIX_RELATIVE, /* 4 bytes: target - (address of the field + 4 + after) */
	CODE_FIX_LOW,	   /* 4 bytes: low half of the target's address */
	CODE_FIX_HIGH,
};

struct code_fixup {
	uint16_t at; /* in the moved bytes */
	uint8_t kind;
	uint8_t after; /* bytes of the instruction behind the field */
	uint64_t target;
};

#define CODE_MOVED_MAX 128
#define CODE_FIXUPS_MAX 8
#define CODE_MARKS_MAX 16

/* Code that does what the instructions moved into it did, wherever it lies (within 2 GiB of what
 * they name). All addresses in it are those of the original; what depends on where it will lie is a
 * fix-up. */
struct code_moved {
	uint8_t bytes[CODE_MOVED_MAX];
	size_t len;
	struct code_fixup fixups[CODE_FIXUPS_MAX];
	size_t fixup_count;
	/* Where each moved instruction begins, and where the original of it is. */
	struct {
		uint16_t moved;
		uint64_t original;
	} marks[CODE_MARKS_MAX];
	size_t mark_count;
	bool pushes; /* a call became a push of its return address and a jump */
	bool ended;  /* control never reaches the end of what was moved */
};

/* Appends the instruction at the start of `bytes`, which lie at `at`. NULL, or why it cannot be
 * moved (words that go on after "because"); `moved` is as before then.
 *
 * A call keeps its own return address, so that whatever looks at the stack meanwhile (exceptions,
 * backtraces) finds the original function there: it ends the moved code. */
const char *code_move(struct code_moved *moved, const uint8_t *bytes, size_t len, uint64_t at);

/* Appends a jump. False when there is no room. */
bool code_move_jump(struct code_moved *moved, uint64_t target);
