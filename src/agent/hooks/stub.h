/*
 * The stub of a hooked place (hooked.h): the instructions that made room for the jump, and a call
 * of the gate, or a jump to a slot that calls what the function would have jumped to; where the
 * function is replaced, a jump to what takes its place, which then calls the moved instructions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/hooks/hook_sites.h"

#define STUB_BYTES 192u	    /* moved code, the call of the gate, alignment */
#define STUB_GATE_BYTES 18u /* of it: push, push, call, lea, pop */
/* Of a function that is replaced (builtin_malloc.h), where the moved code begins. */
#define STUB_ORIGINAL_AT 40u

/* Where stubs of one module are written, before they are made executable. Never written to again:
 * later ones get memory of their own. */
struct stub_area {
	unsigned char *base;
	size_t bytes, used;
};

/* Near a place that its stubs have to reach; base NULL: nothing to be had. */
void stub_area_map(struct stub_area *area, uint64_t near, size_t bytes);

/* The next one in the area, which is writable yet. False: something is out of reach, or all slots
 * for tail calls are taken. */
bool stub_write(struct stub_area *area, struct hooked_site *site);

/* Is there no slot for another tail call? */
bool stub_tails_full(void);
