#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * One line of a stack, and the stack itself, innermost frame first.
 *
 * A stack owns its frames and every string in them, so it can be stored, printed
 * or kept after whoever made it is gone. A zeroed struct stack is an empty one.
 */

enum frame_kind {
	FRAME_NATIVE,
	FRAME_INLINE, /* expanded into the next frame that is not inline */
	FRAME_JIT,    /* code outside any file, named by a perf map, a jitdump or not at all */
	FRAME_PYTHON, /* run by the next native frame, which is the interpreter's loop */
	FRAME_KERNEL, /* the vDSO: the kernel's code in the process */
};

enum frame_flags {
	/* The file on disk is not the one that ran: no names are given, only module and offset. */
	FRAME_FILE_REPLACED = 1 << 0,
	/* Found by looking for a return address on the stack, not by unwind information:
	 * the frame may be a leftover of an earlier call, and then so are those after it. */
	FRAME_GUESSED = 1 << 1,
	/* The kernel's own frame between a signal handler and what it interrupted. */
	FRAME_SIGNAL = 1 << 2,
	/* `address` is where execution stands (the innermost frame, or one interrupted by a
	 * signal), not a return address. */
	FRAME_EXACT = 1 << 3,
	/* Found by the frame-pointer chain, because the code has no unwind information. */
	FRAME_BY_FRAME_POINTER = 1 << 4,
	/* A Python frame whose native frame is not in the stack: it stands at the end. */
	FRAME_UNPLACED = 1 << 5,
	/* It had left by a jump to the next inner one: found by the call instruction outside of it.
	 */
	FRAME_TAIL = 1 << 6,
	/* Of an allocation: it only passes on to malloc what it was asked for. */
	FRAME_WRAPPER = 1 << 7,
	/* It is gone: it has returned to where the next inner one stands, which is no code. */
	FRAME_RETURNED = 1 << 8,
};

struct frame {
	char *function;	  /* demangled; NULL when unknown */
	char *file;	  /* source file; NULL when unknown */
	uint32_t line;	  /* 0 when unknown */
	char *module;	  /* path of the mapped file; NULL outside any file */
	uint64_t offset;  /* address in the module's own file, as addr2line takes it: the same
			   * in every run; of emitted code with a name, from where that begins; 0
			   * where neither is known */
	uint64_t address; /* as it stood in the process; 0 for Python frames */
	uint64_t cfa;	  /* stack pointer of the caller at the call; 0 when unknown */
	enum frame_kind kind;
	unsigned int flags; /* enum frame_flags */
};

/* Why the stack ends where it ends. */
enum stack_end {
	STACK_COMPLETE,	 /* the thread's first function was reached */
	STACK_TRUNCATED, /* it goes on in memory that was not recorded */
	STACK_LOST,	 /* no unwind information and no plausible frame pointer */
	STACK_TOO_DEEP,	 /* the limit on frames was reached */
	STACK_LOOP,	 /* the frames turn in a circle: the stack is damaged */
};

struct stack {
	struct frame *frames;
	size_t count;
	size_t room;
	enum stack_end end;
};

/* Adds copies of the frames. */
void stack_copy(struct stack *to, const struct stack *from);

/* Frees the frames and their strings; the stack is empty afterwards. */
void stack_deinit(struct stack *stack);

/* Appends a copy of `frame`, strings included. Returns the copy, valid until the next change. */
struct frame *stack_push(struct stack *stack, const struct frame *frame);

/* The same, before index `at` (at most stack->count). */
struct frame *stack_insert(struct stack *stack, size_t at, const struct frame *frame);

/* Identifiers as the JSON documents have them. */
const char *frame_kind_name(enum frame_kind kind);
const char *stack_end_name(enum stack_end end);

/* In emitted code that has a name, is it known how far from its begin? `offset` says. */
bool frame_in_piece(const struct frame *frame);

/* Appends where it is: "function (file.c:12)", "libfoo.so+0x1234", "0x7f…". */
void frame_describe(const struct frame *frame, struct strbuf *sb);
