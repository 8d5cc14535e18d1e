#pragma once

#include <stdint.h>

/*
 * Our handlers' own stack.
 *
 * A target may give its handlers a stack of its own, and many give little: a runtime that asks for
 * SIGSTKSZ bytes has 8 KiB, in a block of the heap. What we do in a handler takes more than that,
 * and would write over whatever lies below. So our part runs on the stack that we have for each
 * thread, and the target's handler on the one that it asked for.
 */

/* Calls work(arg) on a stack that is deep enough. _sigsafe */
void own_stack_run_sigsafe(void (*work)(void *arg), void *arg);

/* The target's own, where handlers of this thread were called on one: from *ret_low up. 0: none.
 * Registers lie about in it. _sigsafe */
uint64_t own_stack_targets_sigsafe(uint64_t *ret_low);
