#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct module;

/*
 * Functions of a file by name or address, with their bounds. All addresses are the file's own.
 */
enum function_kind {
	FUNCTION_PLAIN,
	FUNCTION_COPY,	/* made by the compiler for some callers; it may take other arguments */
	FUNCTION_PART,	/* the rest of one whose beginning was inlined (".part") */
	FUNCTION_IFUNC, /* only chooses which function to use */
};

struct function_range {
	uint64_t low, high;
};

#define FUNCTION_RANGES_MAX 16

struct function {
	char *name;   /* for people: demangled, without what the compiler appended */
	char *symbol; /* as it stands in the file; NULL for one found by address only */
	enum function_kind kind;
	uint64_t entry;
	/* All of its code; the first is the one that holds the entry. Count 0: its end is unknown.
	 */
	struct function_range ranges[FUNCTION_RANGES_MAX];
	size_t range_count;
	bool arguments_in_registers; /* for certain */
	bool global;		     /* other files may call it */
};

struct functions {
	VEC(struct function) list; /* ascending by entry */
};

void functions_deinit(struct functions *functions);

/* Fills in all functions of this name: as it stands in the symbol table, or as people write it
 * ("ns::Class::method", with or without the parameters in parentheses). */
void functions_find(struct module *module, const char *name, struct functions *ret);

/* The same of a name without all of its scope: "Class::method" for "ns::Class::method". */
void functions_find_scoped(struct module *module, const char *name, struct functions *ret);

/* How many calls of it were inlined, so that a hook will not see them; `ret_any` tells whether
 * there is such a function at all, with or without code of its own. */
size_t functions_inlined(struct module *module, const char *name, bool *ret_any);

/* The function that begins at vaddr. False when nothing is known to begin there; then `ret->name`
 * may still be the function around it. */
bool functions_at(struct module *module, uint64_t vaddr, struct function *ret);
void function_deinit(struct function *function);

/* The name nearest to a mistyped one; NULL when none is near. The caller frees it. */
char *functions_near(struct module *module, const char *name);

/* Calls fn for each address within [low, high) that is known to be reached from elsewhere: begins
 * of symbols, places where exceptions land. False when not all can be known. */
bool functions_entries(struct module *module, uint64_t low, uint64_t high,
		       void (*fn)(void *ctx, uint64_t vaddr), void *ctx);

/* The piece of code around vaddr that unwind information tells as one: a function, or what was
 * moved out of one. */
bool functions_known_piece(struct module *module, uint64_t vaddr, struct function_range *ret);

/* The piece of code around vaddr whose first byte begins an instruction: what unwind information
 * tells as one, or what lies between two such. */
bool functions_piece(struct module *module, uint64_t vaddr, struct function_range *ret);

/* Where the next function begins, at or behind vaddr; UINT64_MAX when none is known. */
uint64_t functions_next(struct module *module, uint64_t vaddr);
