#pragma once

#include <stdbool.h>

#include "debuginfo/functions.h"
#include "debuginfo/module.h"

/*
 * Does the function, or one that it calls, call something that the compiler cannot have known: by
 * way of the linker's table, or through a pointer?
 *
 * Then all who call it must take it that every register is changed which a call may change. Of one
 * that stays at home, compilers know which registers it leaves alone (-fipa-ra), and its callers
 * may count on that.
 */
bool function_leaves(struct module *module, const struct function *function);

/* The function of the same file whose call it begins with, before any branch. False: none. `ret` is
 * to be deinitialised. */
bool function_begins_with(struct module *module, const struct function *function,
			  struct function *ret);

/* Where a compiler saw through a pointer to the function that begins at `entry`, the caller
 * compares the two and calls a copy that was made for it: that one. False: none. `ret` as above. */
bool function_calls_instead(struct module *module, uint64_t caller, uint64_t entry,
			    struct function *ret);
