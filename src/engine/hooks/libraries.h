#pragma once

#include "base/err.h"
#include "base/vec.h"

/*
 * The files that a program is made of when it starts: itself and the libraries that it is linked
 * with, as its own loader finds them.
 */
struct libraries {
	char *program;	    /* for a script, its interpreter */
	char *loader;	    /* PT_INTERP */
	struct strv linked; /* paths, in the loader's order; without the program */
};

/* `path` is what will be run, in `cwd` (NULL: here) with `env` added to our own environment. The
 * loader is asked (ld.so --list): nothing of the program runs. When it cannot say, `linked` is
 * empty. */
int libraries_find(const char *path, const char *cwd, const struct strv *env, struct libraries *ret,
		   struct err *err);
void libraries_deinit(struct libraries *libraries);
