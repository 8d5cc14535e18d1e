/*
 * What glibc's own marks in the heap say about a chunk.
 *
 * Asked when somebody frees memory whose last known owner is dead: either it is freed twice, or it
 * was given out again where no hook could see it. Only reads, and only reads that cannot fault.
 */
#pragma once

#include <stdint.h>

struct thread;

enum heap_opinion {
	HEAP_UNKNOWN, /* the marks look the same either way */
	HEAP_FREE,
	HEAP_IN_USE,
};

/* `size` is what the last known owner had asked for. _sigsafe */
enum heap_opinion glibc_heap_ask_sigsafe(const struct thread *self, uint64_t start, uint64_t size);
