#pragma once

#include <stdbool.h>
#include <stdint.h>

struct Dwfl_Module;

/*
 * The symbols of one ELF file, sorted once: libdwfl's own search goes through the whole table for
 * every address, which is too slow for stacks out of large libraries.
 *
 * Addresses are those of the Dwfl_Module, which must outlive this.
 */
struct elf_symbols;

struct elf_symbols *elf_symbols_new(struct Dwfl_Module *dwfl_module);
void elf_symbols_free(struct elf_symbols *symbols);

/* The name of the code symbol that holds the address, or NULL. Of several the innermost one, then
 * a public one, then the one with the plainest name. Symbols without a size
 * (assembly) reach up to the next symbol in their section. `ret_start` may be NULL. */
const char *elf_symbols_find(const struct elf_symbols *symbols, uint64_t address,
			     uint64_t *ret_start);

/* The name of the data symbol that holds the address, or NULL. */
const char *elf_symbols_find_data(const struct elf_symbols *symbols, uint64_t address,
				  uint64_t *ret_start);

/* The address of a code or data symbol by its exact name. */
bool elf_symbols_lookup(const struct elf_symbols *symbols, const char *name, uint64_t *ret);

struct elf_symbol {
	const char *name;
	uint64_t start, end; /* equal, or up to the next section's start, for one without a size */
	bool sized;
	bool ifunc;    /* chosen when the program starts: what is here only chooses */
	bool function; /* said to be one; a label of assembly is not */
	bool global;   /* other files may know it */
};

/* Calls fn for every code symbol, ascending by address. */
void elf_symbols_each(const struct elf_symbols *symbols,
		      void (*fn)(void *ctx, const struct elf_symbol *symbol), void *ctx);
