#pragma once

/* The path of a source file as people know it: with the directory that the compiler ran in (may be
 * NULL) before it, unless the file has that already; without the "." and ".." that build systems
 * leave in, as long as that does not turn a file that is there into one that is not (symbolic
 * links). The caller frees it. */
char *source_path(const char *directory, const char *file);
