#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "model/program_file.h"

/* Debug information in a file, and the separate file that may hold it instead.
 * Private to debuginfo/. */

/* Does each section of strings end with the end of one? libdw reads on until a string ends. */
bool debugfile_strings_end(Dwarf *dwarf);

/* Are there DWARF units, and can a line table be read? Tried, not told from section names. */
void debugfile_read_lines(Elf *elf, bool *ret_units, bool *ret_lines);

/* Reads build-id and .gnu_debuglink, and looks for the separate debug file, by build-id and then by
 * .gnu_debuglink, in the places where gdb and libdwfl look, and checks that it really belongs to
 * the program. Fills in build_id, debug_link, debug_file and debug_file_lines. */
void debugfile_find(Elf *elf, struct program_facts *facts);
