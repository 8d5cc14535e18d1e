#pragma once

#include <stddef.h>
#include <stdint.h>

#include "debuginfo/cfi.h"
#include "model/frame.h"
#include "wire/python_layout.h"

/*
 * The Python frames of one thread, read out of the interpreter's own data.
 *
 * `read` may be served from a snapshot: then the snapshot must hold what
 * python_record.h lists. Whatever is missing or damaged shortens the result, nothing more.
 */
struct python_frame {
	struct frame frame; /* kind FRAME_PYTHON; strings owned */
	/* An address in the native frame of the interpreter loop that runs this Python frame; 0
	 * when the walk ended before it was found. */
	taddr native_stack;
};

struct python_frames {
	struct python_frame *items; /* innermost first */
	size_t count;
	size_t room;
};

struct python_thread {
	taddr runtime;	     /* address of _PyRuntime */
	uint64_t pthread;    /* pthread_self() of the thread: the thread pointer; 0 unknown */
	uint64_t kernel_tid; /* 0 unknown */
};

/* Fills `ret`, which the caller deinits. 0, or -ESRCH when the thread is none of Python's (or its
 * data was not recorded). */
int python_frames_read(const struct python_layout *layout, const struct python_thread *thread,
		       memory_reader *read, void *arg, struct python_frames *ret);
void python_frames_deinit(struct python_frames *frames);

/* One frame by its code object, whose memory python_record_code_sigsafe() kept, and the instruction
 * where it stands, in code units; also one that has not begun yet. 1: added; negative: its memory
 * is not there. */
int python_frames_add(const struct python_layout *layout, taddr object, uint32_t instruction,
		      memory_reader *read, void *arg, struct python_frames *ret);

/* The line of an instruction, from a code object's location table (Objects/locations.md):
 * `instruction` counts code units of two bytes. 0 when the table has none for it. */
uint32_t python_line(const uint8_t *table, size_t len, uint32_t first_line, uint64_t instruction);

/* Puts the Python frames into a native stack, each group before the frame of the interpreter
 * loop that runs it. Groups whose native frame is not in the stack come at its end, marked
 * FRAME_UNPLACED. */
void python_frames_merge(const struct python_frames *frames, struct stack *stack);
