/*
 * The type of a block, and its fields by their names: types_field_at() of types.h.
 *
 * What a block is, malloc does not know. The function that called it does: it returns a pointer to
 * the object, or has a variable that points to one.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo/types_inside.h"

#define DEPTH_MAX 16

/* The one type of that size that was met; ambiguous when there are two. */
struct type_candidate {
	struct types *types;
	uint64_t size;
	Dwarf_Die type;
	bool found, ambiguous;
};

/* What a variable, parameter or result points to, if that has the size of the block. */
static void consider(struct type_candidate *c, Dwarf_Die *die)
{
	Dwarf_Die pointer, object;
	Dwarf_Word size;
	const char *name;

	if (!types_type_of(die, &pointer) || dwarf_peel_type(&pointer, &pointer) != 0 ||
	    dwarf_tag(&pointer) != DW_TAG_pointer_type || !types_type_of(&pointer, &object) ||
	    !types_peel(c->types, &object, &object) || !types_aggregate(dwarf_tag(&object)) ||
	    dwarf_aggregate_size(&object, &size) != 0 || size != c->size)
		return;
	name = dwarf_diename(&object);
	if (!name)
		return;
	if (c->found && strcmp(name, dwarf_diename(&c->type)) != 0)
		c->ambiguous = true;
	c->type = object;
	c->found = true;
}

static void consider_variables(struct type_candidate *c, Dwarf_Die *scope, int tag,
			       unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(scope, &die) != 0)
		return;
	do {
		if (dwarf_tag(&die) == tag)
			consider(c, &die);
		else if (dwarf_tag(&die) == DW_TAG_lexical_block)
			consider_variables(c, &die, tag, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* The result says most, a variable more than a parameter: that was there before the block. */
static bool type_of_block(struct type_candidate *c, Dwarf_Die *function)
{
	static const int tags[] = { DW_TAG_variable, DW_TAG_formal_parameter };

	consider(c, function);
	for (size_t i = 0; i < ARRAY_SIZE(tags) && !c->found; i++)
		consider_variables(c, function, tags[i], 0);
	return c->found && !c->ambiguous;
}

struct path {
	struct types *types;
	uint64_t offset, len;
	struct strbuf text;
};

static bool descend(struct path *path, Dwarf_Die *type, unsigned int depth);

/* Into the member that the bytes lie in, if there is exactly one: of a union, there may be many. */
static bool into_member(struct path *path, Dwarf_Die *type, unsigned int depth)
{
	Dwarf_Die die, inner, member, member_type;
	uint64_t bits, bit_size, size, at = 0;
	size_t found = 0;

	if (dwarf_child(type, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);

		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    dwarf_hasattr(&die, DW_AT_external) ||
		    !types_member_bits(&die, &bits, &bit_size) || bit_size > 0 ||
		    !types_type_of(&die, &inner) || !types_peel(path->types, &inner, &inner) ||
		    dwarf_aggregate_size(&inner, &size) != 0 || path->offset < bits / 8 ||
		    path->offset - bits / 8 >= size)
			continue;
		member = die;
		member_type = inner;
		at = bits / 8;
		found++;
	} while (dwarf_siblingof(&die, &die) == 0);
	if (found != 1)
		return found > 1; /* padding is no field */
	if (dwarf_tag(&member) == DW_TAG_member && dwarf_diename(&member)) {
		strbuf_addc(&path->text, '.');
		strbuf_add_printable(&path->text, dwarf_diename(&member),
				     strlen(dwarf_diename(&member)));
	}
	path->offset -= at;
	return descend(path, &member_type, depth + 1);
}

static bool has_one_dimension(Dwarf_Die *array)
{
	unsigned int dimensions = 0;
	Dwarf_Die die;

	if (dwarf_child(array, &die) != 0)
		return false;
	do
		dimensions += dwarf_tag(&die) == DW_TAG_subrange_type;
	while (dwarf_siblingof(&die, &die) == 0);
	return dimensions == 1;
}

static bool into_element(struct path *path, Dwarf_Die *array, unsigned int depth)
{
	Dwarf_Die element;
	Dwarf_Word size;

	if (!has_one_dimension(array))
		return true;
	if (!types_type_of(array, &element) || !types_peel(path->types, &element, &element) ||
	    dwarf_aggregate_size(&element, &size) != 0 || size == 0)
		return false;
	strbuf_addf(&path->text, "[%llu]", (unsigned long long)(path->offset / size));
	path->offset %= size;
	return descend(path, &element, depth + 1);
}

static bool descend(struct path *path, Dwarf_Die *type, unsigned int depth)
{
	Dwarf_Word size;

	/* All of an object inside the block, not one of its parts. */
	if (depth > 0 && path->offset == 0 && path->len > 0 &&
	    dwarf_aggregate_size(type, &size) == 0 && size == path->len &&
	    !types_aggregate(dwarf_tag(type)))
		return true;
	if (depth > DEPTH_MAX)
		return false;
	if (types_aggregate(dwarf_tag(type)))
		return into_member(path, type, depth);
	if (dwarf_tag(type) == DW_TAG_array_type)
		return into_element(path, type, depth);
	return true;
}

static bool is_function(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* Innermost first: a function that was inlined there asked for the block itself. */
int types_of_block(struct types *types, const struct type_place *place, Dwarf_Die *ret,
		   struct err *err)
{
	uint64_t address = place->address - types->bias;
	bool told = false;

	VEC_FOREACH (&types->units, unit) {
		Dwarf_Die *scopes = NULL;
		int count;

		if (told || dwarf_haspc(&unit->tree, address) != 1)
			continue;
		count = dwarf_getscopes(&unit->tree, address, &scopes);
		for (int i = 0; i < count && !told; i++) {
			struct type_candidate c = { .types = types, .size = place->size };

			if (!is_function(dwarf_tag(&scopes[i])))
				continue;
			told = type_of_block(&c, &scopes[i]);
			*ret = c.type;
		}
		free(scopes);
	}
	return told ? 0
		    : err_set(err, -ENOENT, "no type of %llu bytes is told there",
			      (unsigned long long)place->size);
}

int types_field_at(struct types *types, const struct type_place *place, char **ret, struct err *err)
{
	struct path path = { .types = types, .offset = place->offset, .len = place->len };
	Dwarf_Die type;
	size_t type_len;
	int r;

	if (place->offset >= place->size)
		return err_set(err, -ENOENT, "that is behind the block's end");
	r = types_of_block(types, place, &type, err);
	if (r < 0)
		return r;
	types_add_text(&type, &path.text);
	type_len = path.text.len;
	if (!descend(&path, &type, 0) || path.text.len == type_len) {
		strbuf_deinit(&path.text);
		return err_set(err, -ENOENT, "no field is there");
	}
	*ret = strbuf_take(&path.text);
	return 0;
}
