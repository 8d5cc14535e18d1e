#pragma once

#include <elfutils/libdw.h>

/*
 * The classes and namespaces that a C++ function stands in, from its DWARF.
 *
 * Members of lambdas, of classes inside of functions and of unnamed namespaces have no linkage
 * name, and every lambda is called operator(): without what stands around them they cannot be told
 * apart.
 */

/* "app::Holder<int>", to be freed; NULL when it stands in none, or the language is another. */
char *scope_name(Dwarf_Die *function);
