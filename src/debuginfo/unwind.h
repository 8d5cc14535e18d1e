#pragma once

#include <stddef.h>

#include "model/frame.h"
#include "model/snapshot.h"

struct jit_names;
struct space;

/* One physical frame, not yet named. */
struct raw_frame {
	taddr pc;
	taddr cfa;	    /* 0 when unknown */
	unsigned int flags; /* enum frame_flags */
	struct registers registers; /* as far as they are known there */
};

/*
 * Walks the stack of a snapshot, innermost frame first, and fills in at most `room` frames.
 *
 * Each step goes by call frame information where there is some. Otherwise: by the kernel's signal
 * frame, when the code is a signal trampoline; by the return address on top of the stack, when the
 * instruction pointer is in no code at all (a call through a bad pointer) or in a function that has
 * not set up its frame; by the frame pointer; and as a last resort by looking for a return address
 * further up, which marks the frame as guessed. `jit` may be NULL.
 */
size_t unwind(struct space *space, struct jit_names *jit, struct raw_frame *ret, size_t room,
	      enum stack_end *ret_end);
