#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct module;

/* Reads the target's memory; false when those bytes are not known. */
typedef bool memory_reader(void *arg, taddr address, void *buf, size_t len);

struct cfi_step {
	taddr cfa;
	bool signal; /* the caller was interrupted by a signal: its address is exact */
};

/*
 * One step up the stack by call frame information (.eh_frame, else .debug_frame).
 *
 * `vaddr` is an address inside the current instruction: the instruction pointer itself, or one less
 * than a return address. `load_bias` is what the process adds to addresses in the file. On success
 * the registers become the caller's.
 *
 * Returns 1 after a step, 0 when this is the outermost frame, or: -ENOENT without information for
 * this address, -EFAULT when memory was needed that is not there, -EBADMSG for nonsense.
 */
int cfi_unwind(struct module *module, uint64_t vaddr, uint64_t load_bias, memory_reader *read,
	       void *arg, struct registers *registers, struct cfi_step *ret);
