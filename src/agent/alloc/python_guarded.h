/*
 * CPython's objects under the heap observer: each a block of its own, with guards and quarantine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Include/cpython/pymem.h; part of the stable behaviour since 3.5. */
struct python_allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *ptr, size_t size);
	void (*free)(void *context, void *ptr);
};

enum python_domain_number {
	PYTHON_DOMAIN_RAW = 0,
	PYTHON_DOMAIN_MEMORY = 1,
	PYTHON_DOMAIN_OBJECT = 2,
};

/* Puts our heap in the place of the object and memory domains' own. Before the interpreter starts.
 * False: this build does not stand it, and nothing was done. */
bool python_guarded_init(void);
bool python_guarded_is(const struct python_allocator *allocator);
