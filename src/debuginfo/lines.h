#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Dwfl_Module;

/*
 * Source lines and inlined calls of one ELF file, from its DWARF (in the file itself, a separate
 * debug file, or split into .dwo files).
 *
 * The compilation units are indexed when this is made, the functions of a unit when the first
 * address in it is asked for. The .debug_aranges section is not relied on: clang and rustc leave it
 * out.
 */
struct lines;

/* NULL when the module has no DWARF. The Dwfl_Module must outlive the result. */
struct lines *lines_new(struct Dwfl_Module *dwfl_module);
void lines_free(struct lines *lines);

/* One function at an address. All strings are libdw's or the lines' and live as long as the
 * module. */
struct line_frame {
	const char *linkage_name; /* mangled; NULL for C */
	const char *name;	  /* NULL when the address is in no described function */
	const char *scope;     /* classes and namespaces, where there is no linkage name; or NULL */
	const char *file;      /* NULL if unknown; may be relative to the directory */
	const char *directory; /* that the compiler ran in; may be NULL */
	uint32_t line;
};

#define LINE_FRAMES_MAX 64

/* Fills in the functions at this address, innermost first; all but the last are inlined into the
 * next. Returns how many, 0 when the address has neither a line nor a function. Addresses are the
 * Dwfl_Module's. */
size_t lines_find(struct lines *lines, uint64_t address, struct line_frame ret[LINE_FRAMES_MAX]);

struct line_range {
	uint64_t low, high;
};

/* The pieces of the function at an address, as DWARF tells them: with what the compiler moved out
 * of the way (".cold"). 0 when it tells nothing. */
size_t lines_ranges(struct lines *lines, uint64_t address, struct line_range *ret, size_t room);

/* Do all arguments of the function at an address travel in registers? False too when it is not
 * known, or there can be any number of them. */
bool lines_arguments_in_registers(struct lines *lines, uint64_t address);

/* How often a function of this name was inlined, and (ret_any) whether there is one at all. */
size_t lines_inlined(struct lines *lines, const char *name, bool *ret_any);
