#pragma once

/* The name as people write it, for C++ (Itanium) and Rust (legacy and v0) symbols; any
 * other name, and any that cannot be demangled, comes back as it is, without the "@VERSION" that
 * a symbol table may carry. The caller frees it. */
char *demangle(const char *symbol);
