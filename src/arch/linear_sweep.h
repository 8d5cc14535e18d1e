#pragma once

#include <stddef.h>
#include <stdint.h>

#include "arch/store.h"
#include "model/scan_report.h"

/*
 * All instructions of a piece of code, one after the other, looking for those that a scan asks for.
 *
 * Where instructions begin is known at the starts of functions and nowhere else: the sweep falls
 * into step there, whatever it made of data before. Bytes that are no instruction are passed over
 * one by one.
 */
struct sweep_hit {
	enum scan_match match;
	enum scan_fit fit;
	struct store store; /* of others only at, length and text are set */
};

typedef void sweep_fn(void *ctx, const struct sweep_hit *hit);

struct sweep {
	const struct scan_query *query;
	sweep_fn *found;
	void *ctx;
	uint64_t stop; /* no instruction is begun from this address on; 0: all of the code */
	/* counted over all pieces */
	uint64_t instructions;
	uint64_t undecoded;	 /* bytes */
	uint64_t stack_left_out; /* would match, but for the stack pointer as their base */
};

/* `starts` are addresses of functions, ascending; those outside are passed over. Returns how many
 * bytes were read: where to go on, when the code comes in pieces. */
size_t sweep_code(struct sweep *sweep, const uint8_t *code, size_t len, uint64_t address,
		  const uint64_t *starts, size_t start_count);
