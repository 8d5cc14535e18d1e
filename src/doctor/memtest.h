#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * A short memory test: is it the machine?
 *
 * Every core fills its part of some memory with patterns, reads it back, and counts the words that
 * are not what was written. It can only find what is broken badly or close by: no error in three
 * seconds says little, one says a lot.
 */
struct memtest_request {
	double seconds; /* at most, about */
	size_t bytes;	/* in all; 0: a quarter of what is free, at most MEMTEST_BYTES_MOST */
	/* Between writing and reading back, for tests of the test. May be NULL. */
	void (*meanwhile)(void *ctx, uint64_t *words, size_t count);
	void *meanwhile_ctx;
};

/* More could run into the limit of a container, and be the end of redhand. */
#define MEMTEST_BYTES_MOST (128u << 20)

struct memtest_result {
	double seconds;
	size_t bytes;	    /* that were tested, in all */
	unsigned int cores; /* that tested */
	uint64_t passes;    /* times that a core's part was filled and read back */
	uint64_t errors;    /* words that were not what had been written */
	int core;	    /* where the first one was seen; -1: none was */
};

/* 0, or -ENOMEM when there is not enough memory to test. */
int memtest_run(const struct memtest_request *request, struct memtest_result *ret);
