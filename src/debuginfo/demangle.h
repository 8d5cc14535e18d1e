#pragma once

#include <stdbool.h>

/* The name as people write it, for C++ (Itanium) and Rust (legacy and v0) symbols; any
 * other name, and any that cannot be demangled, comes back as it is. The "@VERSION" of a symbol
 * table and the compiler's ".constprop.0" and the like are cut off. The caller frees it. */
char *demangle(const char *symbol);

/* Does a demangled name answer to what a user wrote: all of it, all but the arguments, or only the
 * end of its scope and name ("box<long>::total" for "shapes::box<long>::total(int const&)")? */
bool demangled_matches(const char *name, const char *wanted);
