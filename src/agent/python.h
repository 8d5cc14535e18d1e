/*
 * Objects that CPython carves out of its arenas, followed through PyMem_SetAllocator.
 */
#ifndef REDHAND_AGENT_PYTHON_H
#define REDHAND_AGENT_PYTHON_H

/* Wraps the allocators of the object and memory domains, if this program is CPython (its symbols
 * are in the global scope). Called by the constructor, before main: the functions only copy
 * structures then, and the interpreter keeps wrappers that are in place before it starts. */
void python_init(void);

#endif
