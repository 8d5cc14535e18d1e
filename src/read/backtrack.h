#pragma once

#include "arch/store.h"
#include "debuginfo/symbols.h"
#include "model/evidence.h"
#include "read/recorded_crash.h"

/*
 * Where a crash had its bad value from: the homes that the pointers were loaded from, one behind
 *the other, read back from the faulting instruction through the code before it, and across calls
 *into the callers.
 *
 *	mov rax, [rdi+8]	the home of the NULL that is read through: rdi+8
 *	(rdi is an argument)
 *	mov rdi, [rbx+0x18]	the home of rdi, in the caller: rbx+0x18
 */
/* A function on the stack that was given the block. */
struct backtrack_handle {
	unsigned int frame; /* physical */
	taddr function;	    /* where it begins; 0 unknown */
	unsigned int argument;
	int64_t offset; /* of the home, from that argument */
};

struct backtrack_step {
	struct home home;   /* where the value was loaded from */
	uint64_t value;	    /* that was loaded */
	unsigned int width; /* of the load */
	unsigned int frame; /* which physical frame it is in… */
	taddr pc;	    /* …and where that was */
	bool by_value;	    /* not by the code: the bad value was found standing there */
	bool by_field;	    /* and it is the field that the code speaks of, of another block */
	unsigned int
		twins;	 /* by_value alone: so many other places hold it, and one of all was read */
	bool in_former;	 /* another block had the place of the one that `home` is in before */
	bool doubtful;	 /* a jump leads in between, or the value was changed on the way */
	bool of_thread;	 /* HOME_THREAD, by the code */
	bool of_runtime; /* a variable of the C library's own */
	taddr function;	 /* HOME_STACK: where the function begins whose frame it is; 0 unknown */
	/* The block that `home` is in, and the block that `value` points into; id 0: none. */
	struct log_block in, to;
	/* The live block that its pointer was to, and that an index led out of; id 0: none. */
	struct log_block strayed;
	struct log_block to_former;	      /* a freed block that had the place of `to` before */
	VEC(struct backtrack_handle) handles; /* innermost first */
};

struct backtrack {
	VEC(struct backtrack_step) steps; /* the one that the fault used first */
	bool is_write;			  /* the faulting access itself was a store */
	bool executes;			  /* the bad pointer was jumped to */
	bool by_index;			  /* no pointer but an index was bad */
	bool crooked; /* no multiple of a word, or into the middle of a freed object: what was read
		       * through it says nothing */
	bool freed;   /* it was given to free(), which is no place for it */
	bool divides; /* no pointer but a divisor was: `pointer` */
	/* Where that value came from, when not from the home of the first step. */
	enum pointer_source source;
	char *returned_by; /* POINTER_RETURNED: the function; NULL unknown */
	/* Of a pointer into a block that was given to free(): places that hold the block's own. */
	uint64_t owners;
	uint64_t pointer;			  /* that the fault went through */
	struct log_block pointed, pointed_former; /* what it points into; id 0: nothing known */
	struct log_block passed; /* the first freed block that a pointer on the way led to */
};

/* -ENODATA when nothing can be read back (a signal from outside, an abort); divides, pointer,
 * source and returned_by are true all the same. */
int backtrack_read(const struct crash_record *record, struct symbols *symbols,
		   struct backtrack *ret, struct err *err);
void backtrack_deinit(struct backtrack *backtrack);

/* Which of these frames an address is in; `count` when none is known to be. */
size_t backtrack_frame_of(const struct machine_frame *frames, size_t count, uint64_t address);

/* A frame as arch/ asks for it. */
struct trap backtrack_trap(const struct machine_frame *frame);
