#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/said.h"

/*
 * The files that a command is made of: the program and the libraries that it is linked with, as its
 * own loader finds them; and what was seen to come later, when somebody looked
 * (studies/loaded_modules.h).
 */
struct library {
	char *path;
	bool program; /* an image of its own, not a library */
	bool late;    /* not there when the command starts */
};

struct library_list {
	VEC(struct library) list;
	struct said_list notes; /* what could not be looked into */
};

void library_list_deinit(struct library_list *list);

/* A program that ran unobserved, so that what is in it is not known; NULL: none. */
const char *library_list_unseen(const struct library_list *list);

/* The command, as it will be run. */
struct libraries_request {
	const char *program;	/* path of its file; for a script, its interpreter is taken */
	const char *cwd;	/* NULL: here */
	const struct strv *env; /* added to our own environment; or NULL */
	const struct library_list *seen; /* what else it loads; or NULL */
};

struct libraries {
	char *loader;		   /* PT_INTERP of the program; NULL: it has none */
	struct library_list files; /* each once, in the order in which names are looked up: the
				    * program, what it is linked with, what else was seen. Of a
				    * launcher that was seen to start others, what was seen comes
				    * first. Never empty. */
};

/* The loader is asked (ld.so --list): nothing of the program runs. When it cannot say, there is
 * only the program. */
int libraries_find(const struct libraries_request *request, struct libraries *ret, struct err *err);
void libraries_deinit(struct libraries *libraries);

/* Can it start other programs, or load libraries later, by what it and its libraries call? */
bool libraries_load_more(const struct libraries_request *request);

/* Is the program that will be run, or the interpreter of the script, a launcher? */
bool libraries_launches(const struct libraries_request *request);
