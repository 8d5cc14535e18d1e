#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/evidence.h"

/*
 * What a tool that looks for memory errors said in the program's output: AddressSanitizer,
 * MemorySanitizer, ThreadSanitizer, UndefinedBehaviorSanitizer, Valgrind's Memcheck.
 *
 * The output is somebody else's text: any bytes are read, and what does not look like a report is
 * none.
 */

/* The first report that names a memory error or a race; else the first of anything. False, and
 * `ret` is untouched, when there is none. On success `ret` is a zeroed part that the caller frees
 * with its evidence. */
bool sanitizer_report_read(const char *text, size_t len, struct reported *ret);
