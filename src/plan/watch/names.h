#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "debuginfo/types.h"
#include "plan/hooks/libraries.h"
#include "wire/plan.h"

/*
 * Names of the target's source, looked up in the program and in the libraries it is linked with,
 * and in what else the command was seen to load (plan/hooks/libraries.h). What one program that
 * the command starts knows by a name, others may have, too: all of them are meant.
 */
struct names;

int names_new(const struct libraries_request *request, struct names **ret, struct err *err);
void names_free(struct names *names);
AUTO_DEFINE(struct names, names_free)

struct ranges {
	VEC(struct plan_range) list;
};

/* Adds the code of a function, or of a line. */
int names_function(struct names *names, const char *function, struct ranges *ret, struct err *err);
int names_line(struct names *names, const char *file, uint32_t line, struct ranges *ret,
	       struct err *err);

/* All code of the module with this file name (its last part is enough, also without version). False
 * when none is called so. */
bool names_module(struct names *names, const char *file, struct ranges *ret);

/* Of the Python among the files, as its Py_Version begins: 0x030b is 3.11; 0: none tells. */
unsigned int names_python_version(struct names *names);

/* As types_field(), types_field_of_function(), types_global(). Of a global each range is the whole
 * variable in one program; only one of them is there in a process. */
int names_field(struct names *names, const char *type, const char *path, struct type_field *ret,
		struct err *err);
int names_field_of_function(struct names *names, const char *function, int argument,
			    const char *path, struct type_field *ret, struct err *err);
int names_global(struct names *names, const char *name, const char *path, struct type_global *ret,
		 struct ranges *ret_ranges, struct err *err);
