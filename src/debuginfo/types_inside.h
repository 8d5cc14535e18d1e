#pragma once

#include <elfutils/libdw.h>

#include "base/strbuf.h"
#include "debuginfo/module.h"
#include "debuginfo/types.h"

/* What the files of types.h share. Private to debuginfo/. */

struct types_unit {
	Dwarf_Die die;	  /* has the line table */
	Dwarf_Die tree;	  /* has the rest: the same, or the unit in the .dwo file */
	const char *name; /* its source file; NULL for parts that units share */
};

struct types {
	char *path;
	struct module *module;
	uint64_t bias; /* address in the file = DWARF's + bias */
	VEC(struct types_unit) units;
};

/* One thing that is declared outside of functions. */
struct declared {
	Dwarf_Die *die;
	const char *scope; /* "ns::Class"; "" for none */
	const struct types_unit *unit;
};

/* Calls fn for all of them, those in namespaces and classes too. */
typedef void declared_fn(void *ctx, const struct declared *declared);
void types_walk(struct types *types, declared_fn *fn, void *ctx);

/* Does "scope::name" answer to what the user wrote? */
bool types_name_matches(const char *scope, const char *name, const char *wanted);

/* The name of a function or variable as its author knows it, from its linkage name where it has
 * one. NULL when it has none. The caller's. `wanted` is a hint: names that cannot match it may come
 * back as NULL, because demangling all names of a large program takes seconds. */
char *types_full_name(Dwarf_Die *die, const char *scope, const char *wanted);

/* -ENODATA with the remedy, when there is no DWARF at all. */
int types_need_dwarf(const struct types *types, struct err *err);

/* The error for a name that is not there. `where` is the file or the type; `kind` is "type",
 * "function" …; `names` are those that are. */
int types_unknown(const char *where, const char *kind, const char *typed, const struct strv *names,
		  struct err *err);

/* A list that stays short enough to be searched. */
void types_note_name(struct strv *names, const char *name);

/* The field `path` of an object of this type. */
int types_field_of_die(struct types *types, Dwarf_Die *type, const char *path,
		       struct type_field *ret, struct err *err);

/* Through typedefs and const, and from a declaration to the definition in whatever unit. */
bool types_peel(struct types *types, Dwarf_Die *type, Dwarf_Die *ret);

/* DW_AT_type of a DIE, also by way of what it is a copy of. */
bool types_type_of(Dwarf_Die *die, Dwarf_Die *ret);

/* A type as text, as far as that is short. */
void types_add_text(Dwarf_Die *type, struct strbuf *sb);

/* In bits from the start of its type; and how many a bit-field has, else 0. */
bool types_member_bits(Dwarf_Die *member, uint64_t *ret, uint64_t *ret_size);

/* The type of a block, by the code that asked for it. */
int types_of_block(struct types *types, const struct type_place *place, Dwarf_Die *ret,
		   struct err *err);

static inline bool types_flagged(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	bool flag = false;

	return dwarf_attr(die, name, &attr) && dwarf_formflag(&attr, &flag) == 0 && flag;
}

static inline bool types_aggregate(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}
