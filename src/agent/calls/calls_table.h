/*
 * What system calls write to, as far as it can be said from their arguments: so that a write of the
 * kernel that left a value as it was is told as well. Of calls that are not here, only what has
 * changed is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum call_how {
	CALL_FILLS,	    /* `bytes`, if it does not fail */
	CALL_RETURNS_BYTES, /* as many times `bytes` as it returns */
};

struct call_output {
	uint16_t number;
	uint8_t argument;
	uint8_t how; /* enum call_how */
	uint32_t bytes;
};

/* The first row of a call; others of the same number follow. NULL: none. _sigsafe */
const struct call_output *call_outputs(long number);

/* It writes nowhere: its buffers can stay where they are. _sigsafe */
bool call_only_reads(long number);
