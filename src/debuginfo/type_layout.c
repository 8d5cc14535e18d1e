/* All fields of an object by their names: types_layout_at() of types.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "debuginfo/types_inside.h"

#define DEPTH_MAX 4
#define FIELDS_MAX 512u

struct layout_walk {
	struct types *types;
	struct block_layout *layout;
};

static void add_members(struct layout_walk *walk, Dwarf_Die *type, uint64_t base,
			const char *prefix, unsigned int depth);

static void add_member(struct layout_walk *walk, Dwarf_Die *member, uint64_t base,
		       const char *prefix, unsigned int depth)
{
	const char *own = dwarf_tag(member) == DW_TAG_member ? dwarf_diename(member) : NULL;
	AUTO(mem_freep)
	char *name = own ? mem_printf("%s%s", prefix, own) : mem_strdup(prefix);
	uint64_t bits, bit_size, size = 0;
	Dwarf_Die inner;

	if (!types_member_bits(member, &bits, &bit_size) || !types_type_of(member, &inner) ||
	    !types_peel(walk->types, &inner, &inner))
		return;
	bits += base;
	if (depth < DEPTH_MAX &&
	    (dwarf_tag(&inner) == DW_TAG_structure_type || dwarf_tag(&inner) == DW_TAG_class_type ||
	     (!own && dwarf_tag(&inner) == DW_TAG_union_type))) {
		AUTO(mem_freep) char *below = own ? mem_printf("%s.", name) : mem_strdup(prefix);

		add_members(walk, &inner, bits, below, depth + 1);
		return;
	}
	if (!own || walk->layout->fields.count == FIELDS_MAX)
		return;
	if (bit_size > 0)
		size = (bits % 8 + bit_size + 7) / 8;
	else if (dwarf_aggregate_size(&inner, &size) != 0)
		size = 0;
	VEC_PUSH(&walk->layout->fields,
		 ((struct layout_field){ .offset = bits / 8, .size = size, .name = TAKE(name) }));
}

static void add_members(struct layout_walk *walk, Dwarf_Die *type, uint64_t base,
			const char *prefix, unsigned int depth)
{
	Dwarf_Die die;

	if (dwarf_child(type, &die) != 0)
		return;
	do {
		Dwarf_Attribute external;

		if ((dwarf_tag(&die) == DW_TAG_member || dwarf_tag(&die) == DW_TAG_inheritance) &&
		    !dwarf_attr(&die, DW_AT_external, &external))
			add_member(walk, &die, base, prefix, depth);
	} while (dwarf_siblingof(&die, &die) == 0);
}

int types_layout_at(struct types *types, const struct type_place *place, struct block_layout *ret,
		    struct err *err)
{
	struct layout_walk walk = { .types = types, .layout = ret };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	Dwarf_Die object;
	int r = types_of_block(types, place, &object, err);

	if (r < 0)
		return r;
	if (dwarf_tag(&object) == DW_TAG_union_type)
		return err_set(err, -ENODATA, "each byte of a union may be several fields");
	types_add_text(&object, &text);
	*ret = (struct block_layout){ .type = strbuf_take(&text), .size = place->size };
	add_members(&walk, &object, 0, "", 0);
	VEC_SORT_BY(&ret->fields, offset);
	return 0;
}
