#pragma once

#include <stddef.h>

/*
 * An event log in memory, as a file of `len` bytes that nobody writes to any more.
 *
 * Most of a log is holes, and the reader looks into some of them. Were the file just mapped, each
 * look would make the kernel fill pages of its cache with zeros, and read ahead of us; with a small
 * program that took three times as long as all the rest of its trial. So only what was written is
 * mapped from the file, and holes are memory that nobody has: zeros that cost nothing.
 */

/* NULL with errno set. munmap() ends it. */
const void *log_map(int fd, size_t len);
