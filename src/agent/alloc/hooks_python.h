/*
 * Objects that CPython carves out of its arenas, followed through PyMem_SetAllocator.
 */
#pragma once

#include <stdint.h>

struct guard;

/* Wraps the allocators of the object and memory domains, if this program is CPython (its symbols
 * are in the global scope) and the plan wants it. Called by the constructor, before main: the
 * functions only copy structures then, and the interpreter keeps wrappers that are in place before
 * it starts. */
void python_init(void);

/* The interpreter may still choose other allocators (PYTHONMALLOC, -X dev), which would take the
 * place of ours: it does so before it makes its first object (blocks_state.unsettled).
 *
 * A block was made by this API. Puts the wrappers in front again if others have taken their place,
 * but for plain malloc, whose blocks are followed as they are. Once at most, and only while there
 * is one thread: the interpreter's own lock around this is free then. */
void python_settle(struct guard *guard, uint32_t api);
