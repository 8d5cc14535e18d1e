/*
 * A malloc that the program has inside.
 *
 * Where the program itself defines malloc, nobody's calls come to our hooks: its symbol is found
 * first, and its own calls name no symbol at all. So the entry of each such function is patched
 * (hooked.h) and leads here, from here to the hook of the same name, and that one's "real" function
 * is the program's: what the patch made room for, and then the rest of it (stub.h). From then on
 * its blocks are like those of an allocator in a library behind us.
 *
 * What its functions call of each other while one of them runs goes straight to the program's, and
 * what they call of ours to libc's: a block has one life, whoever of them made it. Operator new is
 * the exception, since it may throw: what it calls is noted, and the block is claimed when it
 * returns.
 *
 * No guards and no watched pages: the program may have other functions that know its blocks by what
 * lies before them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/core/thread.h"

/* Above everything that a call of the program's functions on behalf of a hook has on the stack; 0:
 * there is none. By its place and not by a count: a handler may have left it by longjmp. */
#define builtin_inside (thread_here->inside)

/* Is the caller called by one of the program's functions, which a hook called? */
static inline __attribute__((always_inline)) bool builtin_nested(void)
{
	uint64_t above = builtin_inside;

	if (likely(!above))
		return false;
	if ((uint64_t)__builtin_dwarf_cfa() < above)
		return true;
	builtin_inside = 0;
	return false;
}

/* The program's malloc may be one that passes on to whatever comes next (dlsym, RTLD_NEXT), which
 * is our hook. Its block is noted by the gate: the hook has nothing to do but to call libc's. */
static inline __attribute__((always_inline)) bool builtin_passes_on(void)
{
	return unlikely(builtin_replaced) && builtin_nested();
}

/* The functions that were behind our hooks until builtin_take_over(). */
extern HIDDEN struct real builtin_behind;

/* Where the patched entry of such a function leads to; 0: no such number. */
uint64_t builtin_gate(uint32_t number);

/* `original` does what the function did. In the constructor, before anything is patched. */
void builtin_bind(uint32_t number, uint64_t original);

/* All of them are patched: hooks call the program's functions from now on. */
void builtin_take_over(void);

/* The hooks, whoever else has functions of these names. */
extern HIDDEN void *hook_malloc(size_t size);
extern HIDDEN void hook_free(void *ptr);
extern HIDDEN void *hook_calloc(size_t count, size_t size);
extern HIDDEN void *hook_realloc(void *ptr, size_t size);
extern HIDDEN void *hook_reallocarray(void *ptr, size_t count, size_t size);
extern HIDDEN void *hook_memalign(size_t align, size_t size);
extern HIDDEN void *hook_aligned_alloc(size_t align, size_t size);
extern HIDDEN int hook_posix_memalign(void **ret, size_t align, size_t size);
extern HIDDEN void *hook_valloc(size_t size);
extern HIDDEN void *hook_pvalloc(size_t size);
