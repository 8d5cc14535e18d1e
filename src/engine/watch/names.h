#pragma once

#include "base/err.h"
#include "base/vec.h"
#include "debuginfo/types.h"
#include "wire/plan.h"

/*
 * Names of the target's source, looked up in the program and in the libraries it is linked with.
 */
struct names;

int names_new(const char *program, const char *cwd, const struct strv *env, struct names **ret,
	      struct err *err);
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

/* As types_field(), types_field_of_function(), types_global(). Of a global the range is the whole
 * variable. */
int names_field(struct names *names, const char *type, const char *path, struct type_field *ret,
		struct err *err);
int names_field_of_function(struct names *names, const char *function, int argument,
			    const char *path, struct type_field *ret, struct err *err);
int names_global(struct names *names, const char *name, const char *path, struct type_global *ret,
		 struct plan_range *ret_range, struct err *err);
