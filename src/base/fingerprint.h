#pragma once

#include "base/strbuf.h"

/*
 * What a file is, in a short text that is the same as long as its content is: size and hash. A
 * file too large to read quickly (32 MiB) is told by size and time of change. An unreadable one
 * has the size 0.
 */
void file_fingerprint(const char *path, struct strbuf *ret);
