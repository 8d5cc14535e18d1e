/*
 * How the walk up the stack (unwind.h) leaves one function: kept by each thread.
 */
#pragma once

#include <stdint.h>

enum unwind_kind {
	UNWIND_END = 0, /* nothing above, or not to be known */
	UNWIND_BY_RSP,	/* the caller's frame starts at rsp + offset */
	UNWIND_BY_RBP,
	UNWIND_BY_CHAIN, /* code without a table (JIT): the frame pointer, if it looks like one */
};

/* The tables say that nobody called this function: the program's entry, a thread's first. */
#define UNWIND_NOTHING_ABOVE 1u

/* How to leave the function around one return address: it depends on that address alone, so each
 * thread keeps what it has learned and decodes the tables once. */
struct unwind_rule {
	uint64_t frame_hash; /* (module identity, offset); 0: left out of hashes */
	uint32_t tag;	     /* the keeper's: whose rule this is */
	uint32_t kind : 2;   /* enum unwind_kind */
	uint32_t cfa : 17;   /* offset in words from the register to the caller's frame; of
			      * UNWIND_END: UNWIND_NOTHING_ABOVE, or 0 */
	uint32_t rbp : 13;   /* rbp was saved so many words below that; 0: not saved */
};

_Static_assert(sizeof(struct unwind_rule) == 16, "the walk lives on the cache");
