/*
 * Code that the target emitted at run time, kept for the tool: it is in no file, and gone with the
 * process.
 *
 * All executable mappings without a file of their own, page by page; pages of zeros are left out (a
 * JIT reserves far more than it uses), and so is what is beyond the limits.
 */
#pragma once

#include <stdint.h>

#define JIT_CODE_BYTES (4u << 20)

/* Blobs LOG_BLOB_JIT of the record `owner`, in EVENTS wherever that record is; only when the plan
 * has PLAN_JIT_CODE. _sigsafe */
void jit_code_write_sigsafe(uint64_t owner);
