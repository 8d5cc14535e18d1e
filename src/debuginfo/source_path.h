#pragma once

/* The path of a source file as people know it: made absolute with the compilation directory (which
 * may be NULL), and without the "." and ".." that build systems leave in, as long as that does not
 * turn a file that is there into one that is not (symbolic links). The caller frees it. */
char *source_path(const char *directory, const char *file);
