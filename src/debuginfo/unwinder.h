#pragma once

#include <stddef.h>

#include "model/frame.h"
#include "model/snapshot.h"

struct jit_names;
struct space;

/* One physical frame, not yet named. */
struct raw_frame {
	taddr pc;
	taddr cfa;		    /* 0 when unknown */
	unsigned int flags;	    /* enum frame_flags */
	struct registers registers; /* as far as they are known there */
};

/*
 * Walks the stack of a snapshot, innermost frame first, and fills in at most `room` frames.
 *
 * Each step goes by call frame information where there is some. Otherwise: by the kernel's signal
 * frame, when the code is a signal trampoline; by the return address on top of the stack, when the
 * instruction pointer is in no code at all (a call through a bad pointer) or in a function that has
 * not set up its frame; by the frame pointer; and as a last resort by looking for a return address
 * further up, which marks the frame as guessed: the first from which unwind information leads on.
 *
 * Where a return led to no code, the function that returned comes next, although its frame is gone
 * (FRAME_RETURNED). It is known by what its last call left below; one that called nobody is not
 * found, or a former call of another that ended at the same place is taken for it. The frame after
 * it is not who it was to return to, whose address was overwritten, but who called that. `jit` may
 * be NULL.
 */
size_t unwind(struct space *space, struct jit_names *jit, struct raw_frame *ret, size_t room,
	      enum stack_end *ret_end);
