#include "debuginfo/scope_name.h"

#include <stdbool.h>
#include <stdlib.h>

#include <dwarf.h>

#include "base/mem.h"
#include "base/strbuf.h"

/* From an inlined call to its function to its declaration; damaged files go on for ever. */
#define ORIGINS_MAX 8
#define DEPTH_MAX 64

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/* Where it was declared: inside of its class. */
static void find_declaration(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die other;

	for (unsigned int i = 0; i < ORIGINS_MAX; i++) {
		if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(die, DW_AT_specification, &attr))
			return;
		if (!dwarf_formref_die(&attr, &other))
			return;
		*die = other;
	}
}

static bool is_class(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* Counts the classes without a name below a scope, in the order of the source, up to one of them.
 */
static bool count_unnamed(Dwarf_Die *scope, const Dwarf_Die *last, unsigned int depth,
			  unsigned int *count)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(scope, &die) != 0)
		return false;
	do {
		if (is_class(&die) && !dwarf_diename(&die))
			++*count;
		if (die.addr == last->addr)
			return true;
		if (dwarf_tag(&die) == DW_TAG_lexical_block &&
		    count_unnamed(&die, last, depth + 1, count))
			return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* A lambda has no name; its number stays the same where the lines around it change. */
static void add_unnamed(Dwarf_Die *scopes, int at, int count, struct strbuf *sb)
{
	unsigned int number = 0;
	int around = at + 1;

	while (around < count - 1 && dwarf_tag(&scopes[around]) == DW_TAG_lexical_block)
		around++;
	if (around < count)
		(void)count_unnamed(&scopes[around], &scopes[at], 0, &number);
	strbuf_addf(sb, "{unnamed#%u}", number);
}

static void add_scope(Dwarf_Die *scopes, int at, int count, struct strbuf *sb)
{
	const char *name = dwarf_diename(&scopes[at]);
	int tag = dwarf_tag(&scopes[at]);

	if (tag != DW_TAG_namespace && !is_class(&scopes[at]) &&
	    (tag != DW_TAG_subprogram || !name))
		return;
	if (sb->len > 0)
		strbuf_adds(sb, "::");
	if (name)
		strbuf_adds(sb, name);
	else if (tag == DW_TAG_namespace)
		strbuf_adds(sb, "(anonymous namespace)");
	else
		add_unnamed(scopes, at, count, sb);
}

char *scope_name(Dwarf_Die *function)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	Dwarf_Die declaration = *function, unit, *scopes = NULL;
	int count;

	find_declaration(&declaration);
	if (!dwarf_diecu(&declaration, &unit, NULL, NULL) || !is_cxx(&unit))
		return NULL;
	count = dwarf_getscopes_die(&declaration, &scopes);
	/* Outermost first; the first of the list is the function itself. */
	for (int i = count; i-- > 1;)
		add_scope(scopes, i, count, &sb);
	free(scopes);
	return sb.len > 0 ? strbuf_take(&sb) : NULL;
}
