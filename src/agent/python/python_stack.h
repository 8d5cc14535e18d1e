/*
 * The Python frames that an allocation stands under, as part of its context: with growth only.
 *
 * Calls from Python to Python leave no trace on the native stack, so one context would be all the
 * dictionaries of a program. Under growth every event takes the slow way; there the frames of the
 * thread that holds the interpreter are read as they lie, which takes some ten nanoseconds each. A
 * code object is told once, with what names it (python_record.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "wire/log_format.h"

struct python_stack {
	uint64_t hash; /* the same in every run */
	uint32_t count;
	bool untold; /* a code object among them is not in the log yet */
	struct log_python_frame frames[LOG_PYTHON_FRAMES]; /* `native` is not known yet */
	uint64_t native[LOG_PYTHON_FRAMES]; /* an address in the interpreter's native frame; 0 */
};

extern HIDDEN bool python_stack_on;

/* By row of a native context: the hash of its frames inside of the interpreter; 0: not known yet.
 */
extern HIDDEN uint64_t *python_stack_inner;

/* If this process runs an interpreter whose layout is known. In the constructor. */
void python_stack_init(void);

/* After a fork: the log is new, and knows no code object. */
void python_stack_forget(void);

/* The calling thread's innermost frames. False: it runs no Python, or it cannot be read. */
bool python_stack_take(struct guard *guard, struct python_stack *ret);
